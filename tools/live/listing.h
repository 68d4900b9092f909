/*
 * Which live sessions does a relay daemon have?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_LISTING_H
#define BLKIN_LIVE_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#define LISTED_MAX 96 /* sessions that are looked at */

struct listed_session {
    char host[256], name[256];
    int64_t viewers, streams;
};

struct listing {
    int count;
    bool has_more;
    struct listed_session sessions[LISTED_MAX];
};

/* For a task: url is net://HOST:PORT. It returns false if the daemon is not there. */
bool listing_ask(const void *url, void *listing);

/* Also where there are too many to know. */
bool listing_has(const struct listing *listing, const char *host, const char *session);

#endif

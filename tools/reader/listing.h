/*
 * Which live sessions does a relay daemon have?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LISTING_H
#define BLKIN_TOOLS_LISTING_H

#include "tools/base/child.h"

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

/* url: net://HOST:PORT. The listing is empty before. Returns false if the daemon is not there. */
bool listing_ask(const char *url, struct listing *listing);

/* The same as a task: its order is the url, its result a struct listing. */
extern const struct job listing_job;

/* Also where there are too many to know. */
bool listing_has(const struct listing *listing, const char *host, const char *session);

#endif

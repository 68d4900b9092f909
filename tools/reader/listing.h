/* Lists the live sessions of a relay daemon.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LISTING_H
#define BLKIN_TOOLS_LISTING_H

#include "tools/base/child.h"

#include <stdbool.h>
#include <stdint.h>

#define LISTED_MAX 96 /* the most sessions in a listing */

struct listed_session {
    char host[256], name[256];
    int64_t viewers, streams;
};

struct listing {
    int count;
    bool has_more; /* the daemon has further sessions */
    struct listed_session sessions[LISTED_MAX];
};

/* Fills an empty listing. url: net://HOST:PORT. Returns false if the daemon does not answer. */
bool listing_ask(const char *url, struct listing *listing);

/* The job listing_ask(). order: the url; result: a struct listing. */
extern const struct job listing_job;

/* Returns true if the listing has the session, or has_more. */
bool listing_has(const struct listing *listing, const char *host, const char *session);

#endif

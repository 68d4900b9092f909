/*
 * What is known of a run besides its counters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_RUN_INFO_H
#define BLKIN_ACCOUNT_RUN_INFO_H

#include <stdbool.h>
#include <stdint.h>

struct run_info {
    char *endpoint;    /* see endpoint_for_display() */
    int64_t start_ns;  /* these three since 1970 */
    int64_t events_ns; /* the counters of events are of this time */
    int64_t now_ns;    /* all others are of this */
    bool has_ended;
};

/*
 * A copy of an endpoint that everybody may see: valid UTF-8 without control characters, and without
 * what may hold a secret in a URL: user, password, query, fragment. Returns NULL when out of
 * memory; free() it.
 */
char *endpoint_for_display(const char *endpoint);

/* Since 1970. */
int64_t wall_clock_ns(void);

#endif

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
    char *endpoint;    /* see output/endpoint_shown.h */
    int64_t start_ns;  /* these three since 1970 */
    int64_t events_ns; /* the counters of events are of this time */
    int64_t now_ns;    /* all others are of this */
    bool has_ended;
};

/* Since 1970. */
int64_t wall_clock_ns(void);

#endif

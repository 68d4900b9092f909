/*
 * How many workers there should be: a rule in a file, and what it says of one look after the other.
 *
 *     up when busy > 50% 2 times        of all workers' time, in so many looks in a row
 *     up when behind > 2s 2 times       of the one that is furthest behind
 *     down when busy < 15% 3 times
 *     at least 1
 *     at most 16
 *     every 10s                         a look
 *
 * These are the defaults: each line is one that may be left out. "#" begins a comment.
 *
 * Never by the lag of committed offsets: they always trail by what is still open.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_RULE_H
#define BLKIN_TOOLS_WORK_RULE_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct rule {
    double up_busy, up_behind_s, down_busy; /* busy: 0 to 1 */
    unsigned up_busy_times, up_behind_times, down_times;
    unsigned least, most;
    int64_t every_ms;
};

/* path NULL: the defaults. Returns false with error set: file, line, what was expected. */
bool rule_read(struct rule *rule, const char *path, struct error *error);

/* All workers at one look. */
struct look {
    unsigned workers;
    double busy;     /* the sum of all their shares: 2.5 of 4 workers */
    double behind_s; /* the most */
};

/* How often in a row it was so. Zeros at first. */
struct streaks {
    unsigned busy, behind, idle;
    unsigned wanted; /* the last advice: workers take a while to come and to go */
    unsigned other;  /* looks at which there were more or fewer */
};

struct advice {
    unsigned wanted;
    char why[160];
};

/* Looks that the rule needs before it can say anything but "as it is". */
unsigned rule_looks(const struct rule *rule);

void rule_advise(const struct rule *rule, struct streaks *streaks, const struct look *look,
                 struct advice *advice);

#endif

/*
 * Watches whether a live session is alive. Then trace time moves, even without events: LTTng sends
 * a beacon at each tick of the session's live timer. Trace time stops when session, consumer or
 * relay daemon are gone or hang, and when a program was killed in the middle of a record. All later
 * events may be lost then, and no other sign exists.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_WATCH_H
#define BLKIN_ACCOUNT_WATCH_H

#include "counters.h"

#define WATCH_STILL_MS    10000 /* the time without progress before a warning */
#define WATCH_PERIOD_MS   500   /* the longest time between two calls of watch_look() */
#define WATCH_MESSAGE_MAX 256

struct watch {
    int64_t trace_time_ns; /* the last value that moved */
    int64_t since_ms;      /* the time of that move */
    bool had_streams;
    bool is_still; /* the warning was given */
};

void watch_begin(struct watch *watch, int64_t now_ms);

/* is_stuck: the graph's thread does not return. Returns whether there is a warning. */
bool watch_look(struct watch *watch, const struct input_counts *input, bool is_stuck,
                int64_t now_ms, char message[WATCH_MESSAGE_MAX]);

#endif

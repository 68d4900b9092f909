/*
 * Is a live session alive? Trace time goes on while it is, also when nothing happens: LTTng tells
 * so at each tick of the session's live timer. It stands still when session, consumer or relay
 * daemon are gone or hang, and when a program was killed in the middle of a record: all that is
 * recorded from then on may be lost, and nothing else shows it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_WATCH_H
#define BLKIN_ACCOUNT_WATCH_H

#include "counters.h"

#define WATCH_STILL_MS    10000 /* so long without progress is worth a word */
#define WATCH_PERIOD_MS   500   /* watch_look() is to be called at least so often */
#define WATCH_MESSAGE_MAX 256

struct watch {
    int64_t trace_time_ns; /* when it was last seen to move */
    int64_t since_ms;      /* that was then */
    bool had_streams;
    bool is_still; /* and this was said */
};

void watch_begin(struct watch *watch, int64_t now_ms);

/* is_stuck: the graph's thread does not come back. Returns whether there is something to say. */
bool watch_look(struct watch *watch, const struct input_counts *input, bool is_stuck,
                int64_t now_ms, char message[WATCH_MESSAGE_MAX]);

#endif

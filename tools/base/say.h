/*
 * What a service says: a line on the standard error each, and the last ones in `blkin status`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SAY_H
#define BLKIN_TOOLS_SAY_H

#include "babeltrace-plugin/base/date.h"

#include <jansson.h>
#include <stdint.h>
#include <babeltrace2/babeltrace.h>

/* The messages of services: ids that never change their meaning, see messages.def. */

/* BK1001, ...: a number that is given twice, or that is not in the table, does not compile. */
enum message_id {
#define M(number, level, subject, text) BK##number = (number),
#include "messages.def"
#undef M
};

bt_logging_level message_level(enum message_id id);

/* name: how lines begin, "blkin live"; level: "none", "error", "warning" or "info". */
void say_open(const char *name, const char *level);
bt_logging_level say_level(void);

/*
 * A line in the log: "BK2031 blkin live: the text", if the message's level is at least the one that
 * was set. Foreign text may be in it: it cannot move a terminal's cursor. From any thread: those of
 * librdkafka and of an exporter say something, too.
 */
__attribute__((format(printf, 2, 3))) void say(enum message_id id, const char *format, ...);

/* The same whatever the level, and not for `blkin status`: what a service tells as it goes. */
__attribute__((format(printf, 2, 3))) void say_account(enum message_id id, const char *format, ...);

/* A line that a child has written: its own id is kept. source: who it is. */
void say_line(const char *source, const char *line);

/* [{"time": ..., "count": ..., "id": "BK2031", "text": ...}], the oldest first. Of lines that
 * differ only in words that have a digit in them, the last one is there, and how many there were.
 * NULL: out of memory.
 */
json_t *say_last(void);

/* "2026-11-21T11:33:27.981Z"; null if it is 0. NULL: out of memory. */
json_t *json_time(int64_t time_ns);

#endif

/*
 * The log of a service. say() prints a line to the standard error if the log level allows the line.
 * `blkin status` shows the last 16 kinds of lines, at every level.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SAY_H
#define BLKIN_TOOLS_SAY_H

#include "babeltrace-plugin/base/date.h"

#include <jansson.h>
#include <babeltrace2/babeltrace.h>

/* BK1001, ...: ids that never change their meaning, see messages.def. A duplicate or unknown number
 * does not compile. */
enum message_id {
#define M(number, level, subject, text) BK##number = (number),
#include "messages.def"
#undef M
};

bt_logging_level message_level(enum message_id id);

/* name: the prefix of lines, "blkin live"; level: "none", "error", "warning" or "info". */
void say_open(const char *name, const char *level);
bt_logging_level say_level(void);

/*
 * Prints "BK2031 blkin live: TEXT" if the message's level is at least the level of say_open().
 * Stores the line for say_last() at every level. Escapes control characters, because the text may
 * come from a peer. Any thread may call the function.
 */
__attribute__((format(printf, 2, 3))) void say(enum message_id id, const char *format, ...);

/* Prints the account at the end of a run, at every level; `blkin status` does not show it. */
__attribute__((format(printf, 2, 3))) void say_account(enum message_id id, const char *format, ...);

/* Logs a child's line at every level, under the id in the line, or BK1001 if the line has none.
 * source: the child's name. */
void say_line(const char *source, const char *line);

/* Returns [{"time": ..., "count": ..., "id": "BK2031", "text": ...}], the oldest first. Lines that
 * differ only in words with a digit are one entry, with the last text and the number of lines.
 * NULL: out of memory. */
json_t *say_last(void);

#endif

/*
 * The log of a service: lines on the standard error. `blkin status` shows the last ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SAY_H
#define BLKIN_TOOLS_SAY_H

#include "babeltrace-plugin/base/date.h"

#include <jansson.h>
#include <stdint.h>
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
 * Logs "BK2031 blkin live: TEXT" if the message's level is at least the level that was set. Escapes
 * control characters of foreign text. Any thread may call it.
 */
__attribute__((format(printf, 2, 3))) void say(enum message_id id, const char *format, ...);

/* Logs independent of the level, and not for `blkin status`: the account at the end of a run. */
__attribute__((format(printf, 2, 3))) void say_account(enum message_id id, const char *format, ...);

/* Logs a line of a child with the line's own message id. source: the child's name. */
void say_line(const char *source, const char *line);

/* Returns [{"time": ..., "count": ..., "id": "BK2031", "text": ...}], the oldest first. Lines that
 * differ only in words with a digit are one entry: the last text and the count. NULL: out of
 * memory. */
json_t *say_last(void);

#endif

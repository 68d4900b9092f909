/*
 * What a service says: a line on the standard error each, and the last ones in `blkin status`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SAY_H
#define BLKIN_TOOLS_SAY_H

#include <babeltrace2/babeltrace.h>
#include <jansson.h>
#include <stdint.h>

/* name: how lines begin, "blkin live"; level: "none", "error", "warning" or "info". */
void say_open(const char *name, const char *level);
bt_logging_level say_level(void);

/* Foreign text may be in it: it cannot move a terminal's cursor. From any thread: those of
 * librdkafka and of an exporter say something, too. */
__attribute__((format(printf, 2, 3))) void say(bt_logging_level level, const char *format, ...);

/* A line that a child has written, which is printed as it is. source: who it is. */
void say_line(const char *source, const char *line);

/* [{"time": ..., "count": ..., "text": ...}], the oldest first. Of lines that differ only in words
 * that have a digit in them, the last one is there, and how many there were. NULL: out of memory.
 */
json_t *say_last(void);

/* "2026-11-21T11:33:27.981Z"; null if it is 0. NULL: out of memory. */
json_t *json_time(int64_t time_ns);

/* Since 1970. */
int64_t wall_clock_ns(void);

#endif

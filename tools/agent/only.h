/*
 * Which traces are wanted, and which of their spans were found. Spans of wanted traces get the tag
 * "blkin.kept" with the reason.
 *
 * A text has a line for each trace:
 *
 *     TRACE-ID FROM UNTIL WHY
 *
 * TRACE-ID: 16 or 32 hexadecimal digits, or * for all traces. An event with only the lower 16
 * digits fits a line with the same lower digits. FROM, UNTIL: the time of the events, in ns since
 * 1970; FROM is included, UNTIL is not; 0: no limit. WHY: the rest of the line, up to 200 bytes, is
 * the tag's value. The first line that fits a span wins. A wrong line is an error that names the
 * line.
 *
 * A line "-TRACE-ID FROM UNTIL" or "-* FROM UNTIL" names spans that were sent before: they are
 * noted as found, and not sent again. A first line "clock NS" is CLOCK_REALTIME - CLOCK_MONOTONIC.
 *
 * Found spans, as JSON:
 *
 *     {"oldest": NS, "newest": NS, "more": 0, "traces": [{"id": "32 hex digits", "begin": NS,
 *       "spans": 3, "have": ["16 hex digits", ...], "want": [...], "cut": true}]}
 *
 * - oldest, newest: the times of all events that were read; 0: none.
 * - more: spans of traces beyond ONLY_FOUND_MAX.
 * - id: the upper half is 0 if no span has it. begin: of the first span, in ns since 1970.
 * - spans: the number of spans that are sent, or were sent before. have: their ids.
 * - want: the ids of parents that are not among them.
 * - cut: the trace had more than ONLY_SPANS_MAX spans, or all traces had ONLY_LISTED_MAX. Then
 *   have is incomplete and want is empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ONLY_H
#define BLKIN_ONLY_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/spans/span.h"
#include "only_found.h"

#include <stdbool.h>

#define ONLY_WHY_MAX 200

struct only;

/* Reads the lines. name is for errors. Returns NULL with error set. */
struct only *only_of_text(struct text text, const char *name, struct error *error);

void only_free(struct only *only); /* NULL is allowed */

/* True if a line names an event of this trace and time. trace_id_high 0: not known. */
bool only_wants(const struct only *only, uint64_t trace_id_high, uint64_t trace_id,
                int64_t time_ns);

/* True if the span was sent before, according to the lines. */
bool only_was_sent(const struct only *only, const struct span *span);

/* Notes the time of an event that was read. */
void only_note_time(struct only *only, int64_t time_ns);

/* Returns the reason of the trace's line, or an empty text. The text lives as long as only. */
struct text only_why(const struct only *only, uint64_t trace_id_high, uint64_t trace_id);

/* Returns CLOCK_REALTIME - CLOCK_MONOTONIC in ns; 0: no line has it. */
int64_t only_clock(const struct only *only);

/* Limits the listed traces. "untold" has the number of other traces. Call it before the first
 * event. */
void only_tell_of(struct only *only, uint64_t traces);

/* Notes a span that is sent, or was sent before. */
void only_note(struct only *only, const struct span *span);

/* Returns the found spans as JSON, for free(); NULL when out of memory. Call it once. */
char *only_found(struct only *only);

#endif

/*
 * Only some traces: what parameter only-traces names. Events of others are counted, and nothing
 * else; spans of these are tagged "blkin.kept" with the reason.
 *
 * The file has a line for each trace:
 *
 *     TRACE-ID FROM UNTIL WHY
 *
 * TRACE-ID: 16 or 32 hexadecimal digits, or * for all; of 32, those of an event that knows only the
 * lower 16 fit by these. FROM, UNTIL: only events recorded in this time, in ns since 1970 (the time
 * of the trace's clock as babeltrace2 gives it), FROM itself among them, UNTIL not; 0: no limit.
 * Lines "-TRACE-ID FROM UNTIL" and "-* FROM UNTIL" name what was sent before: spans of that trace,
 * or of all, recorded in this time. They are found, and not given out again. A first line "clock
 * NS" tells CLOCK_REALTIME - CLOCK_MONOTONIC of the traced host, when the trace was taken: too few
 * blkin:process may be in it to tell that its clock was set.
 *
 * WHY: the rest of the line, the tag's value, up to 200 bytes. A line that is wrong is an error
 * that names it. Of several lines that a span fits, the first one tells why.
 *
 * Parameter only-found: a file that is written (whole, at once) when all of the trace is read,
 * before what waits is delivered:
 *
 *     {"oldest": NS, "newest": NS, "more": 0, "traces": [{"id": "32 hex digits", "begin": NS,
 *       "spans": 3, "have": ["16 hex digits", ...], "want": [...], "cut": true}]}
 *
 * id: the upper half is 0 where no span knows it. begin: of the first span, since 1970. spans: that
 * were given out, or sent before. have: their ids; want: parents' that are not among them. cut: it
 * had more than ONLY_SPANS_MAX spans, or there were ONLY_LISTED_MAX of all traces: have is of the
 * first ones, and want is empty, as nobody knows. more: spans of traces beyond ONLY_FOUND_MAX.
 * Times: of the events that were read, wanted or not; 0: none.
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

/*
 * The traces that the file names; found: where it is told what of them there was, or NULL. Removes
 * what an earlier run has told there. Returns NULL with error set.
 */
struct only *only_open(const char *path, const char *found, struct error *error);

/* The same of what such a file has; its name is for errors. */
struct only *only_of_text(struct text text, const char *name, const char *found,
                          struct error *error);

void only_free(struct only *only); /* NULL is allowed */

/* Is an event of this trace, recorded at this time, wanted? trace_id_high 0: not known. */
bool only_wants(const struct only *only, uint64_t trace_id_high, uint64_t trace_id,
                int64_t time_ns);

/* Was a span of this trace, recorded at this time, sent before? */
bool only_was_sent(const struct only *only, const struct span *span);

/* Of each event that was read. */
void only_note_time(struct only *only, int64_t time_ns);

/* Why its trace is wanted; empty: it is not. As long as only is. */
struct text only_why(const struct only *only, uint64_t trace_id_high, uint64_t trace_id);

/* What the wall clock is ahead of CLOCK_MONOTONIC, in ns; 0: it is not told. */
int64_t only_clock(const struct only *only);

/* What is told names so many traces at most; the file's "untold" says how many more there were.
 * Before the first event. */
void only_tell_of(struct only *only, uint64_t traces);

/* Each span that is given out, or was sent before. */
void only_note(struct only *only, const struct span *span);

/* Nothing is to be told: true. Returns false with error set. */
bool only_write_found(struct only *only, struct error *error);

#endif

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
 * of the trace's clock as babeltrace2 gives it); 0: no limit. WHY: the rest of the line, the tag's
 * value, up to 200 bytes. A line that is wrong is an error that names it.
 *
 * Parameter only-found: a file that is written (whole, at once) when all of the trace is read,
 * before what waits is delivered:
 *
 *     {"oldest": NS, "newest": NS, "traces": [{"id": "32 hex digits", "spans": 3,
 *       "have": ["16 hex digits", ...], "want": [...], "cut": true}]}
 *
 * have: the spans' ids; want: parents' that are not among them; cut: it had more than
 * ONLY_SPANS_MAX spans, of which only the first are listed. Times: of the events that were read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ONLY_H
#define BLKIN_ONLY_H

#include "core/event.h"
#include "core/span.h"
#include "error.h"

#include <stdbool.h>

#define ONLY_SPANS_MAX 4096 /* of a trace, in the list of what was found */

struct only;

/* Returns NULL with error set. */
struct only *only_open(const char *path, struct error *error);
void only_free(struct only *only); /* NULL is allowed */

/* Is the event of a trace that is wanted, and of its time? */
bool only_wants(struct only *only, const struct event *event);

/* Why its trace is wanted; NULL: it is not. As long as only is. */
const char *only_why(const struct only *only, uint64_t trace_id_high, uint64_t trace_id);

/* Each span that is given out. */
void only_note(struct only *only, const struct span *span);

/* Returns false with error set. */
bool only_write_found(struct only *only, const char *path, struct error *error);

#endif

/*
 * A selection: the wanted traces, and the spans found of them. Spans of wanted traces get the tag
 * "blkin.kept" with the reason.
 *
 * Found spans, as JSON:
 *
 *     {"untold": 0, "traces": [{"id": "32 hex digits", "begin": NS, "spans": 3,
 *       "have": ["16 hex digits", ...], "want": [...], "cut": true}]}
 *
 * - untold: the number of traces beyond the limit of selection_limit_traces().
 * - id: the upper half is 0 if no span has it. begin: of the first span, in ns since 1970.
 * - spans: the number of spans that are sent, or were sent before. have: their ids.
 * - want: the ids of parents that are not among them.
 * - cut: the trace had more than SELECTION_SPANS_MAX spans, or all traces had SELECTION_LISTED_MAX
 *   spans. Then have is incomplete and want is empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SELECTION_H
#define BLKIN_TOOLS_SELECTION_H

#include "babeltrace-plugin/spans/span.h"
#include "trace_id.h"

#include <stdbool.h>

#define SELECTION_FOUND_MAX  65536      /* traces in the list */
#define SELECTION_SPANS_MAX  4096       /* spans of a trace */
#define SELECTION_LISTED_MAX (1U << 20) /* spans of all traces */

struct selection;

/* Returns NULL when out of memory. */
struct selection *selection_new(void);
void selection_free(struct selection *selection); /* NULL is allowed */

/*
 * Adds a trace that is wanted, or whose spans were sent before: such spans are noted as found, and
 * not sent again. id NULL: all traces. An id without the upper half fits all ids with the same
 * lower half. from_ns, until_ns: the time of the events, in ns since 1970; from_ns is included,
 * until_ns is not; 0: no limit. why: the value of the tag; NULL: the spans were sent before. The
 * reason that was added first wins. Returns false when out of memory.
 */
bool selection_add(struct selection *selection, const struct trace_id *id, int64_t from_ns,
                   int64_t until_ns, const char *why);

/* Returns true if an event of this trace and time is wanted. trace_id_high 0: not known. */
bool selection_wants(const struct selection *selection, uint64_t trace_id_high, uint64_t trace_id,
                     int64_t time_ns);

/* Returns true if the span was sent before. */
bool selection_was_sent(const struct selection *selection, const struct span *span);

/* Returns the reason for the trace, or an empty text. The text lives as long as the selection. */
struct text selection_why(const struct selection *selection, uint64_t trace_id_high,
                          uint64_t trace_id);

/* Limits the number of listed traces, which is SELECTION_FOUND_MAX at first. Called before the
 * first span. */
void selection_limit_traces(struct selection *selection, uint64_t traces);

/* Notes a span that is sent, or was sent before. */
void selection_note(struct selection *selection, const struct span *span);

/* Returns the found spans; NULL when out of memory. Called once. */
json_t *selection_found(struct selection *selection);

#endif

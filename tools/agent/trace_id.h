/*
 * Ids of traces and spans, as texts and in sets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TRACE_ID_H
#define BLKIN_TOOLS_TRACE_ID_H

#include "tools/base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_id {
    uint64_t high, low;
};

#define TRACE_ID_TEXT 33

/* An upper half of 0 is equal to any, because events of the original have only the lower half. */
static inline bool trace_id_equal(struct trace_id a, struct trace_id b)
{
    return a.low == b.low && (a.high == b.high || !a.high || !b.high);
}

/* Writes 32 hexadecimal digits. */
void trace_id_text(struct trace_id id, char text[TRACE_ID_TEXT]);

/* Reads 1 to 32 hexadecimal digits. Returns false for another text, or if all digits are 0. */
bool trace_id_read(const char *text, struct trace_id *id);

/* Returns the id of a span as a text of 16 hexadecimal digits; NULL: out of memory. */
json_t *span_id_json(uint64_t id);

/* A sorted set of span ids. */
struct ids {
    uint64_t *list;
    size_t count, room;
};

bool ids_have(const struct ids *ids, uint64_t id);

/* Returns the number of ids in `want` that are not in `have`. *first: the smallest of them. */
size_t ids_missing(const struct ids *want, const struct ids *have, uint64_t *first);

#define TRACE_IDS_MAX 4096

/* The found spans of a trace. */
struct trace_spans {
    int64_t begin_ns; /* since 1970: the begin of the first span; 0: not known */
    uint64_t spans;
    struct ids have, want; /* the spans, and their parents: TRACE_IDS_MAX of each */
    bool is_cut;           /* `have` or `want` is incomplete */
};

/* Adds found spans: {"begin", "spans", "have": [...], "want": [...], "cut"}, see selection.h. */
void trace_spans_add(struct trace_spans *trace, const json_t *found);
void trace_spans_free(struct trace_spans *trace);

#endif

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
/* Adds the ids of a JSON array of texts of 1 to 16 hexadecimal digits. Ignores other elements.
 * Returns false if ids are missing: out of memory, or beyond `max` ids in the set. */
bool ids_add_all(struct ids *ids, const json_t *list, size_t max);
void ids_free(struct ids *ids);

/* Returns the number of ids in `want` that are not in `have`. *first: the smallest of them. */
size_t ids_missing(const struct ids *want, const struct ids *have, uint64_t *first);

#endif

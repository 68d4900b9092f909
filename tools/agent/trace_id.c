/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_id.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void trace_id_text(struct trace_id id, char text[TRACE_ID_TEXT])
{
    (void)snprintf(text, TRACE_ID_TEXT, "%016" PRIx64 "%016" PRIx64, id.high, id.low);
}

bool trace_id_read(const char *text, struct trace_id *id)
{
    return hex_read_trace(text_of(text), &id->high, &id->low);
}

json_t *span_id_json(uint64_t id)
{
    return json_sprintf("%016" PRIx64, id);
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Returns the index of the id, or the index at which the id must be inserted. */
static size_t ids_index(const struct ids *ids, uint64_t id)
{
    size_t low = 0, high = ids->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (ids->list[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool ids_have(const struct ids *ids, uint64_t id)
{
    const size_t at = ids_index(ids, id);

    return at < ids->count && ids->list[at] == id;
}

/* Returns false when out of memory, or if the set has TRACE_IDS_MAX ids already. */
static bool ids_add(struct ids *ids, uint64_t id)
{
    const size_t at = ids_index(ids, id);

    if (at < ids->count && ids->list[at] == id)
        return true;
    if (ids->count >= TRACE_IDS_MAX || !ARRAY_FITS(ids->list, ids->room, ids->count))
        return false;
    memmove(ids->list + at + 1, ids->list + at, (ids->count - at) * sizeof(*ids->list));
    ids->list[at] = id;
    ids->count++;
    return true;
}

/* Adds the ids of a JSON array of texts of 1 to 16 hexadecimal digits. Ignores other elements.
 * Returns false if ids are missing: out of memory, or beyond TRACE_IDS_MAX. */
static bool ids_add_all(struct ids *ids, const json_t *list)
{
    const json_t *text;
    bool are_all = true;
    size_t i;

    json_array_foreach(list, i, text)
    {
        uint64_t id;

        if (hex_read(text_of(json_string_value(text)), &id))
            are_all &= ids_add(ids, id);
    }
    return are_all;
}

size_t ids_missing(const struct ids *want, const struct ids *have, uint64_t *first)
{
    size_t missing = 0;

    for (size_t i = 0; i < want->count; i++) {
        if (!ids_have(have, want->list[i]) && missing++ == 0)
            *first = want->list[i];
    }
    return missing;
}

/* ---- found spans ----------------------------------------------------------------------------- */

void trace_spans_add(struct trace_spans *trace, const json_t *found)
{
    const int64_t begin_ns = number_in(found, "begin"), spans = number_in(found, "spans");

    if (begin_ns > 0 && (trace->begin_ns == 0 || begin_ns < trace->begin_ns))
        trace->begin_ns = begin_ns;
    trace->spans += spans > 0 ? (uint64_t)spans : 0;
    trace->is_cut |= json_is_true(json_object_get(found, "cut"));
    trace->is_cut |= !ids_add_all(&trace->have, json_object_get(found, "have"));
    trace->is_cut |= !ids_add_all(&trace->want, json_object_get(found, "want"));
}

void trace_spans_free(struct trace_spans *trace)
{
    free(trace->have.list);
    free(trace->want.list);
}

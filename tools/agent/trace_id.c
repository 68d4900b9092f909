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

/* Returns false when out of memory, or if the set has `max` ids already. */
static bool ids_add(struct ids *ids, uint64_t id, size_t max)
{
    const size_t at = ids_index(ids, id);

    if (at < ids->count && ids->list[at] == id)
        return true;
    if (ids->count >= max)
        return false;
    if (!ARRAY_FITS(ids->list, ids->room, ids->count))
        return false;
    memmove(ids->list + at + 1, ids->list + at, (ids->count - at) * sizeof(*ids->list));
    ids->list[at] = id;
    ids->count++;
    return true;
}

bool ids_add_all(struct ids *ids, const json_t *list, size_t max)
{
    const json_t *text;
    bool are_all = true;
    size_t i;

    json_array_foreach(list, i, text)
    {
        uint64_t id;

        if (hex_read(text_of(json_string_value(text)), &id))
            are_all &= ids_add(ids, id, max);
    }
    return are_all;
}

void ids_free(struct ids *ids)
{
    free(ids->list);
    *ids = (struct ids){.count = 0};
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

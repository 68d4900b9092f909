/*
 * The order in which the spans of a batch are sent.
 *
 * A counting sort by resource, then one by key. Each numbers the values as they come, and keeps the
 * order of equal spans, so the last sort has the highest priority.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "queue.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/encode/resource.h"

/* Arrays with a member for each span, all in one block of memory. */
struct arranging {
    uint32_t count;
    uint64_t *values; /* what the spans are sorted by */
    uint64_t *seen;   /* the value of each number */
    uint32_t *offsets;
    uint32_t *numbers;
    uint32_t *places; /* where the next span of a number goes */
    uint32_t *from;   /* the indexes of spans before a sort */
    uint32_t *to;     /* and after it */
    uint32_t *table;  /* a hash table of values: number + 1; 0: free */
    uint32_t mask;
};

static uint32_t arrange_table_size(uint32_t count)
{
    uint32_t size = 8;

    while (size < 2 * count)
        size *= 2;
    return size;
}

static bool arrange_prepare(struct arranging *arranging, size_t count)
{
    const uint32_t size = arrange_table_size((uint32_t)count);
    uint64_t *longs = malloc(count * 2 * sizeof(uint64_t) + (count * 5 + size) * sizeof(uint32_t));
    uint32_t *words;

    if (!longs)
        return false;
    words = (uint32_t *)(longs + 2 * count);
    *arranging = (struct arranging){
        .count = (uint32_t)count,
        .values = longs,
        .seen = longs + count,
        .offsets = words,
        .numbers = words + count,
        .places = words + 2 * count,
        .from = words + 3 * count,
        .to = words + 4 * count,
        .table = words + 5 * count,
        .mask = size - 1,
    };
    return true;
}

/* Returns how many different values there are. */
static uint32_t arrange_number_values(struct arranging *arranging)
{
    uint32_t found = 0;

    memset(arranging->table, 0, (arranging->mask + (size_t)1) * sizeof(*arranging->table));
    for (uint32_t i = 0; i < arranging->count; i++) {
        const uint64_t value = arranging->values[i];
        uint32_t slot = (uint32_t)hash_mix(value) & arranging->mask;

        while (arranging->table[slot] && arranging->seen[arranging->table[slot] - 1] != value)
            slot = (slot + 1) & arranging->mask;
        if (!arranging->table[slot]) {
            arranging->seen[found] = value;
            arranging->table[slot] = ++found;
        }
        arranging->numbers[i] = arranging->table[slot] - 1;
    }
    return found;
}

/* Returns false if all values are equal, so that the order stays. */
static bool arrange_sort(struct arranging *arranging)
{
    const uint32_t numbers = arrange_number_values(arranging);
    uint32_t *const sorted = arranging->to;
    uint32_t place = 0;

    if (numbers == 1)
        return false;
    memset(arranging->places, 0, numbers * sizeof(*arranging->places));
    for (uint32_t i = 0; i < arranging->count; i++)
        arranging->places[arranging->numbers[i]]++;
    for (uint32_t i = 0; i < numbers; i++) {
        const uint32_t here = arranging->places[i];

        arranging->places[i] = place;
        place += here;
    }
    for (uint32_t i = 0; i < arranging->count; i++) {
        const uint32_t index = arranging->from[i];

        sorted[arranging->places[arranging->numbers[index]]++] = index;
    }
    arranging->to = arranging->from;
    arranging->from = sorted;
    return true;
}

static void arrange_keep_order(struct batch *batch, const struct arranging *arranging,
                               uint32_t keys)
{
    if (!ARRAY_FITS(batch->order, batch->order_room, arranging->count))
        return;
    for (uint32_t i = 0; i < arranging->count; i++) {
        const uint32_t index = arranging->from[i];

        batch->order[i] =
            (struct batch_order){arranging->offsets[index], (uint32_t)arranging->values[index]};
    }
    batch->ordered = arranging->count;
    batch->keys = keys;
}

/* Two resources with the same hash would only make a longer request. */
static uint64_t arrange_resource_value(const struct span *span)
{
    const struct resource resource = resource_of(span);

    return resource_hash(0, &resource);
}

static bool arrange_by_resource(struct arranging *arranging, struct batch *batch)
{
    struct batch_place place = {0};

    for (uint32_t i = 0; i < arranging->count; i++) {
        arranging->from[i] = i;
        arranging->offsets[i] = (uint32_t)place.offset;
        arranging->values[i] = arrange_resource_value(batch_span(batch, &place));
    }
    return arrange_sort(arranging);
}

static bool arrange_by_key(struct arranging *arranging, struct batch *batch, batch_key_fn *key,
                           void *context)
{
    struct batch_place place = {0};

    for (uint32_t i = 0; i < arranging->count; i++)
        arranging->values[i] = key(context, batch_span(batch, &place));
    return arrange_sort(arranging);
}

void batch_arrange(struct batch *batch, batch_key_fn *key, void *context, uint32_t keys)
{
    struct arranging arranging;
    bool is_sorted;

    if (batch->ordered || batch->next_span.index || batch->count < 2 ||
        !arrange_prepare(&arranging, batch->count))
        return;
    is_sorted = arrange_by_resource(&arranging, batch);
    if (key)
        is_sorted |= arrange_by_key(&arranging, batch, key, context);
    if (is_sorted)
        arrange_keep_order(batch, &arranging, key ? keys : 0);
    free(arranging.values);
}

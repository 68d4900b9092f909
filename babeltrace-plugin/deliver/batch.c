/*
 * Batches of finished spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "queue.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/encode/encoder.h"

/* One batch is being filled, one waits, one is being sent. Only a slow collector needs more. */
#define BATCH_POOL_MAX 3

/* ---- a batch --------------------------------------------------------------------------------- */

static void batch_free(struct batch *batch)
{
    if (!batch)
        return;
    buffer_free(&batch->buffer);
    free(batch->order);
    free(batch);
}

/* Returns the bytes of a span with its log, a multiple of 8. */
static size_t batch_span_size(const struct span *span)
{
    return sizeof(*span) + ((span->log_length + 7) & ~(size_t)7);
}

static bool batch_add(struct batch *batch, const struct span *span)
{
    const size_t size = batch_span_size(span);
    struct span *copy;

    if (!buffer_reserve(&batch->buffer, size))
        return false;
    copy = (struct span *)(void *)(batch->buffer.data + batch->buffer.length);
    *copy = *span;
    if (span->log_length)
        memcpy(copy + 1, span->log, span->log_length);
    batch->buffer.length += size;
    batch->count++;
    return true;
}

static bool batch_is_end(const struct batch *batch, const struct batch_position *position)
{
    return batch->ordered ? position->index == batch->ordered
                          : position->offset == batch->buffer.length;
}

const struct span *batch_span(struct batch *batch, struct batch_position *position)
{
    struct span *span;

    if (batch_is_end(batch, position))
        return NULL;
    if (batch->ordered)
        position->offset = batch->order[position->index];
    span = (struct span *)(void *)(batch->buffer.data + position->offset);
    span->log = (char *)(span + 1); /* not in batch_add(): the block moves when it grows */
    position->offset += batch_span_size(span);
    position->index++;
    return span;
}

bool batch_has_more(const struct batch *batch)
{
    return !batch_is_end(batch, &batch->next_span);
}

/* ---- the order in which the spans of a batch are sent: a counting sort by resource ----------- */

/* Arrays for the spans and their resources, all in one block of memory. */
struct arranging {
    uint64_t *seen;    /* the hash of each resource that was numbered */
    uint32_t *offsets; /* of the spans in the batch */
    uint32_t *numbers; /* of their resources */
    uint32_t *next;    /* the number of a resource's spans, then the position of its next span */
    uint32_t *table;   /* a hash table of resources: number + 1; 0: free */
    uint32_t mask;
};

static bool arrange_prepare(struct arranging *arranging, size_t count)
{
    uint32_t size = 8;

    while (size < 2 * count)
        size *= 2;
    arranging->seen = malloc(count * sizeof(uint64_t) + (3 * count + size) * sizeof(uint32_t));
    if (!arranging->seen)
        return false;
    arranging->offsets = (uint32_t *)(arranging->seen + count);
    arranging->numbers = arranging->offsets + count;
    arranging->next = arranging->numbers + count;
    arranging->table = arranging->next + count;
    arranging->mask = size - 1;
    memset(arranging->table, 0, size * sizeof(*arranging->table));
    return true;
}

/* Two resources with the same hash get one number: their spans stay mixed, which costs bytes. */
static uint32_t arrange_number(struct arranging *arranging, const struct span *span,
                               uint32_t *resources)
{
    const struct resource resource = resource_of(span);
    const uint64_t hash = resource_hash(0, &resource);
    uint32_t slot = (uint32_t)hash_mix(hash) & arranging->mask;

    while (arranging->table[slot] && arranging->seen[arranging->table[slot] - 1] != hash)
        slot = (slot + 1) & arranging->mask;
    if (!arranging->table[slot]) {
        arranging->seen[*resources] = hash;
        arranging->next[*resources] = 0;
        arranging->table[slot] = ++*resources;
    }
    return arranging->table[slot] - 1;
}

void batch_arrange(struct batch *batch)
{
    struct batch_position position = {0};
    struct arranging arranging;
    uint32_t resources = 0, next = 0;

    if (batch->ordered || batch->next_span.index || batch->count < 2 ||
        !ARRAY_FITS(batch->order, batch->order_room, batch->count) ||
        !arrange_prepare(&arranging, batch->count))
        return;
    for (uint32_t i = 0; i < batch->count; i++) {
        arranging.offsets[i] = (uint32_t)position.offset;
        arranging.numbers[i] = arrange_number(&arranging, batch_span(batch, &position), &resources);
        arranging.next[arranging.numbers[i]]++;
    }
    for (uint32_t i = 0; i < resources; i++) {
        const uint32_t spans = arranging.next[i];

        arranging.next[i] = next;
        next += spans;
    }
    for (uint32_t i = 0; i < batch->count; i++)
        batch->order[arranging.next[arranging.numbers[i]]++] = arranging.offsets[i];
    batch->ordered = resources > 1 ? batch->count : 0;
    free(arranging.seen);
}

/* ---- the list of batches --------------------------------------------------------------------- */

static void batch_free_linked(struct batch *batch)
{
    while (batch) {
        struct batch *next = batch->next;

        batch_free(batch);
        batch = next;
    }
}

void batch_list_clear(struct batch_list *batches)
{
    batch_free(batches->open);
    batch_free_linked(batches->first);
    batch_free_linked(batches->pool);
    batches->open = batches->first = batches->last = batches->pool = NULL;
    batches->pool_length = 0;
    batches->bytes = 0;
}

/* Reuses a batch: the kernel clears new pages, which costs more than filling the batch. */
static struct batch *batch_list_new_batch(struct batch_list *batches)
{
    struct batch *batch = batches->pool;

    if (!batch)
        return calloc(1, sizeof(*batch));
    batches->pool = batch->next;
    batches->pool_length--;
    batch->next = NULL;
    return batch;
}

void batch_list_recycle(struct batch_list *batches, struct batch *batch)
{
    if (batches->pool_length >= BATCH_POOL_MAX ||
        batch->buffer.capacity > 2 * batches->batch_bytes) {
        batch_free(batch);
        return;
    }
    batch->buffer.length = 0;
    batch->count = 0;
    batch->next_span = (struct batch_position){0};
    batch->ordered = 0;
    batch->next = batches->pool;
    batches->pool = batch;
    batches->pool_length++;
}

bool batch_list_add(struct batch_list *batches, const struct span *span, uint64_t number)
{
    struct batch *open = batches->open ? batches->open : batch_list_new_batch(batches);
    const size_t before = open ? open->buffer.length : 0;

    if (!open)
        return false;
    if (!batch_add(open, span)) {
        if (!batches->open)
            batch_list_recycle(batches, open);
        return false;
    }
    if (!batches->open) {
        open->first_ms = clock_ms();
        open->first = number;
    }
    batches->open = open;
    batches->bytes += open->buffer.length - before;
    if (open->count >= batches->batch_spans || open->buffer.length >= batches->batch_bytes) {
        if (batches->last)
            batches->last->next = open;
        else
            batches->first = open;
        batches->last = open;
        batches->open = NULL;
    }
    return true;
}

struct batch *batch_list_take(struct batch_list *batches, bool also_open)
{
    struct batch *batch = batches->first;

    if (batch) {
        batches->first = batch->next;
        if (!batches->first)
            batches->last = NULL;
    } else if (also_open && batches->open) {
        batch = batches->open;
        batches->open = NULL;
    }
    if (batch) {
        batch->next = NULL;
        batches->bytes -= batch->buffer.length;
    }
    return batch;
}

void batch_list_put_back(struct batch_list *batches, struct batch *batch)
{
    batch->next = batches->first;
    batches->first = batch;
    if (!batches->last)
        batches->last = batch;
    batches->bytes += batch->buffer.length;
}

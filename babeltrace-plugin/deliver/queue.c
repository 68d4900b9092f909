/*
 * The queue of batches.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "queue.h"

#include "babeltrace-plugin/base/monotonic.h"

/* One batch is being filled, one waits, one is being sent; only a slow collector needs more. */
#define POOL_MAX 3

/* ---- a batch --------------------------------------------------------------------------------- */

static void batch_free(struct batch *batch)
{
    if (!batch)
        return;
    buffer_free(&batch->buffer);
    free(batch->order);
    free(batch);
}

static void batch_reset(struct batch *batch)
{
    batch->next = NULL;
    batch->buffer.length = 0;
    batch->count = 0;
    batch->next_span = (struct batch_place){0};
    batch->ordered = batch->keys = 0;
}

/* The bytes of a span with its log, a multiple of 8. */
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

const struct span *batch_span(struct batch *batch, struct batch_place *place)
{
    struct span *span;

    if (place->index < batch->ordered) {
        place->offset = batch->order[place->index].offset;
        place->key = batch->order[place->index].key;
    } else if (batch->ordered) {
        return NULL;
    }
    if (place->offset == batch->buffer.length)
        return NULL;
    span = (struct span *)(void *)(batch->buffer.data + place->offset);
    span->log = (char *)(span + 1); /* not in batch_add(): the block moves when it grows */
    place->offset += batch_span_size(span);
    place->index++;
    return span;
}

bool batch_has_more(const struct batch *batch)
{
    return batch->ordered ? batch->next_span.index < batch->ordered
                          : batch->next_span.offset < batch->buffer.length;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void queue_free_list(struct batch *batch)
{
    while (batch) {
        struct batch *next = batch->next;

        batch_free(batch);
        batch = next;
    }
}

void queue_clear(struct queue *queue)
{
    batch_free(queue->open);
    queue_free_list(queue->first);
    queue_free_list(queue->pool);
    queue->open = queue->first = queue->last = queue->pool = NULL;
    queue->pool_length = 0;
    queue->bytes = 0;
}

/* Fresh memory would cost more than filling the batch, as the kernel clears its pages. */
static struct batch *queue_new_batch(struct queue *queue)
{
    struct batch *batch = queue->pool;

    if (!batch)
        return calloc(1, sizeof(*batch));
    queue->pool = batch->next;
    queue->pool_length--;
    batch->next = NULL;
    return batch;
}

void queue_recycle(struct queue *queue, struct batch *batch)
{
    if (queue->pool_length >= POOL_MAX || batch->buffer.capacity > 2 * queue->batch_bytes) {
        batch_free(batch);
        return;
    }
    batch_reset(batch);
    batch->next = queue->pool;
    queue->pool = batch;
    queue->pool_length++;
}

static void queue_close_open(struct queue *queue)
{
    if (queue->last)
        queue->last->next = queue->open;
    else
        queue->first = queue->open;
    queue->last = queue->open;
    queue->open = NULL;
}

bool queue_add(struct queue *queue, const struct span *span, uint64_t number)
{
    struct batch *open = queue->open ? queue->open : queue_new_batch(queue);
    const size_t before = open ? open->buffer.length : 0;

    if (!open)
        return false;
    if (!batch_add(open, span)) {
        if (!queue->open)
            queue_recycle(queue, open);
        return false;
    }
    if (!queue->open) {
        open->first_ms = clock_ms();
        open->first = number;
    }
    queue->open = open;
    queue->bytes += open->buffer.length - before;
    if (open->count >= queue->batch_spans || open->buffer.length >= queue->batch_bytes)
        queue_close_open(queue);
    return true;
}

struct batch *queue_take(struct queue *queue, bool also_open)
{
    struct batch *batch = queue->first;

    if (batch) {
        queue->first = batch->next;
        if (!queue->first)
            queue->last = NULL;
    } else if (also_open && queue->open) {
        batch = queue->open;
        queue->open = NULL;
    }
    if (batch) {
        batch->next = NULL;
        queue->bytes -= batch->buffer.length;
    }
    return batch;
}

void queue_put_back(struct queue *queue, struct batch *batch)
{
    batch->next = queue->first;
    queue->first = batch;
    if (!queue->last)
        queue->last = batch;
    queue->bytes += batch->buffer.length;
}

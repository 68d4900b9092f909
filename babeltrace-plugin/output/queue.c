/*
 * The queue of batches.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "queue.h"

#include "../monotonic.h"

/* One being filled, one being sent, one on its way between them: more are needed in trouble only.
 */
#define POOL_MAX 3

static void free_list(struct batch *batch)
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
    free_list(queue->first);
    free_list(queue->pool);
    queue->open = queue->first = queue->last = queue->pool = NULL;
    queue->pool_length = 0;
    queue->bytes = 0;
}

/* Fresh memory for each batch would cost more than filling it: the kernel clears its pages. */
static struct batch *empty_batch(struct queue *queue)
{
    struct batch *batch = queue->pool;

    if (!batch)
        return batch_new();
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

static void close_open(struct queue *queue)
{
    if (queue->last)
        queue->last->next = queue->open;
    else
        queue->first = queue->open;
    queue->last = queue->open;
    queue->open = NULL;
}

bool queue_add(struct queue *queue, const struct span *span)
{
    struct batch *open = queue->open ? queue->open : empty_batch(queue);
    const size_t before = open ? open->buffer.length : 0;

    if (!open)
        return false;
    if (!batch_add(open, span)) {
        if (!queue->open)
            queue_recycle(queue, open);
        return false;
    }
    if (!queue->open)
        open->first_ms = clock_ms();
    queue->open = open;
    queue->bytes += open->buffer.length - before;
    if (open->count >= queue->batch_spans || open->buffer.length >= queue->batch_bytes)
        close_open(queue);
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

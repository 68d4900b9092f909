/*
 * The queue of batches.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "queue.h"

#include "clock.h"

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

/* A fresh buffer for each batch would cost more than filling it: the kernel clears its pages. */
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

static size_t length_of(const struct queue *queue, const struct batch *batch)
{
    return batch->buffer.length + queue->encoder->close.length;
}

/* The span that makes a batch too long begins the next one. */
static void split_if_too_long(struct queue *queue)
{
    struct batch *full = queue->open;
    struct batch *next;

    if (full->count < 2 || length_of(queue, full) <= queue->batch_bytes)
        return;
    next = empty_batch(queue);
    if (!next)
        return; /* too long is better than lost */
    if (!batch_move_last(full, next, queue->encoder)) {
        queue_recycle(queue, next);
        return;
    }
    next->first_ms = clock_ms();
    close_open(queue);
    queue->open = next;
    queue->bytes += next->buffer.length;
}

bool queue_add(struct queue *queue, const struct span *span, bool *cut)
{
    struct batch *open = queue->open ? queue->open : empty_batch(queue);
    const size_t before = open ? open->buffer.length : 0;

    if (!open)
        return false;
    if (!batch_add(open, queue->encoder, span, cut)) {
        if (!queue->open)
            queue_recycle(queue, open);
        return false;
    }
    if (!queue->open)
        open->first_ms = clock_ms();
    queue->open = open;
    split_if_too_long(queue);
    queue->bytes += open->buffer.length;
    queue->bytes -= before;
    if (queue->open->count >= queue->batch_spans ||
        length_of(queue, queue->open) >= queue->batch_bytes)
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

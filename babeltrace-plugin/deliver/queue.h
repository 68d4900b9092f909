/*
 * Batches of finished spans, and a queue of them: the one that is being filled and those that are
 * full, oldest first. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_QUEUE_H
#define BLKIN_OUTPUT_QUEUE_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/spans/span.h"

/* Zeros are the first span's. */
struct batch_place {
    size_t offset;
    uint32_t index;
    uint32_t key; /* of the span before, once they are in the order of keys: see batch_arrange() */
};

/*
 * Spans that wait together, one after the other in one block of memory, which is written by one
 * thread's processor and read by another's.
 */
struct batch {
    struct batch *next;
    struct buffer buffer;         /* each span is followed by its log */
    uint32_t count;               /* of spans without an outcome; in the queue, all are */
    int64_t first_ms;             /* when the first span came */
    uint64_t first;               /* its number: how many spans came before */
    uint32_t taken;               /* spans in it when it was last taken out of the queue */
    struct batch_place next_span; /* the first one that is not encoded yet */

    /* Where the spans lie, in the order in which they are sent, once that is another one than they
     * came in: see batch_arrange(). */
    struct batch_order {
        uint32_t offset;
        uint32_t key;
    } * order;
    uint32_t order_capacity;
    uint32_t ordered; /* how many; 0: it is as they came */
    uint32_t keys;    /* the key is one of so many; 0: there is none */
};

/* The span at the place, which moves on to the next. NULL: there is none. */
const struct span *batch_span(struct batch *batch, struct batch_place *place);

/* Are there spans that are not encoded yet? */
bool batch_has_more(const struct batch *batch);

/*
 * Puts the spans in an order in which those of one resource are neighbours and, before that, those
 * of one key, if key is not NULL: one of `keys`; the rest stays as it was. Only for a batch none of
 * whose spans is encoded. Without memory for it they stay as they are.
 */
typedef uint32_t batch_key_fn(void *context, const struct span *span);
void batch_arrange(struct batch *batch, batch_key_fn *key, void *context, uint32_t keys);

struct queue {
    uint32_t batch_spans; /* a batch is full with this many spans */
    size_t batch_bytes;   /* or this many bytes of memory */
    struct batch *open;   /* NULL or not empty */
    struct batch *first;  /* full */
    struct batch *last;
    struct batch *pool; /* empty, with their memory */
    unsigned pool_length;
    size_t bytes; /* of memory, in all that are not empty */
};

/* Frees everything in it. */
void queue_clear(struct queue *queue);

/*
 * Adds a copy of the span, before which number others came. Returns false, queue unchanged, when
 * out of memory.
 */
bool queue_add(struct queue *queue, const struct span *span, uint64_t number);

/* The oldest batch, or NULL; the open one only if also_open. It is the caller's now. */
struct batch *queue_take(struct queue *queue, bool also_open);

/* Puts a batch that was taken back in as the oldest, and as a full one. */
void queue_put_back(struct queue *queue, struct batch *batch);

/* Gives a batch that is done with back, for its memory. */
void queue_recycle(struct queue *queue, struct batch *batch);

#endif

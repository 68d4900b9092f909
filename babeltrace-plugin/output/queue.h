/*
 * The batch that is being filled and those that are full, oldest first. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_QUEUE_H
#define BLKIN_OUTPUT_QUEUE_H

#include "batch.h"

struct queue {
    struct encoder *encoder;
    uint32_t batch_spans; /* a batch has at most this many spans */
    size_t batch_bytes;   /* and this many bytes, unless one span alone has more */
    struct batch *open;   /* NULL or not empty */
    struct batch *first;  /* full */
    struct batch *last;
    struct batch *pool; /* empty, with their memory */
    unsigned pool_length;
    size_t bytes; /* in all that are not empty */
};

/* Frees everything in it; the encoder is the caller's. */
void queue_clear(struct queue *queue);

/* Returns false, queue unchanged, when out of memory. */
bool queue_add(struct queue *queue, const struct span *span, bool *cut);

/* The oldest batch, or NULL; the open one only if also_open. It is the caller's now. */
struct batch *queue_take(struct queue *queue, bool also_open);

/* Gives a batch that is done with back, for its memory. */
void queue_recycle(struct queue *queue, struct batch *batch);

#endif

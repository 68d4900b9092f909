/*
 * Batches of finished spans, and a list of them: the batch that is being filled, and the full
 * batches, oldest first. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_BATCH_H
#define BLKIN_OUTPUT_BATCH_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/spans/span.h"

/* A position in a batch. Zeros are the position of the first span. */
struct batch_position {
    size_t offset;
    uint32_t index;
};

/* Spans that wait together, one after the other in one block of memory. */
struct batch {
    struct batch *next;
    struct buffer buffer;            /* each span is followed by its log */
    uint32_t count;                  /* spans without an outcome; in the queue, all spans */
    int64_t first_ms;                /* when the first span came */
    uint64_t first;                  /* how many spans came before the first one */
    uint32_t taken;                  /* spans in it when a thread last took it out of the queue */
    struct batch_position next_span; /* the first span that is not encoded yet */

    uint32_t ordered; /* members of order, in which spans are sent: see batch_arrange(); 0: none */
    uint32_t *order;  /* offsets */
    size_t order_room;
};

/* Returns the span at the position, and moves the position to the next span. NULL: no more
 * spans. */
const struct span *batch_span(struct batch *batch, struct batch_position *position);

/* Returns true if spans are left that are not encoded yet. */
bool batch_has_more(const struct batch *batch);

/*
 * Sorts the spans by resource. Spans of one resource keep their order. The order does not change
 * when out of memory, nor after spans of the batch were encoded: the spooler may have put back a
 * batch of which the disk took a part.
 */
void batch_arrange(struct batch *batch);

struct batch_list {
    uint32_t batch_spans; /* a batch is full with this many spans */
    size_t batch_bytes;   /* or this many bytes of memory */
    struct batch *open;   /* being filled; NULL: the next span begins one */
    struct batch *first;  /* full batches, the oldest first */
    struct batch *last;
    struct batch *pool; /* empty batches, for reuse */
    unsigned pool_length;
    size_t bytes; /* of all spans in the list */
};

/* Frees everything in it. */
void batch_list_clear(struct batch_list *batches);

/* Adds a copy of the span. number: the number of earlier spans. Returns false when out of memory:
 * the list stays as it is. */
bool batch_list_add(struct batch_list *batches, const struct span *span, uint64_t number);

/* Takes the oldest batch out, and the open batch only if also_open. The caller owns the batch. May
 * return NULL. */
struct batch *batch_list_take(struct batch_list *batches, bool also_open);

/* Puts a taken batch back as the oldest full batch. */
void batch_list_put_back(struct batch_list *batches, struct batch *batch);

/* Takes an empty batch back, for reuse. */
void batch_list_recycle(struct batch_list *batches, struct batch *batch);

#endif

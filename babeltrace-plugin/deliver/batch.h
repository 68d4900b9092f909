/*
 * Batches of finished spans, and a list of them: the one that is being filled and those that are
 * full, oldest first. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_BATCH_H
#define BLKIN_OUTPUT_BATCH_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/spans/span.h"

/* A position in a batch. Zeros are the position of the first span. */
struct batch_place {
    size_t offset;
    uint32_t index;
};

/* Spans that wait together, one after the other in one block of memory. */
struct batch {
    struct batch *next;
    struct buffer buffer;         /* each span is followed by its log */
    uint32_t count;               /* spans without an outcome; in the queue, all spans */
    int64_t first_ms;             /* when the first span came */
    uint64_t first;               /* how many spans came before the first one */
    uint32_t taken;               /* spans in it when a thread last took it out of the queue */
    struct batch_place next_span; /* the first span that is not encoded yet */

    uint32_t ordered; /* members of order, in which spans are sent: see batch_arrange(); 0: none */
    uint32_t *order;  /* offsets */
    size_t order_room;
};

/* Returns the span at the place, and moves the place to the next span. NULL: no more spans. */
const struct span *batch_span(struct batch *batch, struct batch_place *place);

/* Are there spans that are not encoded yet? */
bool batch_has_more(const struct batch *batch);

/*
 * Sorts the spans so that those of one resource are neighbours. Spans of one resource keep their
 * order. The order stays as it is when out of memory, and once spans of the batch were encoded: the
 * spooler may have put back a batch that the disk took a part of.
 */
void batch_arrange(struct batch *batch);

struct batch_list {
    uint32_t batch_spans; /* a batch is full with this many spans */
    size_t batch_bytes;   /* or this many bytes of memory */
    struct batch *open;   /* being filled; NULL: the next span begins one */
    struct batch *first;  /* full ones, the oldest first */
    struct batch *last;
    struct batch *pool; /* empty ones that keep their memory */
    unsigned pool_length;
    size_t bytes; /* of all spans in the list */
};

/* Frees everything in it. */
void batch_list_clear(struct batch_list *batches);

/* Adds a copy of the span; number: how many spans came before. Returns false, queue unchanged, when
 * out of memory. */
bool batch_list_add(struct batch_list *batches, const struct span *span, uint64_t number);

/* Takes the oldest batch out; the open one only if also_open. The caller owns it. May be NULL. */
struct batch *batch_list_take(struct batch_list *batches, bool also_open);

/* Puts a taken batch back as the oldest of the full ones. */
void batch_list_put_back(struct batch_list *batches, struct batch *batch);

/* Takes a batch back that is no longer needed, to use its memory again. */
void batch_list_recycle(struct batch_list *batches, struct batch *batch);

#endif

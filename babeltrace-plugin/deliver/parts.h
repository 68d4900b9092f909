/*
 * Parts of a body, for a transport with partitions: a part becomes one message, so its spans are of
 * one partition, and it is no longer than a message may be. Parts can be framed in any order.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_PARTS_H
#define BLKIN_OUTPUT_PARTS_H

#include "body.h"

struct part {
    uint32_t first, end; /* in the body */
    uint32_t partition;
};

/* Zeros are none. */
struct parts {
    uint32_t partitions; /* how many the transport has; 0: not known yet, and all is one part */
    struct part_limits limits;
    struct part *list;
    uint32_t count;
    size_t room;
    uint64_t last_trace[2]; /* spans of one trace often come together */
    uint32_t last_partition;
};

/* Empties the list, but keeps the memory. */
void parts_reset(struct parts *parts, uint32_t partitions, const struct part_limits *limits);
void parts_free(struct parts *parts);

/* The partition of a span: also a batch_key_fn. */
uint32_t parts_key(void *parts, const struct span *span);

/* body_add(), and begins another part where needed; partition: of parts_key(). */
bool parts_add(struct parts *parts, struct body *body, struct encoder *encoder,
               const struct span *span, uint32_t partition, bool *cut);

/* After body_remove_last() or body_reset(). */
void parts_trim(struct parts *parts, const struct body *body);

/*
 * For spans that are encoded already: copies the spans from first up to, not including, end into
 * the empty body `arranged`, sorted by partition. Returns false when out of memory.
 */
bool parts_arrange(struct parts *parts, const struct body *body, struct encoder *encoder,
                   uint32_t first, uint32_t end, struct body *arranged);

#endif

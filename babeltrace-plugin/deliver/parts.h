/*
 * Parts of a body: runs of spans of one partition each, and no longer than one message may be, as a
 * transport with partitions takes them. Each can be framed whatever was framed before.
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
    uint32_t partitions; /* by how many; 0: it is not known yet, and all is one part */
    struct part_limits limits;
    struct part *list;
    uint32_t count;
    uint32_t capacity;
    uint64_t last_trace[2]; /* spans of one trace often come together */
    uint32_t last_partition;
};

/* Empties them; the memory is kept. */
void parts_reset(struct parts *parts, uint32_t partitions, const struct part_limits *limits);
void parts_free(struct parts *parts);

/* The partition of a span: also a batch_key_fn. */
uint32_t parts_key(void *parts, const struct span *span);

/* body_add(), which begins another part where that is needed; of parts_key(). */
bool parts_add(struct parts *parts, struct body *body, struct encoder *encoder,
               const struct span *span, uint32_t partition, bool *cut);

/* After body_remove_last() or body_reset(). */
void parts_trim(struct parts *parts, const struct body *body);

/*
 * For spans that are encoded: copies those from first up to, not including, end into the empty body
 * `arranged`, in the order of their partitions. Returns false when out of memory.
 */
bool parts_arrange(struct parts *parts, const struct body *body, struct encoder *encoder,
                   uint32_t first, uint32_t end, struct body *arranged);

#endif

/*
 * Parts of a body: runs of spans of one partition each, as a transport with partitions takes them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_PARTS_H
#define BLKIN_OUTPUT_PARTS_H

#include "body.h"

/* As many are under way at once. */
#define PARTS_MAX 256

struct part {
    uint32_t first, end; /* in the body */
    uint32_t partition;
    struct reply reply;
};

struct parts {
    uint32_t partitions; /* by how many it was divided; 0: it is not known, and all is one part */
    uint32_t *of_span;   /* the partition of each, for all from `first` on; NULL: no memory */
    uint32_t first;
    uint32_t capacity;
    uint32_t count;
    struct part part[PARTS_MAX];
};

struct parts *parts_new(void); /* NULL when out of memory */
void parts_free(struct parts *parts);

/*
 * Puts the spans from first up to, not including, end in the order of their partitions, if they are
 * not; without memory for that, the parts are more and smaller. The spans of one partition stay in
 * the order that they are in.
 */
void parts_arrange(struct parts *parts, struct body *body, const struct encoder *encoder,
                   uint32_t first, uint32_t end, uint32_t partitions);

/*
 * After that: finds the parts of at most so many spans and bytes from first on, PARTS_MAX at most.
 * Returns where the last one ends.
 */
uint32_t parts_divide(struct parts *parts, const struct body *body, const struct encoder *encoder,
                      uint32_t first, uint32_t end, const struct part_limits *limits);

#endif

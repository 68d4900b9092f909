/*
 * A walk over a span's log: its records and its steps.
 *
 * The log is all that is known of the steps that are open: who wants their numbers walks.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_WALK_H
#define BLKIN_WALK_H

#include "span.h"

/* Of the record that is here, if it is one: see events.h. */
size_t blkin_record_size(const char *at);

/* A step that is open where the walk has come to. */
struct walk_step {
    const char *first; /* its records: that of its number, if it has one, ... */
    const char *begin; /* ... and its begin */
    uint32_t number;
};

struct walk {
    const char *at;
    const char *end;
    uint32_t number; /* of the last step */
    unsigned depth;
    struct walk_step open[SPAN_DEPTH_MAX];
};

/* From the log's begin. */
void blkin_walk_begin(struct walk *walk, const struct span *inside);

/*
 * To the next step that ends: it is open[depth]. Returns the record of its end; NULL where the log
 * ends: the steps below `depth` are still open.
 */
const char *blkin_walk(struct walk *walk);

#endif

/*
 * Finds the files of a chunk that babeltrace2 cannot read, and moves them to OUTPUT/damaged.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_DAMAGE_H
#define BLKIN_TOOLS_ROTATE_DAMAGE_H

#include "store.h"
#include "tools/base/child.h"

#define DAMAGE_LIMIT_MS (30 * 60 * 1000)

struct damage_order {
    struct store store; /* only its folders */
    struct chunk chunk;
    uint64_t max_bytes; /* of the folder damaged: the oldest go */
};

struct damage_result {
    uint64_t files, bytes; /* moved; 0: all of it can be read */
    bool reads_nothing;    /* not a good trace either: so nothing was moved */
};

/* A task: its order is a struct damage_order, its result a struct damage_result. */
extern const struct job damage_job;

/* What it starts in turn. */
extern const struct job damage_read_job;

#endif

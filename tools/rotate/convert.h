/*
 * Converts one chunk after the other, the oldest first, in a child of its own each. A chunk is
 * deleted when its child says that all of it is delivered; how far one is that was not, is in the
 * sink's checkpoint. After failures that are the chunk's own fault, what cannot be read is put
 * aside (damage.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_CONVERT_H
#define BLKIN_TOOLS_ROTATE_CONVERT_H

#include "damage.h"

#include "store.h"
#include "tools/base/reader_account.h"
#include "tools/base/saver.h"
#include "tools/config/config.h"
#include "tools/reader/reader.h"
#include "totals.h"

struct converter {
    struct loop *loop;
    struct store *store;
    const struct config *config;
    struct rotate_totals *totals;
    char totals_file[4096], checkpoint[4096];
    char tap[128];
    struct reader reader; /* its stats_file is set by who opens it */
    struct timer retry;
    struct task damage_task;
    struct saver_wait saved; /* until the state is on disk: then it goes on */
    struct chunk chunk;      /* the one at hand; name "": none */
    int64_t trace_ns;        /* of its totals, when the last chunk was done */
    bool gives_up;           /* the child only tells the sink that a chunk is gone */
    bool is_last;            /* the child sends what is still open: nothing will follow */
    bool was_looked_at;      /* for damage */
    bool is_damage_task;
    bool is_stopping;
    unsigned failures; /* of this chunk, one after the other, without progress */
    /* Nothing runs any more: it asks for the next. */
    void (*idle)(void *context);
    void *context;
};

extern const struct job converter_job;

/* spool-fsync is "second", which a checkpoint does not allow: see doc/delivery.md. */
bool rotate_fsync_is_batch(const struct config *config);

void converter_open(struct converter *converter);

/* Something runs, or waits to be tried again. */
bool converter_is_busy(const struct converter *converter);

/* When idle: begins with this chunk. */
void converter_take(struct converter *converter, const struct chunk *chunk);

/* When idle, after the last chunk: sends what is open. idle() is called when it is done. */
void converter_finish(struct converter *converter);

/* Ends the child, which delivers what it has read within flush-timeout-ms. */
void converter_stop(struct converter *converter);

/* The account of all children, the one that runs included. */
struct counts converter_counts(const struct converter *converter);

#endif

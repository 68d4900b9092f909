/*
 * What the two source files of the spool share: its state.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SPOOL_PARTS_H
#define BLKIN_OUTPUT_SPOOL_PARTS_H

#include "spool.h"

#include <pthread.h>

struct spool {
    struct spool_options options; /* folder is a copy */
    uint64_t segment_bytes;
    struct span_queue *queue;
    int lock_fd;
    int64_t time_offset_ms;      /* time of the spool - time since boot: see spool_log.h */
    pthread_mutex_t append_lock; /* before lock */
    pthread_mutex_t lock;        /* of what follows; before the queue's */
    pthread_cond_t changed;
    struct spool_segments segments;
    struct segment *reading; /* the first one with records that no sender has taken; NULL: none */
    struct segment *writing; /* the last one, if the spool appends to it */
    struct spool_counts counts;
    unsigned in_flight;    /* records that senders have */
    int64_t away_since_ms; /* 0: the collector answers, or was not asked */
    int64_t hold_until_ms; /* the collector has asked for a pause until then */
    uint64_t answers;      /* of the collector, about records */
    int64_t sync_due_ms;
    uint64_t foreign;  /* spans that the folder had, in another format */
    int64_t newest_ms; /* when the newest record that the folder had was written; 0: none */
    bool is_stopped;
};

/* Tells the queue whether new batches go to the spool. The caller holds the lock. */
void spool_set_way(struct spool *spool);

#endif

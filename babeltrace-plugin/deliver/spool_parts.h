/*
 * Private declarations of the spool.
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
    int64_t time_offset_ms;      /* time of the spool minus time since boot: see spool_log.h */
    pthread_mutex_t append_lock; /* locked before `lock` */
    pthread_mutex_t lock;        /* protects the members below; locked before the queue's lock */
    pthread_cond_t changed;
    struct spool_segments segments;
    struct segment *reading; /* the first segment with records that no sender has; NULL: none */
    struct segment *writing; /* the last segment, if the spool appends to it */
    struct spool_counts counts;
    unsigned in_flight;     /* records that senders have */
    int64_t away_since_ms;  /* 0: the collector answers, or was not asked */
    int64_t pause_until_ms; /* the collector has asked for a pause until then */
    uint64_t answers;       /* of the collector, to records */
    int64_t sync_due_ms;
    uint64_t foreign;  /* spans in the folder, in another format */
    int64_t newest_ms; /* time of the newest record found in the folder; 0: none */
    bool is_stopped;
};

/* Tells the queue whether new batches go to the spool. The caller holds the lock. */
void spool_set_route(struct spool *spool);

#endif

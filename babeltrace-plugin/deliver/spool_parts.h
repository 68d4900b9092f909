/*
 * What the files of the spool share: its state, and what they do with it under its lock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SPOOL_PARTS_H
#define BLKIN_OUTPUT_SPOOL_PARTS_H

#include "spool.h"

#include "spool_segment.h"

#include <pthread.h>

struct spool {
    struct spool_options options; /* folder is a copy */
    uint64_t segment_bytes;
    struct outbox *outbox;
    int lock_fd;
    int64_t time_offset_ms;      /* from the time since boot to the spool's: see spool_time.h */
    pthread_mutex_t append_lock; /* before lock */
    pthread_mutex_t lock;        /* of what follows; before the outbox's */
    pthread_cond_t changed;
    struct segments segments;
    struct segment *reading; /* the first of which not all was given out; NULL: none */
    struct segment *writing; /* the last one, if it is appended to */
    struct spool_counts counts;
    unsigned in_flight;    /* records */
    int64_t away_since_ms; /* 0: the collector answers, or was not asked */
    int64_t hold_until_ms; /* it has asked for this pause */
    uint64_t answers;
    int64_t sync_due_ms;
    uint64_t foreign;  /* spans that were found, and are written otherwise */
    int64_t newest_ms; /* of what was found; 0: nothing */
    bool is_stopped;
};

/*
 * Unlinks and closes files that are used up. The lock is held before and after, but not meanwhile:
 * a disk may take its time. Returns whether there were any.
 */
bool spool_reap(struct spool *spool);
void spool_reap_and_unlock(struct spool *spool);

/* The caller of all that follows holds the lock. */

/* Tells the outbox what is to be done with batches that come. */
void spool_set_way(struct spool *spool);

/* These spans of the segment do not wait any more. */
void spool_leave(struct spool *spool, const struct segment *segment, uint64_t spans, bool is_lost);

/* All records of the segment were given out and are done. */
bool spool_is_used_up(const struct spool *spool, const struct segment *segment);

void spool_remove_segment(struct spool *spool, struct segment *segment);

/* The caller had a record of the segment, or has stored it on disk. */
void spool_release_segment(struct spool *spool, struct segment *segment);

/* Closes a file that nobody reads or writes now: there may be many. */
void spool_close_idle(const struct spool *spool, struct segment *segment);

bool spool_is_too_old(const struct spool *spool, int64_t written_ms);

#endif

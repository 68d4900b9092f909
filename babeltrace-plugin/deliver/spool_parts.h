/*
 * What the source files of the spool share: its state, and functions that need its lock.
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
    int64_t time_offset_ms;      /* time of the spool - time since boot: see spool_time.h */
    pthread_mutex_t append_lock; /* before lock */
    pthread_mutex_t lock;        /* of what follows; before the outbox's */
    pthread_cond_t changed;
    struct segments segments;
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

/*
 * Unlinks and closes files that are used up. The caller holds the lock; the function gives it up
 * while the disk works. Returns whether there were such files.
 */
bool spool_reap(struct spool *spool);
void spool_reap_and_unlock(struct spool *spool);

/* The caller of all functions below holds the lock. */

/* Tells the outbox whether new batches go to the spool. */
void spool_set_way(struct spool *spool);

/* The collector does not answer, or records cannot be read now: no record is sent for so long. It
 * also keeps spool_wait() from waiting for ever. */
void spool_set_away(struct spool *spool, int64_t pause_ms);

/* So many spans of the segment have stopped waiting. */
void spool_leave(struct spool *spool, const struct segment *segment, uint64_t spans, bool is_lost);

/* Are all records of the segment done? */
bool spool_is_used_up(const struct spool *spool, const struct segment *segment);

void spool_remove_segment(struct spool *spool, struct segment *segment);

/* The caller gives up its use of the segment: it had a record, or has stored the file on disk. */
void spool_release_segment(struct spool *spool, struct segment *segment);

/* Closes the file if no thread uses it now, as a spool may have many files. */
void spool_close_idle(const struct spool *spool, struct segment *segment);

bool spool_is_too_old(const struct spool *spool, int64_t written_ms);

#endif

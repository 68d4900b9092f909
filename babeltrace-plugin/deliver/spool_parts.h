/*
 * Private declarations of the spool.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_SPOOL_PARTS_H
#define BLKIN_DELIVER_SPOOL_PARTS_H

#include "spool.h"

#include <pthread.h>
#include <urcu/list.h>

#define SEGMENT_DIGITS    16 /* hexadecimal, so the names are in the order of the numbers */
#define SEGMENT_SUFFIX    ".spool"
#define SEGMENT_NAME_SIZE (SEGMENT_DIGITS + sizeof(SEGMENT_SUFFIX))

struct segment {
    struct cds_list_head in_list; /* of segments, or of removed */
    char name[SEGMENT_NAME_SIZE]; /* of the file */
    uint64_t size;                /* bytes with records */
    uint64_t read_at;             /* senders have taken all records before */
    uint64_t spans;               /* in the records from read_at on */
    int64_t newest_ms;            /* when the last record was written, since 1970 */
    unsigned users;  /* threads that use a record, or write, store or remove the file */
    int fd;          /* -1: not open */
    bool is_own;     /* written by this exporter */
    bool is_dirty;   /* needs an fdatasync(2) */
    bool is_left;    /* has a record that only the next exporter sends */
    bool is_removed; /* no longer in the list of segments */
    bool is_unlinked;
    bool is_named;  /* the folder's entry is on disk, too */
    bool is_unsure; /* the disk failed to store the file: a power cut may lose records */
};

struct spool {
    struct spool_options options; /* folder is a copy */
    uint64_t segment_bytes;
    struct span_queue *queue;
    int folder_fd, lock_fd;
    int64_t time_offset_ms;      /* time of the spool minus time since boot: see spool_log.h */
    pthread_mutex_t append_lock; /* locked before `lock` */
    pthread_mutex_t lock;        /* protects the members below; locked before the queue's lock */
    pthread_cond_t changed;
    struct cds_list_head segments; /* oldest first */
    struct cds_list_head removed;  /* to unlink or to free, without the lock */
    uint64_t next_number;
    uint64_t bytes;          /* of all files */
    struct segment *reading; /* the first segment with records that no sender has; NULL: none */
    struct segment *writing; /* the last segment, if the spool appends to it */
    struct spool_counts counts;
    unsigned in_flight;                 /* records that senders have */
    int64_t away_since_ms;              /* 0: the collector answers, or was not asked */
    const struct spool_record *retried; /* its sender retries for all; NULL: none */
    int64_t pause_until_ms;             /* the collector has asked for a pause until then */
    uint64_t answers;                   /* of the collector, to records */
    int64_t sync_due_ms;
    uint64_t foreign;  /* spans in the folder, in another format */
    int64_t newest_ms; /* time of the newest record found in the folder; 0: none */
    bool is_stopped;
};

/* ---- spool_files.c. The caller holds the lock ------------------------------------------------ */

/* Returns the segment after this one, or the oldest one for NULL. Returns NULL at the end. */
struct segment *spool_next(const struct spool *spool, const struct segment *segment);

/* Adds a segment to the list, which is in the order of names. Returns NULL with errno set. */
struct segment *spool_add_segment(struct spool *spool, const char *name);

/* Opens the file if it is not open. Returns false with errno set. */
bool segment_open(const struct spool *spool, struct segment *segment, int flags);

/* Ends the caller's use of the segment. */
void spool_release_segment(struct spool *spool, struct segment *segment);

/* Returns true if all records of the segment are done. */
bool spool_is_used_up(const struct spool *spool, const struct segment *segment);

void spool_remove_segment(struct spool *spool, struct segment *segment);

/* Unlinks the files of removed segments, and frees segments that nobody uses. Unlocks while the
 * disk works. Returns whether there were any. */
bool spool_reap(struct spool *spool);

/* Unlocks after spool_reap(). */
void spool_unlock(struct spool *spool);

/* ---- spool.c --------------------------------------------------------------------------------- */

/* Tells the queue whether new batches go to the spool. The caller holds the lock. */
void spool_set_route(struct spool *spool);

#endif

/*
 * The files of a spool, oldest first. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SPOOL_SEGMENT_H
#define BLKIN_OUTPUT_SPOOL_SEGMENT_H

#include "spool_record.h"

struct segment {
    struct segment *next;
    uint64_t number;
    uint64_t size;      /* bytes that hold records */
    uint64_t read_at;   /* senders have taken all records before */
    uint64_t spans;     /* in the records from there on */
    int64_t newest_ms;  /* when the last record was written, since 1970 */
    unsigned in_flight; /* threads that have a record of it, or store or remove it */
    int fd;             /* -1: not open */
    bool is_own;        /* this sink has written it */
    bool is_dirty;      /* needs an fdatasync(2) */
    bool is_busy;       /* a thread is appending to it */
    bool is_left;       /* has a record that only the next sink sends */
    bool is_removed;    /* is not in the list any more */
    bool is_unlinked;
    bool is_named;  /* the folder's entry is on disk, too */
    bool is_unsure; /* the disk failed to store it: a power cut may lose records */
};

struct segments {
    int folder_fd;
    struct segment *first;
    struct segment *last;
    uint64_t next_number;
    uint64_t bytes;          /* of all files */
    struct segment *removed; /* wait for being unlinked or freed, without a lock */
};

/* Makes the list of the files in the folder. Returns false with errno set. */
bool segments_find(struct segments *segments);

/* Makes a new file at the end of the list, and opens it. Returns NULL with errno set. */
struct segment *segments_add(struct segments *segments);

/* Returns false with errno set. */
bool segment_open(const struct segments *segments, struct segment *segment);

/* Stores the folder's entry of a new file on disk. Returns false with errno set. */
bool segment_name(const struct segments *segments, struct segment *segment);

/*
 * Takes the segment out of the list; its file is still there. segments_begin_reap() returns the
 * next segment to unlink or free, which needs no lock. segments_end_reap() returns whether the
 * caller can free it: no thread has a record of it any more.
 */
void segments_remove(struct segments *segments, struct segment *segment);
struct segment *segments_begin_reap(struct segments *segments);
void segment_unlink(const struct segments *segments, struct segment *segment);
bool segments_end_reap(struct segment *segment);

/* Puts a removed segment, of which no thread has a record any more, on the list to be freed. */
void segments_forget(struct segments *segments, struct segment *segment);

/* Closes its file, and frees it. */
void segment_free(struct segment *segment);

/* Files stay. */
void segments_free(struct segments *segments);

#endif

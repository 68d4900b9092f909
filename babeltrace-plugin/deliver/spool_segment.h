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
    uint64_t read_at;   /* what is before was given out */
    uint64_t spans;     /* in what was not */
    int64_t newest_ms;  /* when the last record was written, since 1970 */
    unsigned in_flight; /* records that somebody has */
    int fd;             /* -1: not open */
    bool is_own;        /* this sink has written it */
    bool is_dirty;      /* there is something to fsync */
    bool is_busy;       /* is being appended to */
    bool is_left;       /* what somebody had is to be sent by the next sink */
    bool is_removed;    /* on its way out, or without a file */
    bool is_unlinked;
    bool is_named;  /* that it has its name is on disk, too */
    bool is_unsure; /* the disk has failed to store it: what is in it may be gone after a cut */
};

struct segments {
    int folder_fd;
    struct segment *first;
    struct segment *last;
    uint64_t next_number;
    uint64_t bytes;          /* of all files */
    struct segment *removed; /* to be unlinked, or freed, without a lock */
};

/* Those that are in the folder. Returns false with errno set. */
bool segments_find(struct segments *segments);

/* A new, open one at the end. Returns NULL with errno set. */
struct segment *segments_add(struct segments *segments);

/* Returns false with errno set. */
bool segment_open(const struct segments *segments, struct segment *segment);

/* That a new one has its name is on disk. Returns false with errno set. */
bool segment_name(const struct segments *segments, struct segment *segment);

/*
 * Takes the segment out of the list. Its file is still there: segments_begin_reap() gives what is
 * to be unlinked or freed, the work itself needs no lock, and segments_end_reap() returns whether
 * it can be freed, as nobody has a record of it.
 */
void segments_remove(struct segments *segments, struct segment *segment);
struct segment *segments_begin_reap(struct segments *segments);
void segment_unlink(const struct segments *segments, struct segment *segment);
bool segments_end_reap(struct segment *segment);

/* Of one that was removed nobody has a record any more: it waits for being freed. */
void segments_forget(struct segments *segments, struct segment *segment);

/* Closes its file, and frees it. */
void segment_free(struct segment *segment);

/* Files stay. */
void segments_free(struct segments *segments);

#endif

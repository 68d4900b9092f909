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
    bool is_removed;    /* of no file any more */
};

struct segments {
    int folder_fd;
    struct segment *first;
    struct segment *last;
    uint64_t next_number;
    uint64_t bytes; /* of all files */
};

/* Those that are in the folder. Returns false with errno set. */
bool segments_find(struct segments *segments);

/* A new, open one at the end. Returns NULL with errno set. */
struct segment *segments_add(struct segments *segments);

/* Returns false with errno set. */
bool segment_open(const struct segments *segments, struct segment *segment);

/* Removes the file, and takes the segment out of the list; frees it unless records are in flight.
 */
void segments_remove(struct segments *segments, struct segment *segment);

/* Closes its file, and frees it. */
void segment_free(struct segment *segment);

/* Files stay. */
void segments_free(struct segments *segments);

#endif

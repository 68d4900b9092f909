/*
 * The spool's log: a list of files, the segments, oldest first. Batches are appended to the last
 * one as records. Not thread-safe.
 *
 * A record is one encoded batch. All numbers are little endian. A record is a head, then an
 * uint32_t for each span that says where the span begins in the text, then the text: units of a
 * body, without the frame. zlib compresses the text if that makes it shorter.
 *
 * A reader skips bytes that are no record, up to the next head. It knows a head by its magic
 * number, which no UTF-8 text contains, and by its checksum.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SPOOL_LOG_H
#define BLKIN_OUTPUT_SPOOL_LOG_H

#include "babeltrace-plugin/encode/protocol.h"
#include "body.h"

#include <pthread.h>
#include <stddef.h>

/* ---- records --------------------------------------------------------------------------------- */

/* As it is in the file. */
struct record_head {
    uint32_t magic;
    uint32_t state;     /* in no checksum, as record_mark_done() overwrites it */
    uint32_t head_sum;  /* CRC-32 of the rest of the head */
    uint32_t body_sum;  /* of the starts and the text */
    int64_t written_ms; /* since 1970 */
    uint32_t spans;
    uint32_t length; /* of the text */
    uint32_t stored; /* of the text in the file; if equal to length: not compressed */
    uint32_t format; /* of the spans: 0 is Zipkin's JSON, 1 OTLP */
};

#define RECORD_MAGIC UINT32_C(0xffbeb1f1)
#define RECORD_WAITS UINT32_C(0)
#define RECORD_DONE  UINT32_C(0x656e6f64) /* "done" */

#define RECORD_LENGTH_MAX (UINT32_C(1) << 30)

/* Spans of a body: starts[i] - starts[0] is where span i begins in the text. */
struct record_body {
    enum protocol_format format;
    const uint32_t *starts;
    uint32_t spans;
    struct text text;
};

/* A whole record, as it is to be written. */
struct record_bytes {
    char *data; /* free() it */
    size_t length;
};

/* Returns no data when out of memory, or if the text is too long. */
struct record_bytes record_make(const struct record_body *body, int64_t now_ms);

static inline uint64_t record_size(const struct record_head *head)
{
    return sizeof(*head) + (uint64_t)head->spans * sizeof(uint32_t) + head->stored;
}

enum record_found {
    RECORD_COMPLETE,
    RECORD_TORN,       /* the head is right, but the file ends before the record does */
    RECORD_UNREADABLE, /* bytes that are no record were skipped */
    RECORD_END,
};

/*
 * Looks at *at in the file, but not beyond end, and moves *at to where the next record may be. For
 * RECORD_COMPLETE and RECORD_TORN, sets head, in the machine's byte order, and *where to its place.
 */
enum record_found record_next(int fd, uint64_t *at, uint64_t end, struct record_head *head,
                              uint64_t *where);

enum record_loaded { RECORD_LOADED, RECORD_CORRUPT, RECORD_NO_MEMORY };

/* Loads the spans of the record into body. */
enum record_loaded record_load(int fd, uint64_t where, const struct record_head *head,
                               const struct encoder *encoder, struct body *body);

/* The member format of a head. */
static inline uint32_t record_format(enum protocol_format format)
{
    return (uint32_t)(format - FORMAT_ZIPKIN);
}

/* No sink will send the record again. */
void record_mark_done(int fd, uint64_t where);

/* ---- segments -------------------------------------------------------------------------------- */

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

struct spool_segments {
    int folder_fd;
    struct segment *first;
    struct segment *last;
    uint64_t next_number;
    uint64_t bytes;          /* of all files */
    struct segment *removed; /* wait for being unlinked or freed, without a lock */
};

/* Makes the list of the files in the folder. Returns false with errno set. */
bool segments_find(struct spool_segments *segments);

/* Makes a new file at the end of the list, and opens it. Returns NULL with errno set. */
struct segment *segments_add(struct spool_segments *segments);

/* Returns false with errno set. */
bool segment_open(const struct spool_segments *segments, struct segment *segment);

/* Stores the folder's entry of a new file on disk. Returns false with errno set. */
bool segment_name(const struct spool_segments *segments, struct segment *segment);

/* Takes the segment out of the list. Its file is there until segments_reap(). */
void segments_remove(struct spool_segments *segments, struct segment *segment);

/* Puts a removed segment, of which no thread has a record any more, on the list to be freed. */
void segments_forget(struct spool_segments *segments, struct segment *segment);

/*
 * Unlinks and closes the files of removed segments. The caller holds the lock; the function gives
 * it up while the disk works. Returns whether there were any.
 */
bool segments_reap(struct spool_segments *segments, pthread_mutex_t *lock);

/* Files stay. */
void segments_free(struct spool_segments *segments);

/* ---- time ------------------------------------------------------------------------------------ */

/*
 * The time of a spool, which tells the age of records. The wall clock cannot: after a boot it may
 * be wrong until NTP sets it, and then all records would be too old at once.
 *
 * A spool's time runs with the time since boot, which no step of the wall clock changes. The file
 * "lock" holds the offset between the two, and the id of the boot for which the offset holds. After
 * another boot, the spool's time continues at its newest record. So the time that the host was off
 * does not count, as nothing can tell it from a step of the clock. Without records, the spool's
 * time begins with the wall clock.
 */
int64_t boot_time_ms(void);

/* The time of the spool is boot_time_ms() plus this. fd: of the file "lock"; newest_ms: when the
 * newest record was written, 0: there is none. */
int64_t spool_time_offset_ms(int fd, int64_t newest_ms);

#endif

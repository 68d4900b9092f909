/*
 * The records in a spool's files.
 *
 * A record is one encoded batch. All numbers are little endian. A record is a head, then the offset
 * of each span in the text (uint32_t), then the text: units of a body, without the frame. zlib
 * compresses the text if that makes it shorter.
 *
 * A reader skips invalid bytes up to the next head. A head has a magic number, which no UTF-8 text
 * contains, and a checksum.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_SPOOL_LOG_H
#define BLKIN_DELIVER_SPOOL_LOG_H

#include "babeltrace-plugin/encode/encoder.h"
#include "body.h"

#include <stddef.h>

/* ---- records --------------------------------------------------------------------------------- */

/* The head as the file has it. */
struct record_head {
    uint32_t magic;
    uint32_t state;     /* in no checksum, because record_mark_done() overwrites it */
    uint32_t head_sum;  /* CRC-32 of the rest of the head */
    uint32_t body_sum;  /* of the starts and the text */
    int64_t written_ms; /* since 1970 */
    uint32_t spans;
    uint32_t length; /* of the text */
    uint32_t stored; /* of the text in the file; if equal to length, not compressed */
    uint32_t format; /* of the spans: 0 is Zipkin's JSON, 1 OTLP */
};

#define RECORD_MAGIC UINT32_C(0xffbeb1f1)
#define RECORD_WAITS UINT32_C(0)
#define RECORD_DONE  UINT32_C(0x656e6f64) /* "done" */

#define RECORD_LENGTH_MAX (UINT32_C(1) << 30)

/* Spans of a body. In the text, span i begins at starts[i] - starts[0]. */
struct record_body {
    enum protocol_format format;
    const uint32_t *starts;
    uint32_t spans;
    struct text text;
};

/* A whole record, ready for writing. */
struct record_bytes {
    char *data; /* for free() */
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
    RECORD_TORN,       /* the head is valid, but the file ends before the record ends */
    RECORD_UNREADABLE, /* invalid bytes were skipped */
    RECORD_END,
};

/*
 * Reads a record at *at, but not beyond end, and moves *at to the next possible record. For
 * RECORD_COMPLETE and RECORD_TORN, sets head, in the machine's byte order, and *where to the
 * offset.
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

/* Marks the record: no exporter sends it again. */
void record_mark_done(int fd, uint64_t where);

/* ---- time ------------------------------------------------------------------------------------ */

/*
 * The time of a spool, for the age of records. The wall clock is no measure: after a boot it may be
 * wrong until NTP sets it, and then all records would be too old at once.
 *
 * A spool's time runs with the time since boot, which no step of the wall clock changes. The file
 * "lock" has the offset between the two, and the id of the boot. After another boot, the spool's
 * time continues at its newest record: the time while the host was off does not count, because it
 * looks like a step of the clock. Without records, the spool's time begins with the wall clock.
 */

/* Returns the time since boot. */
int64_t boot_time_ms(void);

/* Returns the offset of the spool's time from boot_time_ms(). fd: of the file "lock"; newest_ms:
 * the time of the newest record, 0: none. */
int64_t spool_time_offset_ms(int fd, int64_t newest_ms);

#endif

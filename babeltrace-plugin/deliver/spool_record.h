/*
 * A record of the spool: one encoded batch in a file.
 *
 * All numbers are little endian. A record is a head, then an uint32_t for each span that says where
 * the span begins in the text, then the text: units of a body, without the frame. zlib compresses
 * the text if that makes it shorter.
 *
 * A reader skips bytes that are no record, up to the next head. It knows a head by its magic
 * number, which no UTF-8 text contains, and by its checksum.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SPOOL_RECORD_H
#define BLKIN_OUTPUT_SPOOL_RECORD_H

#include "babeltrace-plugin/encode/protocol.h"
#include "body.h"

#include <stddef.h>

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
    enum format format;
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
    RECORD_WHOLE,
    RECORD_TORN,       /* the head is right, but the file ends before the record does */
    RECORD_UNREADABLE, /* bytes that are no record were skipped */
    RECORD_END,
};

/*
 * Looks at *at in the file, but not beyond end, and moves *at to where the next record may be. For
 * RECORD_WHOLE and RECORD_TORN, sets head, in the machine's byte order, and *where to its place.
 */
enum record_found record_next(int fd, uint64_t *at, uint64_t end, struct record_head *head,
                              uint64_t *where);

enum record_loaded { RECORD_LOADED, RECORD_CORRUPT, RECORD_NO_MEMORY };

/* Loads the spans of the record into body. */
enum record_loaded record_load(int fd, uint64_t where, const struct record_head *head,
                               const struct encoder *encoder, struct body *body);

/* The member format of a head. */
static inline uint32_t record_format(enum format format)
{
    return (uint32_t)(format - FORMAT_ZIPKIN);
}

/* No sink will send the record again. */
void record_mark_done(int fd, uint64_t where);

#endif

/*
 * A record of the spool: one encoded batch in a file, and how the next one is found.
 *
 * All numbers are little endian. A record is its head, then where each span begins in the text
 * (uint32_t each), then the text: units of a body that can be framed, without what is around them,
 * compressed by zlib unless that would not make it shorter.
 * What is not a record is passed over up to the next head; a head is known by its magic number,
 * which is in no UTF-8 text, and its checksum.
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
    uint32_t state;     /* written over when it is done, and so in no checksum */
    uint32_t head_sum;  /* CRC-32 of what follows */
    uint32_t body_sum;  /* of the starts and the text */
    int64_t written_ms; /* since 1970 */
    uint32_t spans;
    uint32_t length; /* of the text */
    uint32_t stored; /* the same as it is in the file; as long: not compressed */
    uint32_t format; /* how the spans are written: 0 is Zipkin's JSON, 1 OTLP */
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
    RECORD_TORN,       /* its head is well, but it ends only after the file's end */
    RECORD_UNREADABLE, /* something else was passed over */
    RECORD_END,
};

/*
 * What is at *at in a file, of which end bytes are to be looked at; *at moves on to where the next
 * may be. head is set, in the machine's order, for the first two, and *where to where it is.
 */
enum record_found record_next(int fd, uint64_t *at, uint64_t end, struct record_head *head,
                              uint64_t *where);

enum record_loaded { RECORD_LOADED, RECORD_CORRUPT, RECORD_NO_MEMORY };

/* The record's spans, as a body that can be sent. */
enum record_loaded record_load(int fd, uint64_t where, const struct record_head *head,
                               const struct encoder *encoder, struct body *body);

/* How the spans of a record are written. */
static inline uint32_t record_format(enum format format)
{
    return (uint32_t)(format - FORMAT_ZIPKIN);
}

/* Nobody sends it again. */
void record_mark_done(int fd, uint64_t where);

#endif

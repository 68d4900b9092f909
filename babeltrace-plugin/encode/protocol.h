/*
 * Protocols: how spans are written for those who take them, and what their answers mean. All that
 * is one back end's way is told here and in its encoder: transports know none of them by name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_PROTOCOL_H
#define BLKIN_OUTPUT_PROTOCOL_H

#include "encoder.h"

#include <stdbool.h>
#include <stdint.h>

/* As the parameter "format" has them. */
enum protocol_format {
    FORMAT_AUTO, /* what the endpoint's path tells; else Zipkin's */
    FORMAT_ZIPKIN,
    FORMAT_OTLP,
    FORMATS /* a new one goes before this: a spool has the number */
};

/* What of an answer that accepts a batch was refused all the same, for good. */
struct rejection {
    uint64_t spans;
    struct text why; /* a piece of the answer: any bytes */
};

struct protocol {
    enum protocol_format format;
    const char *name;     /* the parameter's value */
    const char *peer;     /* for messages: "a Zipkin collector" */
    const char *endpoint; /* where one is unless it is told */
    const char *path;     /* of a URL that has none */
    const char *content_type;
    struct text empty_batch; /* to see whether a collector takes it */

    /*
     * Answers. 2xx is accepted if is_answer() knows it for this protocol's, 400 is about something
     * in the batch, 413 about its size, all others are refusals, but those in `again`: not now, the
     * same may be sent once more. Of them the `suspect` may be the fault of the very batch, not of
     * the peer's state. Both end in 0.
     */
    const short *again;
    const short *suspect;
    /* A status of 2xx, the Content-Type, the first 2 KiB of the body. Any bytes may come. */
    bool (*is_answer)(long status, struct text type, struct text body);
    /* Reads the body of one that is accepted. NULL: all of the batch is. */
    struct rejection (*rejected)(struct text answer);
    /* The part of another answer's body that people read. NULL: all of it. */
    struct text (*reason)(struct text answer);

    /* A file of it: what is before the first batch, between two, and at the end. */
    struct text file_open;
    struct text file_joint;
    struct text file_close;

    struct encoder *(*encoder_new)(void); /* NULL when out of memory */
};

/* The first byte of a body that is no white space; 0 if there is none. */
char protocol_first_byte(struct text body);

/* Is this Content-Type one of a page for people? */
bool protocol_is_page(struct text type);

extern const struct protocol zipkin_protocol;
extern const struct protocol otlp_protocol;

/* What FORMAT_AUTO means for this endpoint; NULL: it is not given. */
const struct protocol *protocol_of(enum protocol_format format, const char *endpoint);

/* By the parameter's value; Zipkin's for "auto" and NULL. */
const struct protocol *protocol_named(const char *name);

#endif

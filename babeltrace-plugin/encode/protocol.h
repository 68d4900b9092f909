/*
 * Protocols: the form in which a back end takes spans, and the meaning of its answers. All details
 * of a back end are here and in its encoder: transports know no back end by name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_PROTOCOL_H
#define BLKIN_OUTPUT_PROTOCOL_H

#include "encoder.h"

#include <stdbool.h>
#include <stdint.h>

/* The values of the parameter "format". */
enum protocol_format {
    FORMAT_AUTO, /* by the endpoint's path; else Zipkin's */
    FORMAT_ZIPKIN,
    FORMAT_OTLP,
    FORMATS /* a new one goes before this: a spool stores the number */
};

/* The spans of an accepted batch that the collector refuses for good. */
struct rejection {
    uint64_t spans;
    struct text why; /* a part of the answer: any bytes */
};

struct protocol {
    enum protocol_format format;
    const char *name;     /* the parameter's value */
    const char *peer;     /* for messages: "a Zipkin collector" */
    const char *endpoint; /* the default endpoint */
    const char *path;     /* the default path of a URL */
    const char *content_type;
    struct text empty_batch; /* to see whether a collector accepts a batch */

    /*
     * The statuses of answers. 2xx: accepted, if is_answer() recognises the answer. 400: the
     * collector refuses the content of the batch. 413: the collector refuses the size. A status in
     * `again`: a retry is useful. A status in `suspect`, a part of `again`: the batch itself may be
     * the cause. Every other status is a refusal. Both lists end in 0.
     */
    const short *again;
    const short *suspect;
    /* status: 2xx; body: its first 2 KiB, any bytes. */
    bool (*is_answer)(long status, struct text type, struct text body);
    /* Reads the body of an accepted answer. NULL: the whole batch is accepted. */
    struct rejection (*rejected)(struct text answer);
    /* Returns the readable part of another answer's body. NULL: the whole body is readable. */
    struct text (*reason)(struct text answer);

    /* In a file: the text before the first batch, between two batches, and at the end. */
    struct text file_open;
    struct text file_joint;
    struct text file_close;

    struct encoder *(*encoder_new)(void); /* returns NULL when out of memory */
};

/* Returns the first byte of a body that is no white space; 0 if there is none. */
char protocol_first_byte(struct text body);

/* Returns true for the Content-Type of a page for people. */
bool protocol_is_page(struct text type);

extern const struct protocol zipkin_protocol;
extern const struct protocol otlp_protocol;

/* Returns the protocol of the endpoint for FORMAT_AUTO; NULL: there is no endpoint. */
const struct protocol *protocol_of(enum protocol_format format, const char *endpoint);

/* Returns the protocol with this name; Zipkin's for "auto" and NULL. */
const struct protocol *protocol_named(const char *name);

#endif

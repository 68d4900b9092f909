/*
 * Encoders: how a finished span is written, and how a batch of them is framed.
 *
 * A batch is open, then spans with a separator between each two, then close: any run of spans of a
 * batch is itself a batch once it is framed. That is what splitting one after a refusal relies on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_ENCODER_H
#define BLKIN_OUTPUT_ENCODER_H

#include "../buffer.h"
#include "../core/span.h"

/*
 * How much of one span is sent, whatever a trace holds; what is left out is said in the span. A
 * collector refuses a request of some MiB as a whole, and a page shows no more of a span than a
 * person reads.
 */

/* Bytes, before they are escaped. */
#define LIMIT_NAME  1024U /* of a span or a service */
#define LIMIT_KEY   256U
#define LIMIT_VALUE 16384U /* of an annotation or a tag */

#define LIMIT_ANNOTATIONS 512U
#define LIMIT_TAGS        512U

/* A span that has been encoded to this many bytes gets no further annotation or tag. */
#define LIMIT_SPAN (384U << 10)

struct encoder {
    const char *content_type;
    struct text open; /* shorter than any encoded span */
    struct text separator;
    struct text close; /* likewise */
    const char *empty_batch;

    /*
     * Appends the span. *cut tells whether parts of it were left out: see LIMIT_SPAN. Returns
     * false, buffer unchanged, if the buffer has no room. An endpoint must not change, nor may
     * another one get its address, while the encoder lives.
     */
    bool (*encode)(struct encoder *encoder, struct buffer *buffer, const struct span *span,
                   bool *cut);

    /* The upper and the lower half of an encoded span's trace id; zeros if it is not one of ours.
     */
    void (*trace_of)(struct text span, uint64_t id[2]);
    void (*free)(struct encoder *encoder);
};

/*
 * Zipkin JSON v2, in a form that both Zipkin's and the Go decoders accept. Returns NULL when out of
 * memory.
 */
struct encoder *zipkin_json_encoder_new(void);

#endif

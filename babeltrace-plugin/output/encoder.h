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

#include "../core/span.h"
#include "../buffer.h"

struct encoder {
    const char *content_type;
    struct text open; /* shorter than any encoded span */
    struct text separator;
    struct text close; /* likewise */
    const char *empty_batch;

    /*
     * Appends the span. *cut tells whether parts of it were left out (see limits.h). Returns false,
     * buffer unchanged, if the buffer has no room. An endpoint must not change, nor may another one
     * get its address, while the encoder lives.
     */
    bool (*encode)(struct encoder *encoder, struct buffer *buffer, const struct span *span,
                   bool *cut);
    void (*free)(struct encoder *encoder);
};

/*
 * Zipkin JSON v2, in a form that both Zipkin's and the Go decoders accept. Returns NULL when out of
 * memory.
 */
struct encoder *zipkin_json_encoder_new(void);

#endif

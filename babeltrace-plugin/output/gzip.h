/*
 * Compression of a whole batch.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_GZIP_H
#define BLKIN_OUTPUT_GZIP_H

#include "../core/text.h"
#include "../buffer.h"

#include <stdint.h>
#include <zlib.h>

/* Begin with {0}. */
struct gzip {
    z_stream stream;
    bool is_ready;
    struct buffer output;
};

/* *output lives until the next call. Returns false when out of memory. */
bool gzip_compress(struct gzip *gzip, struct text input, struct text *output);

void gzip_free(struct gzip *gzip);

#endif

/*
 * Compression of a whole batch.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_COMPRESS_H
#define BLKIN_OUTPUT_COMPRESS_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/text.h"

#include <zstd.h>

/* State for all batches. Begins as {0}. */
struct compressor {
    struct libdeflate_compressor *deflate; /* NULL: not used yet */
    ZSTD_CCtx *zstd;
    struct buffer output;
};

/* Set *output, which is valid until the next call. Return false when out of memory. */
bool compress_gzip(struct compressor *compressor, struct text input, struct text *output);
bool compress_zstd(struct compressor *compressor, struct text input, struct text *output);

void compressor_free(struct compressor *compressor);

#endif

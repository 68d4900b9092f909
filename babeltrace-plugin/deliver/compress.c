/*
 * Compression with libzstd and libdeflate.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "compress.h"

#include <libdeflate.h>

#define LEVEL 1 /* spans are repetitive: level 6 takes twice the time for a tenth less */

/* libdeflate needs the whole input in memory, and takes half of zlib's time. */
bool compress_gzip(struct compressor *compressor, struct text input, struct text *output)
{
    struct buffer *room = &compressor->output;
    size_t bound, length;

    if (!compressor->deflate)
        compressor->deflate = libdeflate_alloc_compressor(LEVEL);
    if (!compressor->deflate)
        return false;
    bound = libdeflate_gzip_compress_bound(compressor->deflate, input.length);
    room->length = 0;
    if (!buffer_reserve(room, bound))
        return false;
    length =
        libdeflate_gzip_compress(compressor->deflate, input.data, input.length, room->data, bound);
    *output = (struct text){room->data, length};
    return length > 0;
}

bool compress_zstd(struct compressor *compressor, struct text input, struct text *output)
{
    struct buffer *room = &compressor->output;
    const size_t bound = ZSTD_compressBound(input.length);
    size_t length;

    if (!compressor->zstd)
        compressor->zstd = ZSTD_createCCtx();
    room->length = 0;
    if (!compressor->zstd || !buffer_reserve(room, bound))
        return false;
    length =
        ZSTD_compressCCtx(compressor->zstd, room->data, bound, input.data, input.length, LEVEL);
    if (ZSTD_isError(length))
        return false;
    *output = (struct text){room->data, length};
    return true;
}

void compressor_free(struct compressor *compressor)
{
    libdeflate_free_compressor(compressor->deflate);
    ZSTD_freeCCtx(compressor->zstd);
    buffer_free(&compressor->output);
    *compressor = (struct compressor){.output = {0}};
}

/*
 * Compression with libzstd, and with libdeflate or, in builds without it, zlib.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "compress.h"

#ifdef HAS_LIBDEFLATE
#include <libdeflate.h>
#endif

#define LEVEL            1 /* spans are repetitive: level 6 takes twice the time for a tenth less */
#define GZIP_WINDOW_BITS (15 + 16)
#define MEMORY_LEVEL     8

#ifdef HAS_LIBDEFLATE
/* libdeflate needs the whole input in memory, takes half of zlib's time, and saves some bytes
 * more. */
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

static void compress_free_gzip(struct compressor *compressor)
{
    libdeflate_free_compressor(compressor->deflate);
}
#else
static bool compress_prepare_gzip(struct compressor *compressor)
{
    if (compressor->is_gzip_ready)
        return deflateReset(&compressor->gzip) == Z_OK;
    compressor->is_gzip_ready = deflateInit2(&compressor->gzip, LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS,
                                             MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
    return compressor->is_gzip_ready;
}

bool compress_gzip(struct compressor *compressor, struct text input, struct text *output)
{
    z_stream *stream = &compressor->gzip;
    struct buffer *room = &compressor->output;
    size_t bound;

    if (input.length > UINT32_MAX || !compress_prepare_gzip(compressor))
        return false;
    bound = deflateBound(stream, input.length);
    room->length = 0;
    if (bound > UINT32_MAX || !buffer_reserve(room, bound))
        return false;
    stream->next_in = (unsigned char *)(uintptr_t)input.data; /* zlib does not write there */
    stream->avail_in = (uInt)input.length;
    stream->next_out = (unsigned char *)room->data;
    stream->avail_out = (uInt)bound;
    if (deflate(stream, Z_FINISH) != Z_STREAM_END)
        return false;
    *output = (struct text){room->data, bound - stream->avail_out};
    return true;
}

static void compress_free_gzip(struct compressor *compressor)
{
    if (compressor->is_gzip_ready)
        deflateEnd(&compressor->gzip);
}
#endif

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
    compress_free_gzip(compressor);
    ZSTD_freeCCtx(compressor->zstd);
    buffer_free(&compressor->output);
    *compressor = (struct compressor){.output = {0}};
}

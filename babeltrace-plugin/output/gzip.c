/*
 * Compression by zlib, its state kept from batch to batch.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "gzip.h"

#define LEVEL        1 /* spans are repetitive: level 6 takes twice the time for a tenth less */
#define GZIP_FORMAT  (15 + 16)
#define MEMORY_LEVEL 8

static bool make_ready(struct gzip *gzip)
{
    if (gzip->is_ready)
        return deflateReset(&gzip->stream) == Z_OK;
    gzip->is_ready = deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, GZIP_FORMAT, MEMORY_LEVEL,
                                  Z_DEFAULT_STRATEGY) == Z_OK;
    return gzip->is_ready;
}

bool gzip_compress(struct gzip *gzip, struct text input, struct text *output)
{
    z_stream *stream = &gzip->stream;
    size_t bound;

    if (input.length > UINT32_MAX || !make_ready(gzip))
        return false;
    bound = deflateBound(stream, input.length);
    gzip->output.length = 0;
    if (bound > UINT32_MAX || !buffer_reserve(&gzip->output, bound))
        return false;
    stream->next_in = (unsigned char *)(uintptr_t)input.data; /* zlib does not write there */
    stream->avail_in = (uInt)input.length;
    stream->next_out = (unsigned char *)gzip->output.data;
    stream->avail_out = (uInt)bound;
    if (deflate(stream, Z_FINISH) != Z_STREAM_END)
        return false;
    *output = (struct text){gzip->output.data, bound - stream->avail_out};
    return true;
}

void gzip_free(struct gzip *gzip)
{
    if (gzip->is_ready)
        deflateEnd(&gzip->stream);
    buffer_free(&gzip->output);
    gzip->is_ready = false;
}

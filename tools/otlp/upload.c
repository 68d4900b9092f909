/* SPDX-License-Identifier: BSD-2-Clause */
#include "upload.h"

#define GZIP_FORMAT (15 + 16)
#define PIECE       16384U /* room for inflate() is reserved in these steps */

void upload_begin(struct upload *upload, bool is_gzip, size_t limit)
{
    /* gzip needs one byte more, because inflate() finds the end of a stream only with room left */
    *upload = (struct upload){.bytes.limit = limit + is_gzip, .is_gzip = is_gzip};
}

/* Reserves room for PIECE bytes, or for the rest up to the limit. */
static enum upload_result upload_make_room(struct buffer *bytes)
{
    const size_t left = bytes->limit - bytes->length;

    if (left == 0)
        return UPLOAD_TOO_LONG;
    return buffer_reserve(bytes, left < PIECE ? left : PIECE) ? UPLOAD_FINE : UPLOAD_STARVED;
}

/*
 * Decompresses into the reserved room. Returns false at the end of the input, or with an error in
 * *result. A body may have several members of gzip (RFC 1952, 2.2).
 */
static bool upload_inflate(struct upload *upload, enum upload_result *result)
{
    struct buffer *bytes = &upload->bytes;
    const size_t most = bytes->capacity < bytes->limit ? bytes->capacity : bytes->limit;
    int status;

    if (upload->has_ended)
        (void)inflateReset(&upload->gzip);
    upload->has_ended = false;

    upload->gzip.next_out = (unsigned char *)bytes->data + bytes->length;
    upload->gzip.avail_out = (uInt)(most - bytes->length);
    status = inflate(&upload->gzip, Z_NO_FLUSH);
    bytes->length = most - upload->gzip.avail_out;
    if (status == Z_STREAM_END) {
        upload->has_ended = true;
        return upload->gzip.avail_in > 0;
    }
    if (status != Z_OK && status != Z_BUF_ERROR) {
        *result = status == Z_MEM_ERROR ? UPLOAD_STARVED : UPLOAD_BROKEN;
        return false;
    }
    return upload->gzip.avail_in > 0 || upload->gzip.avail_out == 0;
}

static enum upload_result upload_add_gzip(struct upload *upload, const char *data, size_t size)
{
    enum upload_result result = UPLOAD_FINE;

    if (!upload->has_begun && inflateInit2(&upload->gzip, GZIP_FORMAT) != Z_OK)
        return UPLOAD_STARVED;
    upload->has_begun = true;
    upload->gzip.next_in = (unsigned char *)(uintptr_t)data; /* zlib does not write there */
    upload->gzip.avail_in = (uInt)size;
    do
        result = upload_make_room(&upload->bytes);
    while (result == UPLOAD_FINE && upload_inflate(upload, &result));
    return result;
}

enum upload_result upload_add(struct upload *upload, const char *data, size_t size)
{
    if (size == 0)
        return UPLOAD_FINE;
    if (upload->is_gzip)
        return upload_add_gzip(upload, data, size);
    if (size > upload->bytes.limit - upload->bytes.length)
        return UPLOAD_TOO_LONG;
    if (!buffer_reserve(&upload->bytes, size))
        return UPLOAD_STARVED;
    buffer_put(&upload->bytes, data, size);
    return UPLOAD_FINE;
}

enum upload_result upload_end(struct upload *upload)
{
    if (upload->bytes.length > upload->bytes.limit - upload->is_gzip)
        return UPLOAD_TOO_LONG;
    return upload->is_gzip && !upload->has_ended ? UPLOAD_BROKEN : UPLOAD_FINE;
}

void upload_free(struct upload *upload)
{
    if (upload->has_begun)
        (void)inflateEnd(&upload->gzip);
    buffer_free(&upload->bytes);
    *upload = (struct upload){.is_gzip = false};
}

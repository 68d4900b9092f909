/*
 * Bodies of requests: in pieces of any size, compressed or not, up to the limit and not beyond.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/otlp/upload.h"

#include <libdeflate.h>

#define LENGTH 100000

static char plain[LENGTH];
static struct text gzip; /* the compressed `plain` */

static enum upload_result add_all(struct upload *upload, struct text text, size_t piece)
{
    enum upload_result result = UPLOAD_FINE;

    for (size_t at = 0; at < text.length && result == UPLOAD_FINE; at += piece)
        result =
            upload_add(upload, text.data + at, text.length - at < piece ? text.length - at : piece);
    return result == UPLOAD_FINE ? upload_end(upload) : result;
}

static enum upload_result read_body(struct text text, bool is_gzip, size_t limit, size_t piece)
{
    struct upload upload;
    enum upload_result result;

    upload_begin(&upload, is_gzip, limit);
    result = add_all(&upload, text, piece);
    if (result == UPLOAD_FINE)
        CHECK(text_equal(upload_text(&upload), (struct text){plain, LENGTH}));
    CHECK(upload.bytes.length <= limit + 1);
    upload_free(&upload);
    return result;
}

static void all_pieces(struct text text, bool is_gzip)
{
    static const size_t pieces[] = {1, 7, 1000, 16384, LENGTH};

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        CHECK(read_body(text, is_gzip, LENGTH, pieces[i]) == UPLOAD_FINE);
        CHECK(read_body(text, is_gzip, LENGTH * 10, pieces[i]) == UPLOAD_FINE);
        CHECK(read_body(text, is_gzip, LENGTH - 1, pieces[i]) == UPLOAD_TOO_LONG);
        CHECK(read_body(text, is_gzip, 10, pieces[i]) == UPLOAD_TOO_LONG);
    }
}

static struct text gzip_of(struct text text, char *output)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(1);
    const size_t length =
        libdeflate_gzip_compress(compressor, text.data, text.length, output, 2 * LENGTH);

    libdeflate_free_compressor(compressor);
    return (struct text){output, length};
}

TEST(whole)
{
    static char compressed[2 * LENGTH];

    for (size_t i = 0; i < LENGTH; i++)
        plain[i] = (char)(i * i >> 7);
    gzip = gzip_of((struct text){plain, LENGTH}, compressed);
    all_pieces((struct text){plain, LENGTH}, false);
    all_pieces(gzip, true);
}

TEST(broken_gzip)
{
    char bytes[LENGTH + 4096];
    const struct text changed = {bytes, gzip.length}, longer = {bytes, gzip.length + 1};

    for (size_t i = 0; i < gzip.length; i += 97)
        CHECK(read_body((struct text){gzip.data, i}, true, LENGTH, 100) == UPLOAD_BROKEN);
    memcpy(bytes, gzip.data, gzip.length);
    bytes[gzip.length - 6] ^= 1; /* the checksum */
    CHECK(read_body(changed, true, LENGTH, 100) == UPLOAD_BROKEN);
    memcpy(bytes, gzip.data, gzip.length);
    bytes[gzip.length] = 'x';
    CHECK(read_body(longer, true, LENGTH, 100) == UPLOAD_BROKEN);
    CHECK(read_body(longer, true, LENGTH, longer.length) == UPLOAD_BROKEN);
    CHECK(read_body((struct text){plain, LENGTH}, true, LENGTH, 100) == UPLOAD_BROKEN);
}

/* RFC 1952, 2.2: members follow each other without a gap; one may be empty. */
TEST(members)
{
    static char bytes[4 * LENGTH];
    const size_t ends[] = {0, 1, 30000, 30000, LENGTH};
    size_t length = 0;

    for (size_t i = 1; i < sizeof(ends) / sizeof(ends[0]); i++)
        length += gzip_of((struct text){plain + ends[i - 1], ends[i] - ends[i - 1]}, bytes + length)
                      .length;
    all_pieces((struct text){bytes, length}, true);
    CHECK(read_body((struct text){bytes, length - 1}, true, LENGTH, 100) == UPLOAD_BROKEN);
}

CHECK_MAIN

/*
 * The body of a request as it comes, decompressed if it is compressed by gzip, and never longer
 * than its limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_UPLOAD_H
#define BLKIN_TOOLS_UPLOAD_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/text.h"

#include <zlib.h>

enum upload_result {
    UPLOAD_FINE,
    UPLOAD_TOO_LONG,
    UPLOAD_BROKEN, /* it is not gzip, or ends too early */
    UPLOAD_STARVED /* out of memory */
};

struct upload {
    struct buffer bytes;
    z_stream gzip;
    bool is_gzip;
    bool has_begun, has_ended; /* the gzip stream, and its last member so far */
};

void upload_begin(struct upload *upload, bool is_gzip, size_t limit);

/* After another result than UPLOAD_FINE only upload_free() may follow. */
enum upload_result upload_add(struct upload *upload, const char *data, size_t size);
enum upload_result upload_end(struct upload *upload);

void upload_free(struct upload *upload);

static inline struct text upload_text(const struct upload *upload)
{
    return (struct text){upload->bytes.data, upload->bytes.length};
}

#endif

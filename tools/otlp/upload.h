/*
 * Collects the body of a request, up to a limit. Decompresses a body that is compressed by gzip.
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
    UPLOAD_BROKEN, /* the body is not gzip, or ends too early */
    UPLOAD_STARVED /* out of memory */
};

struct upload {
    struct buffer bytes;
    z_stream gzip;
    bool is_gzip;
    bool has_begun; /* inflateInit2() was called */
    bool has_ended; /* the last member of gzip is complete */
};

void upload_begin(struct upload *upload, bool is_gzip, size_t limit);

/* After any result but UPLOAD_FINE, only upload_free() may follow. */
enum upload_result upload_add(struct upload *upload, const char *data, size_t size);
/* Checks the whole body: UPLOAD_TOO_LONG, UPLOAD_BROKEN or UPLOAD_FINE. */
enum upload_result upload_end(struct upload *upload);

void upload_free(struct upload *upload);

static inline struct text upload_text(const struct upload *upload)
{
    return (struct text){upload->bytes.data, upload->bytes.length};
}

#endif

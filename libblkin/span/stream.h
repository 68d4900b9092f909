/*
 * The streaming events of a span, for programs that hang or crash.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STREAM_H
#define BLKIN_STREAM_H

#include "libblkin/base/provider.h"
#include "span.h"

/*
 * Records a streaming event, if it is enabled: what happened at time_ns to the span or the step of
 * it whose id this is, with a text of at most SPAN_RECORD_MAX bytes, or none (NULL).
 */
void blkin_stream(const struct blkin_span *span, uint64_t id, enum blkin_packed_event kind,
                  uint64_t time_ns, const char *text, size_t length);

/* The begin of the span, or of a step of it: name is of at most SPAN_NAME_MAX bytes. */
struct stream_begin {
    uint64_t id;
    uint64_t parent_id;
    uint64_t time_ns;
    const char *name;
    size_t name_length;
    uint8_t flags;
    uint8_t kind;
};

void blkin_stream_begin(const struct blkin_span *span, const struct stream_begin *begin);

#endif

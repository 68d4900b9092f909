/*
 * The log of a span: what the program says of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPAN_LOG_H
#define BLKIN_SPAN_LOG_H

#include "blkin.h"

/* Says before a streamed span's end how much the stream does not have. */
void blkin_stream_dropped(const struct blkin_span *span, uint64_t end_ns);

#endif

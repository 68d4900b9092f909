/*
 * Zipkin JSON v2: one span, in a form that both Zipkin's and the Go decoders accept.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_ZIPKIN_JSON_H
#define BLKIN_OUTPUT_ZIPKIN_JSON_H

#include "../core/span.h"
#include "buffer.h"

/* Appends the span's JSON object. Returns false, buffer unchanged, if the buffer has no room. */
bool zipkin_json_span(struct buffer *buffer, const struct span *span);

#endif

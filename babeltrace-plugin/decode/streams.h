/*
 * The decoders of the streams that have begun and not ended.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STREAMS_H
#define BLKIN_STREAMS_H

#include "decode.h"

struct streams;

/* rules may be NULL, and live longer. Returns NULL when out of memory. */
struct streams *streams_new(struct rules *rules);

/* NULL is allowed. */
void streams_free(struct streams *streams);

/* The stream's decoder, made when it is first asked for. Returns NULL when out of memory. */
struct stream_decoder *streams_decoder(struct streams *streams, const bt_stream *stream);

/* The stream is over: another one may get its address. */
void streams_end(struct streams *streams, const bt_stream *stream);

#endif

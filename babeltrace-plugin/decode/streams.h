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

/* Decodes the message's event: see decode_event(). */
enum decoded streams_decode(struct streams *streams, const bt_message *message,
                            const struct only *only, struct event *event);

/* The stream's decoder, made when it is first asked for. Returns NULL when out of memory. */
struct stream_decoder *streams_decoder(struct streams *streams, const bt_stream *stream);

/* The stream is over: another one may get its address, and those of its classes. */
void streams_end(struct streams *streams, const bt_stream *stream);

#endif

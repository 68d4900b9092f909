/*
 * From a babeltrace2 event to struct event.
 *
 * The meaning of an event class and the indexes of its fields are computed once per stream and
 * class. Then reading a field costs an index. Field types come from the trace's metadata and are
 * checked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DECODE_H
#define BLKIN_DECODE_H

#include "babeltrace-plugin/rules/rules.h"
#include "babeltrace-plugin/spans/event.h"
#include "babeltrace-plugin/stages/only.h"

#include <babeltrace2/babeltrace.h>

struct stream_decoder;

/* The decoder of one stream, from its beginning to its end. rules may be NULL. Returns NULL when
 * out of memory. */
struct stream_decoder *stream_decoder_new(const bt_stream *stream, struct rules *rules);
void stream_decoder_free(struct stream_decoder *decoder);

/* Returns the origin of the stream's events, as far as the trace says; lives as long as the stream.
 */
struct origin stream_decoder_origin(const struct stream_decoder *decoder);

/* Returns true if the stream's metadata has an event class of ours, or one that a rule names. */
bool stream_decoder_has_ours(struct stream_decoder *decoder, const bt_stream *stream);

/* The decoding of an event class of the stream; lives as long as the decoder. Returns NULL when out
 * of memory. */
struct decode_plan;
const struct decode_plan *stream_decoder_plan(struct stream_decoder *decoder,
                                              const bt_event_class *class);

/* Decodes the message's event. On DECODED, sets the members of its kind; texts live as long as the
 * message. An unwanted event gets only its time. only: NULL if all traces are wanted. */
enum decoded decode_event(const struct decode_plan *plan, const bt_message *message,
                          const bt_event *bt_event, const struct only *only, struct event *event);

#endif

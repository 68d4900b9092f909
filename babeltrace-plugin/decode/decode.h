/*
 * From a babeltrace event to the decoded event of the core.
 *
 * What an event class means, and where its fields are, is worked out once per stream and class;
 * after that a field costs an index. Field types come from the trace's metadata and are checked.
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

/* For one stream, from its beginning to its end; rules may be NULL. Returns NULL when out of
 * memory.
 */
struct stream_decoder *stream_decoder_new(const bt_stream *stream, struct rules *rules);
void stream_decoder_free(struct stream_decoder *decoder);

/* Where the stream's events come from, as far as the trace tells; as long as the stream. */
struct origin stream_decoder_origin(const struct stream_decoder *decoder);

/* Whether the stream may have events that are used: an event of ours, or one that a rule names, is
 * known to its metadata. */
bool stream_decoder_has_ours(struct stream_decoder *decoder, const bt_stream *stream);

/* How events of a class of the stream's are decoded; as long as the decoder. Returns NULL when out
 * of memory. */
struct decode_plan;
const struct decode_plan *stream_decoder_plan(struct stream_decoder *decoder,
                                              const bt_event_class *class);

/*
 * The message's event. Fills the members that its kind has, if DECODED; texts live as long as the
 * message. Of an event that is not wanted only the time; only may be NULL: all are.
 */
enum decoded decode_event(const struct decode_plan *plan, const bt_message *message,
                          const bt_event *bt_event, const struct only *only, struct event *event);

#endif

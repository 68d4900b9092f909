/*
 * Decodes babeltrace2's messages and gives their events to the assembler, with the losses that
 * LTTng reports. Other events are only counted. struct intake counts every event and every reported
 * loss.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_INPUT_H
#define BLKIN_INPUT_H

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/spans/assembler.h"
#include "decode.h"

#include <babeltrace2/babeltrace.h>

/*
 * The decoders of the streams that have begun and not ended: a table, and a cache in front. The
 * event class alone finds the decoding of an event. A class belongs to one trace, and one decoder's
 * plan for a class is right for all streams.
 */
#define RECENT_BITS 8

struct recent_class {
    const bt_event_class *class;
    const struct decode_plan *plan;
};

struct streams {
    struct table table;
    struct recent_class recent[1 << RECENT_BITS];
    struct rules *rules;
};

/* rules may be NULL, and must live longer. Returns NULL when out of memory. */
struct streams *streams_new(struct rules *rules);

/* NULL is allowed. */
void streams_free(struct streams *streams);

/* Finds the plan of a class that is not in its slot of the cache. */
const struct decode_plan *streams_find_plan(struct streams *streams, struct recent_class *recent,
                                            const bt_event *event);

/* Returns the decoding of the event. NULL: out of memory. */
static inline const struct decode_plan *streams_plan(struct streams *streams, const bt_event *event)
{
    const bt_event_class *class = bt_event_borrow_class_const(event);
    /* a trace cannot choose the addresses of classes, so the upper bits of a product are enough */
    struct recent_class *recent =
        &streams->recent[(uintptr_t) class * UINT64_C(0x9e3779b97f4a7c15) >> (64 - RECENT_BITS)];

    return recent->class == class ? recent->plan : streams_find_plan(streams, recent, event);
}

/* Decodes the message's event: see decode_event(). */
static inline enum decoded streams_decode(struct streams *streams, const bt_message *message,
                                          struct event *event)
{
    const bt_event *bt_event = bt_message_event_borrow_event_const(message);
    const struct decode_plan *plan = streams_plan(streams, bt_event);

    return plan ? decode_event(plan, message, bt_event, event) : DECODED_NO_MEMORY;
}

/* Returns the stream's decoder, creating one at the first call. NULL when out of memory. */
struct stream_decoder *streams_decoder(struct streams *streams, const bt_stream *stream);

/* Ends a stream. Another one may get its address, and the addresses of its classes. */
void streams_end(struct streams *streams, const bt_stream *stream);

struct decode_input {
    /* The owner sets these. The objects of the pointers must outlive this struct. */
    struct streams *streams;
    struct intake *intake; /* the counts */
    struct assembler *assembler;
    struct trace_position from; /* an earlier run has read all events up to here */
    struct stage *rules;        /* see rules/pairing.h */
    void (*warn)(void *context, const char *message);
    void *context;

    struct event event; /* the current event, too large to be cleared each time */
};

/* Handles these messages, and releases the references to them. */
void input_use(struct decode_input *input, bt_message_array_const messages, uint64_t count);

#endif

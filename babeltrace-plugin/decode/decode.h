/*
 * From a babeltrace2 event to struct event.
 *
 * The meaning of an event class and the indexes of its fields are computed once per stream and
 * class. Then a field is read by its index. Field types come from the trace's metadata and are
 * checked.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DECODE_H
#define BLKIN_DECODE_H

#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/rules/pairing.h"
#include "babeltrace-plugin/spans/event.h"

#include <babeltrace2/babeltrace.h>

struct stream_decoder;
struct decode_plan; /* the decoding of an event class; lives as long as the decoder */

/*
 * The decoders of the streams that have begun and not ended: a table, and a cache in front. The
 * cache finds the plan of an event by the event's class alone. A class belongs to one trace, and
 * the plan that one decoder has made for a class is right for all streams.
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

/* rules may be NULL, and must live longer than the streams. Returns NULL when out of memory. */
struct streams *streams_new(struct rules *rules);

/* NULL is allowed. */
void streams_free(struct streams *streams);

/* Decodes the message's event by the plan of its class. */
enum decoded decode_event(const struct decode_plan *plan, const bt_message *message,
                          const bt_event *bt_event, struct event *event);

/* Finds the plan of a class that is not in its slot of the cache. Returns NULL when out of memory.
 */
const struct decode_plan *streams_find_plan(struct streams *streams, struct recent_class *recent,
                                            const bt_event *event);

/* Returns the plan of the event's class; NULL when out of memory. */
static inline const struct decode_plan *streams_plan(struct streams *streams, const bt_event *event)
{
    const bt_event_class *class = bt_event_borrow_class_const(event);
    /* a trace cannot choose the addresses of classes, so the upper bits of a product are enough */
    struct recent_class *recent =
        &streams->recent[(uintptr_t) class * UINT64_C(0x9e3779b97f4a7c15) >> (64 - RECENT_BITS)];

    return recent->class == class ? recent->plan : streams_find_plan(streams, recent, event);
}

/* Decodes the message's event. On DECODED, sets the members of its kind; texts live as long as the
 * message. */
static inline enum decoded streams_decode(struct streams *streams, const bt_message *message,
                                          struct event *event)
{
    const bt_event *bt_event = bt_message_event_borrow_event_const(message);
    const struct decode_plan *plan = streams_plan(streams, bt_event);

    return plan ? decode_event(plan, message, bt_event, event) : DECODED_NO_MEMORY;
}

/* Returns the stream's decoder, creating one at the first call. NULL when out of memory. */
struct stream_decoder *streams_decoder(struct streams *streams, const bt_stream *stream);

/* Ends a stream. A later stream may get its address, and the addresses of its classes. */
void streams_end(struct streams *streams, const bt_stream *stream);

/* Returns the origin of the stream's events, as far as the trace says; lives as long as the stream.
 */
struct origin stream_decoder_origin(const struct stream_decoder *decoder);

/* Returns true if the stream's metadata has an event class of ours, or one that a rule names. */
bool stream_decoder_has_ours(struct stream_decoder *decoder, const bt_stream *stream);

/* ---- time and origin of an event of any kind ------------------------------------------------- */

/* Returns false if the ns since the clock's origin do not fit in *time_ns. */
static inline bool time_of_snapshot(const bt_clock_snapshot *snapshot, int64_t *time_ns)
{
    if (bt_clock_snapshot_get_ns_from_origin(snapshot, time_ns) ==
        BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK)
        return true;
    /* the next call of babeltrace2 would abort at a pending error */
    bt_current_thread_clear_error();
    return false;
}

/* The origin of a stream's events: from the trace, and from their common context. */
struct origin_fields {
    struct origin origin; /* host and clock live as long as the stream's trace */
    int pid_index;        /* in the common context; -1: not there */
    int tid_index;
    int pid_ns_index;
};

/* Reads all but the process's name, which few events of rules need. */
static inline void origin_read(const struct origin_fields *fields, const bt_event *event,
                               struct origin *origin)
{
    const bt_field *context = bt_event_borrow_common_context_field_const(event);

    *origin = fields->origin;
    if (fields->pid_index >= 0)
        origin->pid =
            bt_field_integer_signed_get_value(bt_field_structure_borrow_member_field_by_index_const(
                context, (uint64_t)fields->pid_index));
    if (fields->tid_index >= 0)
        origin->tid =
            bt_field_integer_signed_get_value(bt_field_structure_borrow_member_field_by_index_const(
                context, (uint64_t)fields->tid_index));
    if (fields->pid_ns_index >= 0)
        origin->pid_namespace = bt_field_integer_unsigned_get_value(
            bt_field_structure_borrow_member_field_by_index_const(context,
                                                                  (uint64_t)fields->pid_ns_index));
}

/* ---- rule_fields.c: the fields of events that rules name ------------------------------------- */

/* The reading of the fields of one event class. */
struct rule_fields_plan;

/* Returns NULL when out of memory. */
struct rule_fields_plan *rule_fields_new(const struct rules *rules, const struct rule_class *class,
                                         const bt_event_class *event_class);
void rule_fields_free(struct rule_fields_plan *plan);

/* Decodes the message's event for pairing. The result is valid until the next call. */
enum decoded rule_fields_decode(struct rule_fields_plan *plan, const struct origin_fields *origin,
                                const bt_message *message, const bt_event *bt_event,
                                struct event *event);

#endif

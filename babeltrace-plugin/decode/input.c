/* SPDX-License-Identifier: BSD-2-Clause */
#include "input.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- messages -------------------------------------------------------------------------------- */

static const char *name_of(const bt_message *message)
{
    return bt_event_class_get_name(
        bt_event_borrow_class_const(bt_message_event_borrow_event_const(message)));
}

/* Warns once: a foreign provider of the same name may write millions of events. */
static void say_unreadable(const struct decode_input *input, const bt_message *message)
{
    char text[512];

    if (input->intake->counts.unreadable)
        return;
    snprintf(
        text, sizeof(text),
        "event \"%s\" is unreadable: a field is missing or not as BlkKin's provider writes it, "
        "or the trace has no clock; further such events are only counted",
        name_of(message));
    input->warn(input->context, text);
}

#define INPUT_SHOWN_MAX 64

static int shown(struct text text)
{
    return text.length < INPUT_SHOWN_MAX ? (int)text.length : INPUT_SHOWN_MAX;
}

/* Warns once. event->log still has the whole packed text, which begins with the version. */
static void say_newer(const struct decode_input *input, const bt_message *message)
{
    const struct event *event = &input->event;
    const struct text process = event->origin.process, host = event->origin.host;
    char text[512];

    if (input->intake->counts.newer)
        return;
    snprintf(text, sizeof(text),
             "event \"%s\" of process \"%.*s\" (pid %" PRId64 ") on host \"%.*s\" is of format %u, "
             "which this program does not know: upgrade BlkKin where events are read; further "
             "such events are only counted",
             name_of(message), shown(process), process.data, event->origin.pid, shown(host),
             host.data, packed_newer(event->log));
    input->warn(input->context, text);
}

/* Counts an event that does not go to the assembler. */
static void count_unused(struct decode_input *input, const bt_message *message, enum decoded why)
{
    switch (why) {
    case DECODED_FOREIGN:
        input->intake->counts.foreign++;
        break;
    case DECODED_ALARM:
        input->intake->counts.alarms++;
        break;
    case DECODED_UNREADABLE:
        say_unreadable(input, message);
        input->intake->counts.unreadable++;
        break;
    case DECODED_NEWER:
        say_newer(input, message);
        input->intake->counts.newer++;
        break;
    default:
        input->intake->counts.unreadable++;
        break;
    }
}

/* Advances the position to the event. Returns true if an earlier run has read it. */
static bool input_has_read(struct decode_input *input, const struct event *event)
{
    struct trace_position *read = &input->intake->read;

    if (event->time_ns > read->time_ns)
        *read = (struct trace_position){.time_ns = event->time_ns};
    read->events += event->time_ns == read->time_ns;
    return input->from.time_ns && !position_is_before(&input->from, read);
}

static void use_event(struct decode_input *input, const bt_message *message)
{
    struct event *event = &input->event;
    enum decoded decoded;

    input->intake->counts.events++;
    decoded = streams_decode(input->streams, message, event);
    if (decoded != DECODED) {
        count_unused(input, message, decoded);
    } else if (!input_has_read(input, event)) {
        assembler_add(input->assembler, event);
    } else {
        input->intake->counts.events--; /* the earlier run has counted the event */
        if (event->kind == EVENT_PROCESS)
            assembler_note_clock(input->assembler, event); /* for later events */
    }
}

static void use_beacon(struct decode_input *input, const bt_message *message)
{
    int64_t now_ns;

    if (time_of_snapshot(
            bt_message_message_iterator_inactivity_borrow_clock_snapshot_const(message), &now_ns)) {
        if (now_ns > input->intake->read.time_ns)
            input->intake->read = (struct trace_position){.time_ns = now_ns};
        assembler_advance(input->assembler, now_ns);
    }
}

/* babeltrace2's functions for discarded events and for discarded packets. */
struct discarded {
    const bt_stream *(*stream)(const bt_message *message);
    bt_property_availability (*count)(const bt_message *message, uint64_t *count);
    bt_bool (*has_times)(const bt_stream_class *class);
    const bt_clock_snapshot *(*begin)(const bt_message *message);
    const bt_clock_snapshot *(*end)(const bt_message *message);
};

static const struct discarded discarded_events = {
    bt_message_discarded_events_borrow_stream_const,
    bt_message_discarded_events_get_count,
    bt_stream_class_discarded_events_have_default_clock_snapshots,
    bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const,
    bt_message_discarded_events_borrow_end_default_clock_snapshot_const,
};

static const struct discarded discarded_packets = {
    bt_message_discarded_packets_borrow_stream_const,
    bt_message_discarded_packets_get_count,
    bt_stream_class_discarded_packets_have_default_clock_snapshots,
    bt_message_discarded_packets_borrow_beginning_default_clock_snapshot_const,
    bt_message_discarded_packets_borrow_end_default_clock_snapshot_const,
};

static void note_loss(struct decode_input *input, const bt_stream *stream, struct loss *loss)
{
    struct stream_decoder *decoder = streams_decoder(input->streams, stream);

    if (decoder && !stream_decoder_has_ours(decoder, stream))
        return; /* counted, but no span of ours lacks data */
    if (decoder)
        loss->origin = stream_decoder_origin(decoder);
    assembler_note_loss(input->assembler, loss);
}

/* Counts a loss of unknown size as one. lost: the member of `loss` for the size; 0 if unknown. */
static void use_discarded(struct decode_input *input, const bt_message *message,
                          const struct discarded *discarded, struct loss *loss, uint64_t *lost,
                          uint64_t *counter)
{
    const bt_stream *stream = discarded->stream(message);
    const bool is_known = discarded->count(message, lost) == BT_PROPERTY_AVAILABILITY_AVAILABLE;

    /* the stream class says whether there are times */
    loss->has_times = discarded->has_times(bt_stream_borrow_class_const(stream)) &&
                      time_of_snapshot(discarded->begin(message), &loss->begin_ns) &&
                      time_of_snapshot(discarded->end(message), &loss->end_ns);
    if (loss->has_times && loss->end_ns < input->from.time_ns)
        return;
    *counter += is_known ? *lost : 1;
    note_loss(input, stream, loss);
}

/* Handles messages other than events. Not inlined, because such messages are rare. */
__attribute__((noinline)) static void use_other(struct decode_input *input,
                                                const bt_message *message, bt_message_type type)
{
    struct loss loss = {.has_times = false};

    switch (type) {
    case BT_MESSAGE_TYPE_MESSAGE_ITERATOR_INACTIVITY:
        use_beacon(input, message);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
        use_discarded(input, message, &discarded_events, &loss, &loss.events,
                      &input->intake->counts.discarded_events);
        break;
    case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
        use_discarded(input, message, &discarded_packets, &loss, &loss.packets,
                      &input->intake->counts.discarded_packets);
        break;
    case BT_MESSAGE_TYPE_STREAM_BEGINNING:
        input->intake->counts.streams_open++;
        break;
    case BT_MESSAGE_TYPE_STREAM_END:
        input->intake->counts.streams_open--;
        streams_end(input->streams, bt_message_stream_end_borrow_stream_const(message));
        break;
    default:
        break;
    }
}

/* Returns false if the message is no event and no inactivity beacon, or has no time. */
static bool time_of_message(const bt_message *message, int64_t *time_ns)
{
    switch (bt_message_get_type(message)) {
    case BT_MESSAGE_TYPE_EVENT:
        return bt_message_event_borrow_stream_class_default_clock_class_const(message) &&
               time_of_snapshot(bt_message_event_borrow_default_clock_snapshot_const(message),
                                time_ns);
    case BT_MESSAGE_TYPE_MESSAGE_ITERATOR_INACTIVITY:
        return time_of_snapshot(
            bt_message_message_iterator_inactivity_borrow_clock_snapshot_const(message), time_ns);
    default:
        return false;
    }
}

/* Notes the time up to which the trace was read: also from foreign events and inactivity. */
static void input_note_time(struct decode_input *input, bt_message_array_const messages,
                            uint64_t count)
{
    int64_t time_ns;

    while (count && !time_of_message(messages[count - 1], &time_ns))
        count--;
    if (count && time_ns > 0)
        input->intake->counts.trace_time_ns = time_ns;
}

void input_use(struct decode_input *input, bt_message_array_const messages, uint64_t count)
{
    input_note_time(input, messages, count);
    for (uint64_t i = 0; i < count; i++) {
        const bt_message_type type = bt_message_get_type(messages[i]);

        if (type == BT_MESSAGE_TYPE_EVENT)
            use_event(input, messages[i]);
        else
            use_other(input, messages[i], type);
        bt_message_put_ref(messages[i]);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring_event.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tracepoints/format/provider_table.h"

#include <string.h>

/* The unread rest of a payload. */
struct ring_rest {
    const char *at, *end;
};

static bool ring_take_struct(struct ring_rest *rest, void *value, size_t size)
{
    if ((size_t)(rest->end - rest->at) < size)
        return false;
    memcpy(value, rest->at, size);
    rest->at += size;
    return true;
}

static bool ring_take_text(struct ring_rest *rest, struct text *text)
{
    const char *nul = memchr(rest->at, '\0', (size_t)(rest->end - rest->at));

    if (!nul)
        return false;
    *text = (struct text){rest->at, (size_t)(nul - rest->at)};
    rest->at = nul + 1;
    return true;
}

static struct ring_rest ring_rest_of(const struct ring_entry *entry)
{
    return (struct ring_rest){entry->payload, entry->payload + entry->length};
}

/* ---- times ----------------------------------------------------------------------------------- */

int64_t ring_clock_offset(void)
{
    struct timespec real;
    int64_t before, after, least = INT64_MAX, offset = 0;

    /* of 16 readings, the one that took the least time counts */
    for (int i = 0; i < 16; i++) {
        before = clock_ns();
        clock_gettime(CLOCK_REALTIME, &real);
        after = clock_ns();
        if (after - before >= least)
            continue;
        least = after - before;
        offset = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - before - least / 2;
    }
    return offset;
}

/* Sets the event's time: not before clock->after_ns, because the record was written later. */
static void ring_set_time(struct event *event, const struct ring_clock *clock, uint64_t moment,
                          unsigned bits)
{
    int64_t age, stamp;

    if (!moment_age((uint64_t)clock->now_ns, moment, bits, &age)) {
        event->time_ns = clock->after_ns + clock->offset_ns;
        event->age_ns = 0;
        return;
    }
    stamp = clock->now_ns - age;
    /* the original's events and blkin:process are used without age_ns: their time is the moment */
    if (stamp < clock->after_ns && event->kind >= EVENT_SPAN && event->kind != EVENT_PROCESS)
        stamp = clock->after_ns;
    event->time_ns = stamp + clock->offset_ns;
    event->age_ns = stamp - (clock->now_ns - age);
}

/* ---- the events of provider blkin ------------------------------------------------------------ */

static bool ring_take_span(struct ring_rest *rest, struct event *event)
{
    struct blkin_span_event payload;

    if (!ring_take_struct(rest, &payload, sizeof(payload)) ||
        !ring_take_text(rest, &event->span_name) || !ring_take_text(rest, &event->log) ||
        !ring_take_text(rest, &event->service))
        return false;
    event->kind = EVENT_SPAN;
    event->trace_id = payload.trace_id;
    event->parent_id = payload.parent_id;
    event->duration_ns = payload.duration;
    event->flags = payload.flags;
    event->span_kind = payload.kind;
    return true;
}

static bool ring_take_begin(struct ring_rest *rest, struct event *event)
{
    struct blkin_begin_event payload;

    if (!ring_take_struct(rest, &payload, sizeof(payload)) ||
        !ring_take_text(rest, &event->span_name) || !ring_take_text(rest, &event->log) ||
        !ring_take_text(rest, &event->service))
        return false;
    event->kind = EVENT_BEGIN;
    event->trace_id = payload.trace_id;
    event->parent_id = payload.parent_id;
    event->flags = payload.flags;
    event->span_kind = payload.kind;
    return true;
}

static bool ring_take_detail(struct ring_rest *rest, struct event *event, unsigned kind)
{
    struct blkin_detail_event payload;

    if (!ring_take_struct(rest, &payload, sizeof(payload)) || !ring_take_text(rest, &event->log))
        return false;
    event->kind = kind == BLKIN_EVENT_TAG ? EVENT_TAG : EVENT_END;
    event->trace_id = payload.trace_id;
    return true;
}

static bool ring_take_annotation(struct ring_rest *rest, struct event *event, unsigned severity)
{
    static const char *const severities[] = {"emerg",   "alert",  "crit", "err",
                                             "warning", "notice", "",     "debug"};

    if (!ring_take_detail(rest, event, BLKIN_EVENT_TAG) || !ring_take_text(rest, &event->value))
        return false;
    event->kind = EVENT_ANNOTATION;
    event->key = text_of(severities[severity]);
    return true;
}

/* Reads an event with a packed text. `log` has that text until packed_decode() splits it. */
static enum decoded ring_take_packed(struct ring_rest *rest, struct event *event,
                                     const struct ring_clock *clock, unsigned kind)
{
    enum decoded decoded = DECODED_UNREADABLE;
    bool is_whole;

    event->trace_id_high = 0;
    event->key = (struct text){"", 0};
    if (kind == BLKIN_EVENT_SPAN)
        is_whole = ring_take_span(rest, event);
    else if (kind == BLKIN_EVENT_BEGIN)
        is_whole = ring_take_begin(rest, event);
    else if (kind >= BLKIN_EVENT_ANNOTATION)
        is_whole = ring_take_annotation(rest, event, kind - BLKIN_EVENT_ANNOTATION);
    else
        is_whole = ring_take_detail(rest, event, kind);
    if (is_whole)
        decoded = packed_decode(event);
    if (decoded == DECODED)
        ring_set_time(event, clock, (uint64_t)event->age_ns, PACKED_MOMENT_BITS);
    return decoded;
}

static enum decoded ring_take_process(struct ring_rest *rest, struct event *event,
                                      const struct ring_clock *clock)
{
    struct blkin_process_event payload;

    if (!ring_take_struct(rest, &payload, sizeof(payload)))
        return DECODED_UNREADABLE;
    event->kind = EVENT_PROCESS;
    event->realtime = payload.realtime;
    event->origin.pid = payload.pid;
    event->thread = payload.thread;
    event->sequence = payload.sequence;
    ring_set_time(event, clock, payload.monotonic, 64);
    return DECODED;
}

static enum decoded ring_take_metric(struct ring_rest *rest, struct event *event,
                                     const struct ring_clock *clock)
{
    struct blkin_metric_event payload;

    if (!ring_take_struct(rest, &payload, sizeof(payload)) ||
        !ring_take_text(rest, &event->group) || !ring_take_text(rest, &event->instance) ||
        !ring_take_text(rest, &event->names) || !ring_take_text(rest, &event->values))
        return DECODED_UNREADABLE;
    event->kind = EVENT_METRIC;
    event->thread = payload.thread;
    event->sequence = payload.sequence;
    event->period_ms = payload.period_ms;
    event_hide_dashes(event);
    ring_set_time(event, clock, payload.monotonic, 64);
    return DECODED;
}

/* ---- the events of the original -------------------------------------------------------------- */

static bool ring_is_cut(const struct event *event)
{
    return event->span_name.length > RING_NAME_MAX || event->service.length > RING_NAME_MAX ||
           event->ip.length > RING_NAME_MAX || event->key.length > RING_NAME_MAX ||
           (event->kind != EVENT_KEYVAL_INTEGER && event->value.length > RING_TEXT_MAX);
}

static bool ring_take_annotated(struct ring_rest *rest, struct event *event, unsigned type)
{
    /* in the order of enum blkin_annotation_type */
    static const enum event_kind kinds[BLKIN_ORIGINAL_EVENTS] = {
        EVENT_KEYVAL_TEXT, EVENT_KEYVAL_INTEGER, EVENT_TIMESTAMP};

    event->kind = kinds[type];
    if (event->kind != EVENT_TIMESTAMP && !ring_take_text(rest, &event->key))
        return false;
    return event->kind == EVENT_KEYVAL_INTEGER || ring_take_text(rest, &event->value);
}

static enum decoded ring_take_original(struct ring_rest *rest, struct event *event,
                                       const struct ring_clock *clock, unsigned type)
{
    struct ring_original payload;

    event->key = (struct text){"", 0};
    if (!ring_take_struct(rest, &payload, sizeof(payload)) ||
        !ring_take_text(rest, &event->span_name) || !ring_take_text(rest, &event->service) ||
        !ring_take_text(rest, &event->ip) || !ring_take_annotated(rest, event, type))
        return DECODED_UNREADABLE;
    event->trace_id_high = 0;
    event->trace_id = payload.trace_id;
    event->span_id = payload.span_id;
    event->parent_id = payload.parent_span_id;
    event->port = payload.port;
    if (event->kind == EVENT_KEYVAL_INTEGER)
        event->integer = payload.integer;
    event->is_cut = ring_is_cut(event);
    ring_set_time(event, clock, payload.monotonic, 64);
    return DECODED;
}

/* ---- all events ------------------------------------------------------------------------------ */

enum decoded ring_event(const struct ring_entry *entry, const struct ring_clock *clock,
                        struct event *event)
{
    struct ring_rest rest = ring_rest_of(entry);

    event->origin.pid = entry->pid;
    event->origin.pid_namespace = entry->pid_namespace;
    if (entry->event >= RING_ORIGINAL && entry->event < RING_ORIGINAL + BLKIN_ORIGINAL_EVENTS)
        return ring_take_original(&rest, event, clock, entry->event - RING_ORIGINAL);
    if (entry->event >= BLKIN_EVENTS)
        return DECODED_FOREIGN;
    switch (entry->event) {
    case BLKIN_EVENT_SLOW:
        return DECODED_ALARM;
    case BLKIN_EVENT_PROCESS:
        return ring_take_process(&rest, event, clock);
    case BLKIN_EVENT_METRIC:
        return ring_take_metric(&rest, event, clock);
    default:
        return ring_take_packed(&rest, event, clock, entry->event);
    }
}

/* All bits of the mark except the version, which is the last byte in memory (little endian). */
#define RING_MARK_NAME UINT64_C(0x00ffffffffffffff)

enum decoded ring_alarm(const struct ring_entry *entry, struct ring_alarm *alarm)
{
    struct ring_rest rest = ring_rest_of(entry);

    if (!ring_take_struct(&rest, &alarm->event, sizeof(alarm->event)))
        return DECODED_UNREADABLE;
    alarm->pid_namespace = entry->pid_namespace;
    if (alarm->event.mark != BLKIN_SLOW_MARK)
        return ((alarm->event.mark ^ BLKIN_SLOW_MARK) & RING_MARK_NAME) == 0 &&
                       alarm->event.mark >> 56 > BLKIN_SLOW_VERSION &&
                       alarm->event.mark >> 56 <= '9'
                   ? DECODED_NEWER
                   : DECODED_UNREADABLE;
    return ring_take_text(&rest, &alarm->why) && ring_take_text(&rest, &alarm->name) &&
                   ring_take_text(&rest, &alarm->service)
               ? DECODED_ALARM
               : DECODED_UNREADABLE;
}

/*
 * The provider tables of the rings, and the payloads of the original API's events.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring_provider.h"

#include "libblkin/base/clock.h"
#include "libblkin/base/provider.h"
#include "ring_early.h"
#include "ring_find.h"
#include "ring_write.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/put.h"
#include "zipkin_c.h"

#include <stdio.h>

/* The object behind a table's `event` pointer. */
struct ring_over_event {
    const int *enabled_below;
    struct packed_event *below;
    void (*record_below)(struct packed_event *event, const void *payload, size_t length,
                         void **thread_slot);
    uint64_t which; /* enum ring_which */
    uint64_t kind;
};

struct ring_over {
    struct blkin_provider table;
    struct ring_over_event events[BLKIN_EVENTS];
};

static const int ring_is_on = 1;
static const int ring_is_on_and_looks = 1 | BLKIN_LOOKS_FOR_RINGS;

static struct ring_over ring_over_lttng, ring_over_nothing;

static const struct ring_over_event *ring_over_event(struct packed_event *event)
{
    return (const struct ring_over_event *)(const void *)event;
}

/* Writes into the current memory, or where early records wait for one. */
static void ring_put(enum ring_which which, uint64_t kind, const void *payload, size_t length)
{
    const struct ring_map *map = ring_map();

    if (!map && ring_early_add(which, kind, payload, length))
        return;
    if (!map) /* it may have come in the meantime */
        map = ring_map();
    if (map)
        (void)ring_write(map, which, kind, payload, length);
    else
        ring_early_lose();
}

/* Records into the rings, and to the provider below if that wants the event. */
__attribute__((noinline)) static void
ring_record_slow(struct packed_event *event, const void *payload, size_t length, void **thread_slot)
{
    const struct ring_over_event *over = ring_over_event(event);

    ring_put(over->which, over->kind, payload, length);
    if (__atomic_load_n(over->enabled_below, __ATOMIC_RELAXED))
        over->record_below(over->below, payload, length, thread_slot);
}

_Static_assert(sizeof(struct blkin_detail_event) + BLKIN_DETAIL_HEAD_SIZE >= RING_PAYLOAD_MIN &&
                   sizeof(struct blkin_process_event) >= RING_PAYLOAD_MIN &&
                   sizeof(struct blkin_slow_event) >= RING_PAYLOAD_MIN &&
                   sizeof(struct blkin_metric_event) + 4 * sizeof("-") >= RING_PAYLOAD_MIN,
               "a payload is too short");

/*
 * The fast path calls nothing, so that it saves few registers. Reasons for the slow path: there is
 * no memory, or the provider below wants the event. The process is in another time namespace, or is
 * a child that has not recorded yet. The record does not fit before the end of the ring.
 */
static void ring_record(struct packed_event *event, const void *payload, size_t length,
                        void **thread_slot)
{
    const struct ring_over_event *over = ring_over_event(event);
    const struct ring_map *map = ring_map();

    if (__builtin_expect(!map || ring_process.head == 0 ||
                             __atomic_load_n(over->enabled_below, __ATOMIC_RELAXED) ||
                             !ring_try(&map->parts[over->which], over->kind, payload, length),
                         0))
        ring_record_slow(event, payload, length, thread_slot);
}

/* ---- the original API ---- */

/* The length of the longest text that marks a cut. */
#define RING_MARK_MAX (sizeof("...[2400 of 18446744073709551615 bytes]") - 1)

_Static_assert(sizeof(struct ring_original) + 4 * (RING_NAME_MAX + RING_MARK_MAX + 1) +
                       RING_TEXT_MAX + RING_MARK_MAX + 1 <=
                   RING_PAYLOAD_MAX,
               "an event of the original API may be too long");

/* Cuts a text, and marks the cut like the sink's json_put_string(). */
static char *ring_put_text(char *at, const char *string, size_t max)
{
    const size_t length = string ? strlen(string) : 0, cut = blkin_cut(string, length, max);

    at = blkin_put_bytes(at, string, cut);
    if (cut < length)
        at += snprintf(at, RING_MARK_MAX + 1, "...[%zu of %zu bytes]", cut, length);
    *at = '\0';
    return at + 1;
}

static void ring_write_original(const struct blkin_trace *trace,
                                const struct blkin_endpoint *endpoint,
                                const struct blkin_annotation *annotation)
{
    const struct ring_original head = {
        .monotonic = blkin_clock_now(),
        .trace_id = (uint64_t)trace->info.trace_id,
        .span_id = (uint64_t)trace->info.span_id,
        .parent_span_id = (uint64_t)trace->info.parent_span_id,
        .integer = annotation->type == ANNOT_INTEGER ? annotation->val_int : 0,
        .port = (uint16_t)endpoint->port,
    };
    char payload[RING_PAYLOAD_MAX];
    char *at = blkin_put_bytes(payload, &head, sizeof(head));

    at = ring_put_text(at, trace->name, RING_NAME_MAX);
    at = ring_put_text(at, endpoint->name, RING_NAME_MAX);
    at = ring_put_text(at, endpoint->ip, RING_NAME_MAX);
    if (annotation->type != ANNOT_TIMESTAMP)
        at = ring_put_text(at, annotation->key, RING_NAME_MAX);
    if (annotation->type != ANNOT_INTEGER)
        at = ring_put_text(at, annotation->val_str, RING_TEXT_MAX);
    ring_put(RING_EVENTS, ring_kind(RING_ORIGINAL + (unsigned)annotation->type), payload,
             (size_t)(at - payload));
}

/* The provider below the current table. */
static const struct blkin_provider *ring_below = &blkin_no_provider;

static void ring_record_original(const struct blkin_trace *trace,
                                 const struct blkin_endpoint *endpoint,
                                 const struct blkin_annotation *annotation)
{
    const struct blkin_tracepoint *tracepoint =
        &__atomic_load_n(&ring_below, __ATOMIC_ACQUIRE)->zipkin[annotation->type];

    if (ring_map() || ring_early_is_open())
        ring_write_original(trace, endpoint, annotation);
    else
        ring_early_lose();
    if (__builtin_expect(__atomic_load_n(tracepoint->enabled, __ATOMIC_RELAXED), 0))
        tracepoint->record(trace, endpoint, annotation);
}

/* ---- the tables ---- */

static bool ring_is_always_recorded(enum blkin_packed_event event)
{
    return event == BLKIN_EVENT_SPAN || event == BLKIN_EVENT_PROCESS || event == BLKIN_EVENT_SLOW ||
           event == BLKIN_EVENT_METRIC;
}

static struct ring_over *ring_over(const struct blkin_provider *below)
{
    return below == &blkin_no_provider ? &ring_over_nothing : &ring_over_lttng;
}

void ring_provider_init(const struct blkin_provider *below)
{
    struct ring_over *over = ring_over(below);

    over->table = *below;
    over->table.record = ring_record;
    for (unsigned i = 0; i < BLKIN_EVENTS; i++) {
        over->events[i] = (struct ring_over_event){
            .enabled_below = below->events[i].enabled,
            .below = below->events[i].event,
            .record_below = below->record,
            .which = i == BLKIN_EVENT_SLOW ? RING_ALARMS : RING_EVENTS,
            .kind = ring_kind(i),
        };
        over->table.events[i].event = (struct packed_event *)(void *)&over->events[i];
        if (ring_is_always_recorded(i))
            over->table.events[i].enabled = &ring_is_on;
    }
    for (unsigned i = 0; i < BLKIN_ORIGINAL_EVENTS; i++)
        over->table.zipkin[i] =
            (struct blkin_tracepoint){&ring_is_on_and_looks, ring_record_original};
}

const struct blkin_provider *ring_provider_use_over(const struct blkin_provider *below)
{
    __atomic_store_n(&ring_below, below, __ATOMIC_RELEASE);
    return &ring_over(below)->table;
}

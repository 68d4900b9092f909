/*
 * Turns records into the events of a trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "dump.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/spans/event.h"
#include "ctf.h"
#include "ring_event.h"
#include "tracepoints/format/fields.h"
#include "tracepoints/format/provider_table.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- payloads in LTTng's layout -------------------------------------------------------------- */

struct dump_form {
    const struct packed_field *fields;
    size_t count;
};

#define DUMP_FORM(event, name, level, fields) \
    [event] = {fields, sizeof(fields) / sizeof((fields)[0])},

static const struct dump_form dump_forms[BLKIN_EVENTS] = {BLKIN_EACH_EVENT(DUMP_FORM)};

/* Returns the length of the fields in the payload; 0: the payload is too short. */
static size_t dump_length(const struct dump_form *form, const struct ring_entry *entry)
{
    static const size_t sizes[] = {
        [PACKED_U16] = 2,
        [PACKED_U32] = 4,
        [PACKED_U64] = 8,
        [PACKED_HEX64] = 8,
    };
    size_t at = 0;

    for (size_t i = 0; i < form->count; i++) {
        const enum packed_type type = form->fields[i].type;
        const size_t left = entry->length - at;
        const char *nul = type == PACKED_STRING ? memchr(entry->payload + at, '\0', left) : NULL;

        if (type == PACKED_STRING ? !nul : left < sizes[type])
            return 0;
        at = type == PACKED_STRING ? (size_t)(nul + 1 - entry->payload) : at + sizes[type];
    }
    return at;
}

static void dump_put_text(struct buffer *payload, struct text text)
{
    buffer_put(payload, text.data, text.length);
    buffer_put(payload, "", 1);
}

#define DUMP_PUT(payload, type, value)                        \
    do {                                                      \
        const type put = (type)(value);                       \
        buffer_put(payload, (const char *)&put, sizeof(put)); \
    } while (0)

/* The payload has room for twice the largest record. */
static void dump_put_original(struct buffer *payload, const struct event *event)
{
    dump_put_text(payload, event->span_name);
    dump_put_text(payload, event->service);
    DUMP_PUT(payload, int32_t, event->port);
    dump_put_text(payload, event->ip);
    DUMP_PUT(payload, uint64_t, event->trace_id);
    DUMP_PUT(payload, uint64_t, event->span_id);
    DUMP_PUT(payload, uint64_t, event->parent_id);
    if (event->kind != EVENT_TIMESTAMP)
        dump_put_text(payload, event->key);
    if (event->kind == EVENT_KEYVAL_INTEGER)
        DUMP_PUT(payload, int64_t, event->integer);
    else
        dump_put_text(payload, event->value);
}

/* Returns the payload of the event. The length is 0 if the record is no valid event of BlkKin. */
static struct buffer dump_payload(const struct ring_entry *entry, char room[2 * RING_RECORD_MAX])
{
    static const struct ring_clock no_clock = {0, 0, 0};
    struct buffer payload = {.data = room};
    struct event event;

    if (entry->event < BLKIN_EVENTS) {
        payload.data = (char *)(uintptr_t)entry->payload;
        payload.length = dump_length(&dump_forms[entry->event], entry);
    } else if (ring_event(entry, &no_clock, &event) == DECODED) {
        dump_put_original(&payload, &event);
    }
    return payload;
}

/* ---- the order of records -------------------------------------------------------------------- */

struct dump_record {
    int64_t time_ns;
    struct ring_entry entry;
};

struct dump_ring {
    struct ring_reader reader;
    struct dump_record *records;
    size_t count;
};

/* Reads the time of an alarm, which ring_event() does not decode. */
static int64_t dump_time_of_alarm(const struct ring_entry *entry, const struct ring_clock *clock)
{
    struct ring_alarm alarm;
    int64_t age;

    if (ring_alarm(entry, &alarm) != DECODED_ALARM ||
        !moment_age((uint64_t)clock->now_ns, alarm.event.monotonic, 64, &age) ||
        clock->now_ns - age < clock->after_ns)
        return clock->after_ns;
    return clock->now_ns - age;
}

/* Returns the record's time: not before the previous record, unless the event has only one time. */
static int64_t dump_time(const struct ring_entry *entry, const struct ring_clock *clock)
{
    struct event event;

    switch (ring_event(entry, clock, &event)) {
    case DECODED: /* a program in another time namespace may have any time */
        return event.time_ns < 0 ? clock->after_ns : event.time_ns;
    case DECODED_ALARM:
        return dump_time_of_alarm(entry, clock);
    default:
        return clock->after_ns;
    }
}

static int dump_compare(const void *a, const void *b)
{
    const struct dump_record *one = a, *other = b;

    if (one->time_ns != other->time_ns)
        return one->time_ns < other->time_ns ? -1 : 1;
    return one->entry.payload < other->entry.payload ? -1
                                                     : one->entry.payload > other->entry.payload;
}

/* Sorts by time. Records at the beginning without a time get the time of the first one that has. */
static void dump_sort(struct dump_ring *ring, int64_t now_ns)
{
    struct ring_clock clock = {.now_ns = now_ns};
    bool is_sorted = true;
    size_t untimed = 0;

    for (size_t i = 0; i < ring->count; i++) {
        struct dump_record *record = &ring->records[i];

        record->time_ns = dump_time(&record->entry, &clock);
        is_sorted = is_sorted && record->time_ns >= clock.after_ns;
        if (record->time_ns > clock.after_ns)
            clock.after_ns = record->time_ns;
        untimed += clock.after_ns == 0;
    }
    for (size_t i = 0; i < untimed; i++)
        ring->records[i].time_ns = untimed < ring->count ? ring->records[untimed].time_ns : now_ns;
    if (!is_sorted)
        qsort(ring->records, ring->count, sizeof(ring->records[0]), dump_compare);
}

/* ---- a ring ---------------------------------------------------------------------------------- */

static bool dump_collect(struct dump_ring *ring)
{
    struct ring_entry entry;
    size_t room = 0;

    for (; ring_peek(&ring->reader, &entry); ring_pass(&ring->reader)) {
        if (!ARRAY_FITS(ring->records, room, ring->count))
            return false;
        ring->records[ring->count++].entry = entry;
    }
    return true;
}

static bool dump_write_records(struct ctf_stream *stream, const struct dump_ring *ring,
                               struct dump_counts *counts, struct error *error)
{
    char room[2 * RING_RECORD_MAX];

    for (size_t i = 0; i < ring->count; i++) {
        const struct dump_record *record = &ring->records[i];
        const struct buffer payload = dump_payload(&record->entry, room);
        const uint64_t time_ns = (uint64_t)record->time_ns;

        counts->records++;
        if (!payload.length) {
            counts->left_out++;
            ctf_stream_add_discarded(stream, time_ns);
            continue;
        }
        if (!ctf_stream_add(stream, time_ns, &record->entry, payload, error))
            return false;
        counts->events++;
    }
    return true;
}

static bool dump_write_ring(const struct ctf *ctf, const struct dump_memory *from, uint32_t number,
                            const struct dump_ring *ring, struct dump_counts *counts,
                            struct error *error)
{
    const struct ring_counts *read = &ring->reader.counts;
    const uint32_t cpus = from->memory->size.cpus, cpu = number % cpus;
    const int64_t first_ns = ring->count ? ring->records[0].time_ns : clock_ns();
    struct ctf_stream stream;
    char name[100];
    bool is_whole;

    (void)snprintf(name, sizeof(name), "%s-%" PRIu32 "-%u_%" PRIu32,
                   number < cpus ? "events" : "alarms", from->user, counts->streams, cpu);
    if (!ctf_stream_open(&stream, ctf, name, cpu, error))
        return false;
    counts->streams++;
    is_whole =
        ctf_stream_begin(&stream, read->overwritten + read->damaged + read->jumps != 0,
                         (uint64_t)clock_earlier((int64_t)from->memory->created_ns, first_ns),
                         (uint64_t)first_ns, error) &&
        dump_write_records(&stream, ring, counts, error);
    return ctf_stream_close(&stream, error) && is_whole;
}

static bool dump_ring(const struct ctf *ctf, const struct dump_memory *from, uint32_t number,
                      struct dump_counts *counts, struct error *error)
{
    struct dump_ring ring = {.count = 0};
    bool is_whole;

    ring_reader_open(&ring.reader, memory_ring(from->memory, number), 0);
    is_whole = ring_read(&ring.reader) && dump_collect(&ring);
    if (!is_whole) {
        error_set(error, "out of memory: a ring has %" PRIu64 " bytes", ring.reader.ring.size);
    } else if (ring.reader.at || ring.reader.counts.jumps) {
        dump_sort(&ring, clock_ns());
        is_whole = dump_write_ring(ctf, from, number, &ring, counts, error);
    }
    counts->overwritten_bytes += ring.reader.counts.overwritten;
    counts->damaged_bytes += ring.reader.counts.damaged;
    free(ring.records);
    ring_reader_close(&ring.reader);
    return is_whole;
}

/* ---- all memories ---------------------------------------------------------------------------- */

bool dump_memories(const struct dump_memory *memories, unsigned count,
                   const struct dump_options *options, struct dump_counts *counts,
                   struct error *error)
{
    struct ctf ctf;
    bool is_whole;

    *counts = (struct dump_counts){.events = 0};
    is_whole = ctf_open(&ctf, options->folder, error);
    for (unsigned i = 0; i < count; i++) {
        for (uint32_t ring = 0; is_whole && ring < memory_rings(memories[i].memory); ring++)
            is_whole = dump_ring(&ctf, &memories[i], ring, counts, error);
        counts->not_written += memory_lost(memories[i].memory);
    }
    is_whole = is_whole && ctf_describe(&ctf, options->host, options->offset_ns, error);
    ctf_close(&ctf);
    return is_whole;
}

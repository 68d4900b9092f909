/*
 * Fuzzes rings of any bytes. Read and lost bytes add up. The event of a record points only into the
 * record. A walk back ends, and returns only bytes of the ring.
 *
 * The input is written to a ring as programs would, record by record, and overwritten in part. Each
 * record is read as an event, and the events go to an assembler.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/spans/assembler.h"
#include "tools/rings/ring_back.h"
#include "tools/rings/ring_event.h"
#include "fuzz_payload.h"

#define RING_NOW   UINT64_C(5000000)
#define RING_BYTES RING_BYTES_MIN

static char bytes[RING_BYTES];
static uint64_t committed;
static unsigned sum;

static void put_bytes(uint64_t at, const void *from, size_t length)
{
    for (size_t i = 0; i < length; i++)
        bytes[(at + i) % RING_BYTES] = ((const char *)from)[i];
}

static void put_trailer(uint64_t at, unsigned event, uint64_t length)
{
    const uint64_t trailer = ring_trailer(at, event, length);

    put_bytes(at, &trailer, sizeof(trailer));
}

/* Writes a record, or bytes that only look like one. */
static void put_record(struct fuzz *source)
{
    struct record_payload payload;
    uint64_t length;

    payload_take(&payload, source, RING_NOW);
    length = payload.length + sizeof(struct ring_record);
    put_bytes(committed + sizeof(struct ring_record), payload.bytes, payload.length);
    committed += ring_record_size(length);
    put_trailer(committed - RING_TRAILER_SIZE, payload.event,
                payload.event & 128 ? take(source, 2) : length);
}

static void scribble(struct fuzz *source)
{
    const uint64_t value = take(source, 8);

    if (value & 1)
        committed = value >> (take(source, 1) & 63) & ~UINT64_C(7);
    else
        put_bytes(value >> 8, &value, 8);
}

/* ---- events ---- */

static void look_at(struct text text, const struct ring_entry *entry)
{
    REQUIRE(!text.length || (text.data >= entry->payload &&
                             text.data + text.length <= entry->payload + entry->length));
    for (size_t i = 0; i < text.length; i++)
        sum += (unsigned char)text.data[i];
}

/* The texts that ring_event() did not set are empty. */
static void check_event(const struct event *event, const struct ring_entry *entry)
{
    if (event->kind != EVENT_ANNOTATION) /* its key is a severity */
        look_at(event->key, entry);
    look_at(event->span_name, entry);
    look_at(event->service, entry);
    look_at(event->ip, entry);
    look_at(event->value, entry);
    look_at(event->log, entry);
}

static void take_span(void *context, struct span *span)
{
    (void)context;
    REQUIRE(span->id && span->start_ns <= span->end_ns);
}

static uint64_t use(const struct ring_entry *entry, struct assembler *assembler)
{
    struct event event = {.time_ns = 0};
    const struct ring_clock clock = {1000000, RING_NOW, INT64_C(1700000000000000000)};
    const enum decoded decoded = ring_event(entry, &clock, &event);
    struct ring_alarm alarm;

    REQUIRE(decoded <= DECODED_NEWER && decoded != DECODED_UNWANTED);
    REQUIRE((decoded == DECODED_ALARM) == (entry->event == BLKIN_EVENT_SLOW));
    if (decoded == DECODED_ALARM && ring_alarm(entry, &alarm) == DECODED_ALARM) {
        look_at(alarm.why, entry);
        look_at(alarm.name, entry);
        look_at(alarm.service, entry);
    }
    if (decoded != DECODED)
        return 0;
    REQUIRE(event.time_ns <= clock.now_ns + clock.offset_ns + EVENT_AHEAD_NS);
    check_event(&event, entry);
    assembler_add(assembler, &event);
    return 1;
}

/* ---- back ---- */

static uint64_t back_at; /* position of the last record returned */

static bool use_back(void *context, const struct ring_entry *entry, uint64_t at)
{
    const uint64_t *end = context;

    REQUIRE(at < back_at && *end - at <= RING_BYTES);
    REQUIRE(entry->length <= RING_RECORD_MAX);
    back_at = at;
    look_at((struct text){entry->payload, entry->length}, entry);
    return (sum & 255) != 0;
}

/* Walks from the end, or from another position. */
static void walk_back(struct ring ring, uint64_t before)
{
    static char copy[RING_OLDEST_BYTES];
    static struct ring_back_copy pieces;
    uint64_t end = before & ~UINT64_C(7);
    struct ring_back result = ring_back_begin(ring, end);
    struct ring_entry entry;

    back_at = end;
    while (result.at > (end / 2 & ~UINT64_C(7)) && !result.is_ended)
        ring_walk_piece(&result, &pieces, end / 2 & ~UINT64_C(7), use_back, &end);
    while (result.at > 0 && !result.is_ended)
        ring_walk_piece(&result, &pieces, 0, use_back, &end);
    REQUIRE(result.bytes <= RING_BYTES);
    if (ring_oldest(ring, copy, &entry))
        look_at((struct text){entry.payload, entry.length}, &entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct assembler_options options = {.idle_timeout_ns = 1000,
                                                     .end_timeout_ns = 1000,
                                                     .open_timeout_ns = 1000,
                                                     .max_open_spans = 1000,
                                                     .max_open_bytes = 1 << 24};
    struct fuzz source = {data, data + size};
    const struct ring ring = {&committed, bytes, RING_BYTES};
    struct assembler *assembler = assembler_new(&options, take_span, NULL);
    struct ring_reader reader;
    struct ring_entry entry;
    uint64_t from = 0, events = 0;

    REQUIRE(assembler);
    committed = take(&source, 1) * RING_BYTES / 128;
    ring_reader_open(&reader, ring, from = committed);
    while (source.at < source.end) {
        const uint64_t choice = take(&source, 1), jumps = reader.counts.jumps;

        if (choice < 32)
            scribble(&source);
        else
            put_record(&source);
        if (choice & 1)
            continue;
        walk_back(ring, choice & 2 ? committed : reader.at);
        REQUIRE(ring_read(&reader));
        for (; ring_peek(&reader, &entry); ring_pass(&reader))
            events += use(&entry, assembler);
        if (reader.counts.jumps != jumps) {
            reader.counts = (struct ring_counts){.jumps = reader.counts.jumps};
            from = reader.at;
        }
        REQUIRE(reader.at == committed);
        REQUIRE(reader.counts.read + reader.counts.overwritten + reader.counts.damaged ==
                reader.at - from);
    }
    while (assembler_flush_some(assembler, UINT32_MAX))
        ;
    REQUIRE(assembler_counts(assembler)->events == events);
    assembler_free(assembler);
    ring_reader_close(&reader);
    return 0;
}

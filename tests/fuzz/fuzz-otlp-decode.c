/*
 * Fuzzes the decoder of OTLP traces with any bytes, and with requests of our encoder after some of
 * their bytes were changed. No pointer leads out of the request. Each span is the same when it is
 * read alone, and the encoder makes a well-formed request of it. Unchanged spans are read as they
 * were written. (tests/otlp/test-receive.py has their fields in other orders.)
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "tools/otlp/otlp_decode.h"
#include "tools/otlp/otlp_value.h"
#include "babeltrace-plugin/encode/protobuf.h"
#include "babeltrace-plugin/encode/encoder.h"

#define UNITS 3

static struct fenced request;
static struct endpoint_table *endpoints;
static struct encoder *encoder;

/* ---- a request of our encoder's -------------------------------------------------------------- */

struct otlp_written {
    struct span spans[UNITS];
    uint32_t count;
};

static struct text take_text(struct fuzz *input)
{
    static const char *const texts[] = {"error",   "peer.service", "network.peer.address",
                                        "osd",     "service.name", "",
                                        "host.ip", "a b"};
    const uint64_t choice = take(input, 1);

    return choice < 128 ? text_of(texts[choice % 8]) : take_bytes(input, choice % 24);
}

static void make_span(struct fuzz *input, struct span *span)
{
    char *log = span->log;
    const uint32_t capacity = span->log_capacity;

    *span = (struct span){.log = log, .log_capacity = capacity};
    span->trace_id_high = take(input, 1);
    span->trace_id = take(input, 2) | 1 << 20;
    span->id = take(input, 2) | 1 << 20;
    span->parent_id = take(input, 1);
    span->kind = (enum span_kind)(take(input, 1) % 5);
    span->start_ns = (int64_t)take(input, 4) + 1;
    span->end_ns = span->start_ns + (int64_t)take(input, 2);
    span->endpoint = endpoint_get(endpoints, take_text(input), text_of("10.0.0.1"), 0);
    if (take(input, 1) % 2)
        span->remote = endpoint_get(endpoints, take_text(input), text_of("10.0.0.2"), 80);
    REQUIRE(span->endpoint && span_set_name(span, take_text(input)));
    for (uint64_t entries = take(input, 1) % 5; entries; entries--) {
        const struct span_link link = {take(input, 1), 1, 2};
        const uint64_t type = take(input, 1);

        if (type % 4 == SPAN_LINK)
            (void)span_add_link(span, &link);
        else
            (void)span_add(span, (enum span_entry_type)(type % 4), take_text(input),
                           take_text(input), (int64_t)take(input, 2) + 1);
    }
}

static size_t write_request(struct fuzz *input, struct otlp_written *written)
{
    struct buffer buffer = {.limit = sizeof(request.bytes)};
    uint32_t starts[UNITS + 1];
    uint64_t group = 0;
    size_t length;
    bool cut;

    written->count = 1 + (uint32_t)take(input, 1) % UNITS;
    for (uint32_t i = 0; i < written->count; i++) {
        make_span(input, &written->spans[i]);
        starts[i] = (uint32_t)buffer.length;
        if (take(input, 1) % 2)
            group = 0;
        if (!encoder->encode(encoder, &buffer, &written->spans[i], &group, &cut)) {
            written->count = i;
            break;
        }
    }
    length = buffer.length;
    if (length)
        encoder->frame(buffer.data, starts, 0, written->count, length);
    if (length > starts[0])
        memcpy(request.bytes, buffer.data + starts[0], length - starts[0]);
    length = length ? length - starts[0] : 0;
    buffer_free(&buffer);
    return length;
}

/* ---- decoded spans --------------------------------------------------------------------------- */

struct reading {
    const struct otlp_written *written; /* NULL: changed */
    size_t length;
    uint64_t calls;
    uint64_t number;
};

static void check_inside(const struct reading *reading, struct text text)
{
    REQUIRE(text.length == 0 || (text.data >= request.bytes &&
                                 text.data + text.length <= request.bytes + reading->length));
}

static void on_sent(void *context, const struct otlp_origin *origin, const struct otlp_span *span)
{
    const struct span *whole = context;

    (void)origin;
    REQUIRE(span->trace_id_high == whole->trace_id_high && span->trace_id == whole->trace_id);
    REQUIRE(span->id == whole->id && span->end_ns == whole->end_ns);
    REQUIRE(span->kind == whole->kind);
}

/* Checks that the sent bytes are one span, whether they are a copy or not. */
static void check_sent(struct span *whole)
{
    struct buffer buffer = {.limit = 0};
    struct otlp_decoded decoded;
    uint32_t start = 0;
    uint64_t group = 0;
    bool cut;

    REQUIRE(encoder->encode(encoder, &buffer, whole, &group, &cut));
    encoder->frame(buffer.data, &start, 0, 1, buffer.length);
    decoded = otlp_decode((struct text){buffer.data, buffer.length}, on_sent, whole);
    REQUIRE(decoded.spans == 1 && decoded.invalid == 0 && !decoded.is_broken);
    buffer_free(&buffer);
}

static void check_whole(const struct otlp_origin *origin, const struct otlp_span *span)
{
    static struct span whole;
    char value[16];

    if (!otlp_decode_span(origin, span, endpoints, &whole))
        return;
    REQUIRE(whole.endpoint && whole.start_ns <= whole.end_ns && whole.start_ns >= 0);
    REQUIRE(text_equal(span_name(&whole), span->name));
    SPAN_FOR_EACH_ENTRY(&whole, entry)
    {
        REQUIRE(entry->type <= SPAN_MESSAGE);
        REQUIRE((const char *)entry + entry->size <= whole.log + whole.log_length);
        REQUIRE(span_entry_key(entry).length + span_entry_value(entry).length + sizeof(*entry) <=
                entry->size);
    }
    check_sent(&whole);
    if (otlp_attribute_text(span->raw, OTLP_SPAN_ATTRIBUTE, text_of("error"), value, sizeof(value)))
        REQUIRE(strlen(value) < sizeof(value));
    (void)otlp_attribute_text(origin->resource, OTLP_RESOURCE_ATTRIBUTE, text_of("host.ip"), value,
                              1);
}

static void check_written(const struct otlp_origin *origin, const struct otlp_span *read,
                          const struct span *span)
{
    REQUIRE(read->trace_id_high == span->trace_id_high && read->trace_id == span->trace_id);
    REQUIRE(read->id == span->id);
    REQUIRE(read->parent_id == (span->parent_id == span->id ? 0 : span->parent_id));
    REQUIRE(read->start_ns == span->start_ns && read->end_ns == span->end_ns);
    REQUIRE(read->kind == span->kind);
    REQUIRE(origin->service.length >= (span->endpoint->service.length ? 1 : 0));
}

static void on_span(void *context, const struct otlp_origin *origin, const struct otlp_span *span)
{
    struct reading *reading = context;
    struct otlp_span again;

    check_inside(reading, origin->resource);
    check_inside(reading, origin->scope);
    check_inside(reading, origin->service);
    check_inside(reading, span->name);
    check_inside(reading, span->peer_service);
    check_inside(reading, span->raw);
    REQUIRE(span->id && (span->trace_id | span->trace_id_high));
    REQUIRE(span->start_ns >= 0 && span->end_ns >= span->start_ns);
    REQUIRE(origin->number >= reading->number && origin->number > 0);
    REQUIRE(otlp_read_span(span->raw, &again));
    REQUIRE(again.id == span->id && again.trace_id == span->trace_id &&
            again.end_ns == span->end_ns && again.is_error == span->is_error);
    check_whole(origin, span);
    if (reading->written)
        check_written(origin, span, &reading->written->spans[reading->calls]);
    reading->number = origin->number;
    reading->calls++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct otlp_written written;
    struct fuzz input = {data, data + size};
    struct reading reading = {.written = NULL};
    struct otlp_decoded decoded;
    const uint64_t mode = take(&input, 1);

    if (!encoder) {
        encoder = otlp_protocol.encoder_new();
        endpoints = endpoint_table_new();
    }
    REQUIRE(encoder && endpoints);
    if (mode % 2) {
        reading.length = write_request(&input, &written);
        reading.written = mode % 4 == 3 ? &written : NULL;
        while (!reading.written && reading.length && input.at < input.end) {
            const size_t place = take(&input, 2) % reading.length;

            request.bytes[place] = (char)take(&input, 1);
        }
    } else {
        const struct text bytes = take_bytes(&input, sizeof(request.bytes));

        reading.length = bytes.length;
        if (bytes.length)
            memcpy(request.bytes, bytes.data, bytes.length);
    }
    fence_put(&request, reading.length);
    decoded = otlp_decode((struct text){request.bytes, reading.length}, on_span, &reading);
    fence_lift(&request, reading.length);
    REQUIRE(decoded.spans == reading.calls + decoded.invalid);
    if (reading.written)
        REQUIRE(!decoded.is_broken && !decoded.invalid && decoded.spans == written.count);
    return 0;
}

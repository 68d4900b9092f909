/*
 * Fuzzes the OTLP encoder with spans of any bytes, ids and times. The bytes must fit in the
 * reserved room, and form requests however the spans are divided. Texts are valid, ids are not
 * zero, and no key occurs twice. Each annotation and tag is accounted for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
/* Includes the source for otlp_size_limit(): a buffer that grows in powers of two would hide a
 * limit that is too small. */
#include "babeltrace-plugin/encode/otlp.c"

/* libFuzzer chooses inputs by their coverage of the encoder, not of this file */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "fuzz.h"
#include "fuzz_span.h"
#include "babeltrace-plugin/base/utf8.h"
#include "babeltrace-plugin/deliver/body.h"
#include "babeltrace-plugin/encode/protobuf.h"

#define OTLP_SPANS_MAX 6

/* The parts of a span that were given to the encoder. */
struct given {
    struct span span;
    struct entries entries;
    bool cut;
};

/* ---- the encoder's output ---- */

/* Reads the next field. Returns false at the end. Requires that the bytes are fields. */
static bool next_field(struct pb_reader *reader, struct pb_member *field)
{
    const bool is_there = pb_next(reader, field);

    REQUIRE(is_there || !pb_is_broken(reader));
    return is_there;
}

/* Requires that the next field has this number, and is bytes. */
static struct pb_member require_bytes(struct pb_reader *reader, unsigned number)
{
    struct pb_member field;

    REQUIRE(next_field(reader, &field) && field.tag == PB_TAG(number, PB_TYPE_BYTES));
    return field;
}

static void require_text(const struct pb_member *field)
{
    REQUIRE(utf8_is_valid(pb_text(field)) && !memchr(field->bytes, '\0', (size_t)field->value));
}

static void require_id(const struct pb_member *field, size_t size)
{
    REQUIRE(field->value == size);
    REQUIRE((pb_id(field->bytes) | pb_id(field->bytes + size - 8)) != 0);
}

/* Requires an AnyValue with exactly one value, of a type that the encoder writes. */
static void require_value(const struct pb_member *value)
{
    struct pb_reader reader = pb_reader_of(pb_text(value));
    struct pb_member field;

    REQUIRE(next_field(&reader, &field) && reader.at == reader.end);
    if (field.tag == PB_TAG(1, PB_TYPE_BYTES))
        require_text(&field);
    else if (field.tag == PB_TAG(5, PB_TYPE_BYTES))
        REQUIRE(field.value > 0);
    else
        REQUIRE(field.tag == PB_TAG(2, PB_TYPE_VARINT) || field.tag == PB_TAG(3, PB_TYPE_VARINT));
}

static struct pb_member require_pair(const struct pb_member *pair)
{
    struct pb_reader reader = pb_reader_of(pb_text(pair));
    const struct pb_member key = require_bytes(&reader, 1), value = require_bytes(&reader, 2);

    REQUIRE(reader.at == reader.end);
    require_text(&key);
    require_value(&value);
    return key;
}

/* ---- a span ---- */

struct otlp_seen {
    struct pb_member keys[TAG_KEYS_MAX];
    size_t attributes, events, links, dropped_attributes, dropped_events, dropped_links;
    bool has_status;
};

static void see_attribute(struct otlp_seen *seen, const struct pb_member *field)
{
    const struct pb_member key = require_pair(field);

    for (size_t i = 0; i < seen->attributes; i++)
        REQUIRE(!text_equal(pb_text(&seen->keys[i]), pb_text(&key)));
    REQUIRE(seen->attributes < TAG_KEYS_MAX);
    seen->keys[seen->attributes++] = key;
}

static void see_event(const struct pb_member *event)
{
    struct pb_reader reader = pb_reader_of(pb_text(event));
    struct pb_member field;

    REQUIRE(next_field(&reader, &field) && field.tag == PB_TAG(1, PB_TYPE_FIXED64));
    field = require_bytes(&reader, 2);
    require_text(&field);
    while (next_field(&reader, &field)) {
        REQUIRE(field.tag == PB_TAG(3, PB_TYPE_BYTES));
        (void)require_pair(&field);
    }
}

static void see_link(const struct pb_member *link)
{
    struct pb_reader reader = pb_reader_of(pb_text(link));

    REQUIRE(require_bytes(&reader, 1).value == 16 && require_bytes(&reader, 2).value == 8);
    REQUIRE(reader.at == reader.end);
}

static void see(struct otlp_seen *seen, const struct pb_member *field)
{
    switch (field->tag) {
    case PB_TAG(1, PB_TYPE_BYTES):
        require_id(field, 16);
        break;
    case PB_TAG(2, PB_TYPE_BYTES):
    case PB_TAG(4, PB_TYPE_BYTES):
        require_id(field, 8);
        break;
    case PB_TAG(5, PB_TYPE_BYTES):
        require_text(field);
        break;
    case PB_TAG(6, PB_TYPE_VARINT):
        REQUIRE(field->value >= 1 && field->value <= 5);
        break;
    case PB_TAG(9, PB_TYPE_BYTES):
        see_attribute(seen, field);
        break;
    case PB_TAG(10, PB_TYPE_VARINT):
        seen->dropped_attributes = field->value;
        break;
    case PB_TAG(11, PB_TYPE_BYTES):
        seen->events++;
        see_event(field);
        break;
    case PB_TAG(12, PB_TYPE_VARINT):
        seen->dropped_events = field->value;
        break;
    case PB_TAG(13, PB_TYPE_BYTES):
        seen->links++;
        see_link(field);
        break;
    case PB_TAG(14, PB_TYPE_VARINT):
        seen->dropped_links = field->value;
        break;
    case PB_TAG(15, PB_TYPE_BYTES):
        REQUIRE(!seen->has_status);
        seen->has_status = true;
        break;
    default:
        REQUIRE(field->tag == PB_TAG(7, PB_TYPE_FIXED64) ||
                field->tag == PB_TAG(8, PB_TYPE_FIXED64) ||
                field->tag == PB_TAG(16, PB_TYPE_FIXED32));
        break;
    }
}

static size_t addresses_of(const struct endpoint *endpoint)
{
    return endpoint ? (endpoint->ipv4[0] || endpoint->ipv6[0]) + (size_t)(endpoint->port != 0) : 0;
}

static size_t own_attributes(const struct span *span)
{
    const struct resource resource = resource_of(span);
    const struct endpoint *remote = span->remote;
    size_t own = (size_t)span->debug + span->shared + addresses_of(span->endpoint) +
                 addresses_of(remote) + (remote && remote->service.length);

    if (span->kind != SPAN_LOCAL && !resource.has_logical_address)
        own +=
            addresses_of(remote) + (span->kind == SPAN_SERVER ? addresses_of(span->endpoint) : 0);
    return own - (resource.tags[0] != NULL) - (resource.tags[1] != NULL);
}

/* Requires that every annotation and tag is in the message, counted as left out, or implied by the
 * kind and the times. */
static void require_span(const struct pb_member *message, const struct given *given)
{
    static struct otlp_seen seen;
    struct pb_reader reader = pb_reader_of(pb_text(message));
    size_t implied = 0, dropped;
    struct pb_member field;

    seen = (struct otlp_seen){.attributes = 0};
    while (next_field(&reader, &field))
        see(&seen, &field);
    SPAN_FOR_EACH_ENTRY(&given->span, entry)
    implied += entry->type == SPAN_ANNOTATION && is_implied(&given->span, entry);
    dropped = seen.dropped_attributes + seen.dropped_events + seen.dropped_links;
    REQUIRE(seen.events + seen.dropped_events + implied == given->entries.annotations);
    REQUIRE(seen.attributes + seen.links + seen.has_status - (dropped != 0) +
                seen.dropped_attributes + seen.dropped_links ==
            given->entries.tags + own_attributes(&given->span));
    REQUIRE(!dropped || given->cut);
}

/* ---- a request ---- */

/* Returns the number of given spans that the group has. */
static size_t require_group(const struct pb_member *group, const struct given *given)
{
    struct pb_reader reader = pb_reader_of(pb_text(group)), part;
    const struct pb_member resource = require_bytes(&reader, 1), scope = require_bytes(&reader, 2);
    struct pb_member field;
    size_t count = 0;

    REQUIRE(reader.at == reader.end);
    part = pb_reader_of(pb_text(&resource));
    while (next_field(&part, &field))
        (void)require_pair(&field);
    part = pb_reader_of(pb_text(&scope));
    (void)require_bytes(&part, 1);
    while (next_field(&part, &field)) {
        REQUIRE(field.tag == PB_TAG(2, PB_TYPE_BYTES));
        require_span(&field, &given[count++]);
    }
    REQUIRE(count);
    return count;
}

static void require_request(struct text text, const struct given *given, size_t count)
{
    struct pb_reader reader = pb_reader_of(text);
    struct pb_member group;
    size_t found = 0;

    while (next_field(&reader, &group)) {
        REQUIRE(group.tag == PB_TAG(1, PB_TYPE_BYTES));
        found += require_group(&group, given + found);
    }
    REQUIRE(found == count);
}

static void require_run(struct body *body, const struct encoder *encoder, const struct given *given,
                        uint32_t first, uint32_t end, struct fuzz *source)
{
    struct framed framed;
    char which[80];

    body_frame((struct body_run){.body = body, .first = first, .end = end}, encoder, &framed);
    require_request(framed.payload.text, given + first, end - first);
    encoder->describe(framed.payload.spans, which, sizeof(which));
    REQUIRE(strncmp(which, "trace ", 6) == 0 && strlen(which) == 61);
    body_unframe(encoder, &framed);
    if (end - first > 1 && take(source, 1) % 4) {
        const uint32_t middle = first + 1 + (uint32_t)(take(source, 1) % (end - first - 1));

        require_run(body, encoder, given, first, middle, source);
        require_run(body, encoder, given, middle, end, source);
    }
}

/* Encodes in exactly the room that is reserved. Requires that a byte less is refused. */
static void encode_exactly(struct encoder *encoder, const struct given *given)
{
    const struct resource resource = resource_of(&given->span);
    const struct head *head = otlp_head_of((struct otlp *)encoder, &resource);
    const size_t limit = otlp_size_limit(&given->span) + head->length;
    struct buffer buffer = {.data = malloc(limit), .capacity = limit, .limit = limit};
    struct buffer small = {.limit = limit - 1};
    bool cut = false;

    REQUIRE(head->length <= otlp_head_size_limit(&resource));
    REQUIRE(encoder->encode(encoder, &buffer, &given->span, NULL, &cut));
    REQUIRE(buffer.length <= limit && buffer.capacity == limit && cut == given->cut);
    buffer_free(&buffer);
    REQUIRE(!encoder->encode(encoder, &small, &given->span, NULL, &cut) && small.length == 0);
    buffer_free(&small);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct given given[OTLP_SPANS_MAX];
    struct fuzz source = {data, data + size};
    struct encoder *encoder;
    struct endpoint endpoints[2];
    struct body body = {.count = 0};
    uint32_t count;

    random_number = hash_of(data, size);
    encoder = otlp_protocol.encoder_new();
    REQUIRE(encoder);
    is_slow = is_one_in(2003, data, size);
    expanded_length = 0;
    take_endpoint(&source, &endpoints[0]);
    take_endpoint(&source, &endpoints[1]);
    count = 1 + (uint32_t)(take(&source, 1) % (is_slow ? 2 : OTLP_SPANS_MAX));
    for (uint32_t i = 0; i < count; i++) {
        take_span(&source, &given[i].span, endpoints, &given[i].entries);
        if (given[i].span.id % 4 == 0)
            body.group = 0; /* the span shares nothing with the span before */
        REQUIRE(body_add(&body, encoder, &given[i].span, &given[i].cut));
        encode_exactly(encoder, &given[i]);
    }
    require_run(&body, encoder, given, 0, count, &source);
    body_destroy(&body);
    encoder->free(encoder);
    return 0;
}

#pragma clang attribute pop

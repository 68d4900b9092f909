/*
 * Fuzzes the OTLP encoder with spans of any bytes, ids and times. The bytes must fit in the
 * reserved room, and be a request with any division of the spans. Texts are valid, ids are not
 * zero, and no key comes twice. Each annotation and tag is accounted for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
/* the file itself: for otlp_size_limit(), which a buffer that grows in powers of two would hide */
#include "babeltrace-plugin/encode/otlp.c"

/* libFuzzer chooses inputs by their coverage of the encoder, not of this file */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "fuzz.h"
#include "fuzz_span.h"
#include "babeltrace-plugin/deliver/body.h"

#define SPANS_MAX 6

/* The parts of a span that were given to the encoder. */
struct given {
    struct span span;
    struct entries entries;
    bool cut;
};

/* ---- a reader of its own, which takes nothing that is not exactly right ---- */

struct field {
    uint32_t number;
    uint32_t type;
    uint64_t value;
    const uint8_t *begin, *end;
};

static uint64_t read_number(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        REQUIRE(*at < end && shift < 64);
        value |= (uint64_t)(**at & 127) << shift;
        if (*(*at)++ < 128)
            return value;
    }
}

static bool read_field(const uint8_t **at, const uint8_t *end, struct field *field)
{
    uint64_t tag;

    if (*at == end)
        return false;
    tag = read_number(at, end);
    *field = (struct field){.number = (uint32_t)(tag >> 3), .type = tag & 7};
    if (field->type == 0) {
        field->value = read_number(at, end);
        return true;
    }
    field->value = field->type == 2 ? read_number(at, end) : field->type == 1 ? 8 : 4;
    REQUIRE(field->type == 1 || field->type == 2 || field->type == 5);
    REQUIRE(field->value <= (uint64_t)(end - *at));
    field->begin = *at;
    field->end = *at += field->value;
    return true;
}

/* Requires UTF-8 (RFC 3629) without NUL. */
static void require_text(const struct field *field)
{
    static const uint32_t least[] = {1, 0x80, 0x800, 0x10000};

    for (const uint8_t *at = field->begin; at < field->end;) {
        const unsigned more = *at < 0x80 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : 3;
        uint32_t value = more ? *at & (0x3fU >> more) : *at;

        REQUIRE(*at < 0x80 || (*at >= 0xc2 && *at < 0xf5));
        at++;
        for (unsigned i = 0; i < more; i++, at++) {
            REQUIRE(at < field->end && (*at & 0xc0) == 0x80);
            value = value << 6 | (*at & 0x3f);
        }
        REQUIRE(value >= least[more] && value <= 0x10ffff);
        REQUIRE(value < 0xd800 || value > 0xdfff);
    }
}

static void require_id(const struct field *field, size_t size)
{
    uint8_t any = 0;

    REQUIRE(field->type == 2 && field->value == size);
    for (const uint8_t *at = field->begin; at < field->end; at++)
        any |= *at;
    REQUIRE(any);
}

/* Requires an AnyValue with a value. */
static void require_value(const struct field *value)
{
    const uint8_t *at = value->begin;
    struct field field;

    REQUIRE(read_field(&at, value->end, &field) && at == value->end);
    if (field.number == 1 && field.type == 2)
        require_text(&field);
    else if (field.number == 5 && field.type == 2)
        REQUIRE(field.value > 0);
    else
        REQUIRE((field.number == 2 || field.number == 3) && field.type == 0);
}

static struct field require_pair(const struct field *pair)
{
    const uint8_t *at = pair->begin;
    struct field key, value;

    REQUIRE(read_field(&at, pair->end, &key) && key.number == 1 && key.type == 2);
    REQUIRE(read_field(&at, pair->end, &value) && value.number == 2 && value.type == 2);
    REQUIRE(at == pair->end);
    require_text(&key);
    require_value(&value);
    return key;
}

/* ---- a span ---- */

struct seen {
    struct field keys[TAG_KEYS_MAX];
    size_t attributes, events, links, dropped_attributes, dropped_events, dropped_links;
    bool has_status;
};

static void see_attribute(struct seen *seen, const struct field *field)
{
    const struct field key = require_pair(field);

    for (size_t i = 0; i < seen->attributes; i++)
        REQUIRE(seen->keys[i].value != key.value ||
                memcmp(seen->keys[i].begin, key.begin, key.value) != 0);
    REQUIRE(seen->attributes < TAG_KEYS_MAX);
    seen->keys[seen->attributes++] = key;
}

static void see_event(const struct field *event)
{
    const uint8_t *at = event->begin;
    struct field field;

    REQUIRE(read_field(&at, event->end, &field) && field.number == 1 && field.type == 1);
    REQUIRE(read_field(&at, event->end, &field) && field.number == 2 && field.type == 2);
    require_text(&field);
    while (read_field(&at, event->end, &field)) {
        REQUIRE(field.number == 3 && field.type == 2);
        (void)require_pair(&field);
    }
}

static void see_link(const struct field *link)
{
    const uint8_t *at = link->begin;
    struct field field;

    REQUIRE(read_field(&at, link->end, &field) && field.number == 1);
    REQUIRE(field.type == 2 && field.value == 16);
    REQUIRE(read_field(&at, link->end, &field) && field.number == 2 && at == link->end);
    REQUIRE(field.type == 2 && field.value == 8);
}

static void see(struct seen *seen, const struct field *field)
{
    switch (field->number) {
    case 1:
        require_id(field, 16);
        break;
    case 2:
    case 4:
        require_id(field, 8);
        break;
    case 5:
        require_text(field);
        break;
    case 6:
        REQUIRE(field->type == 0 && field->value >= 1 && field->value <= 5);
        break;
    case 7:
    case 8:
        REQUIRE(field->type == 1);
        break;
    case 9:
        see_attribute(seen, field);
        break;
    case 10:
        seen->dropped_attributes = field->value;
        break;
    case 11:
        seen->events++;
        see_event(field);
        break;
    case 12:
        seen->dropped_events = field->value;
        break;
    case 13:
        seen->links++;
        see_link(field);
        break;
    case 14:
        seen->dropped_links = field->value;
        break;
    case 15:
        REQUIRE(!seen->has_status);
        seen->has_status = true;
        break;
    default:
        REQUIRE(field->number == 16 && field->type == 5);
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

/* Every annotation and tag is in the message, or counted as left out, or told by the kind. */
static void require_span(const struct field *message, const struct given *given)
{
    static struct seen seen;
    const uint8_t *at = message->begin;
    size_t implied = 0, dropped;
    struct field field;

    seen = (struct seen){.attributes = 0};
    while (read_field(&at, message->end, &field))
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

/* Returns how many of the given spans are in it. */
static size_t require_group(const struct field *group, const struct given *given)
{
    const uint8_t *at = group->begin, *in_spans;
    struct field resource, scope, span, pair;
    size_t count = 0;

    REQUIRE(read_field(&at, group->end, &resource) && resource.number == 1 && resource.type == 2);
    REQUIRE(read_field(&at, group->end, &scope) && scope.number == 2 && scope.type == 2);
    REQUIRE(at == group->end);
    at = resource.begin;
    while (read_field(&at, resource.end, &pair))
        (void)require_pair(&pair);
    in_spans = scope.begin;
    REQUIRE(read_field(&in_spans, scope.end, &span) && span.number == 1);
    while (read_field(&in_spans, scope.end, &span)) {
        REQUIRE(span.number == 2 && span.type == 2);
        require_span(&span, &given[count++]);
    }
    REQUIRE(count);
    return count;
}

static void require_request(struct text text, const struct given *given, size_t count)
{
    const uint8_t *at = (const uint8_t *)text.data;
    const uint8_t *const end = at + text.length;
    struct field group;
    size_t found = 0;

    while (read_field(&at, end, &group)) {
        REQUIRE(group.number == 1 && group.type == 2);
        found += require_group(&group, given + found);
    }
    REQUIRE(found == count);
}

static void require_run(struct body *body, const struct encoder *encoder, const struct given *given,
                        uint32_t first, uint32_t end, struct input *source)
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

/* Encodes into exactly the reserved number of bytes. */
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
    static struct given given[SPANS_MAX];
    struct input source = {data, data + size};
    struct encoder *encoder;
    struct endpoint endpoints[2];
    struct body body = {.count = 0};
    uint32_t count;

    random_number = sum_of(data, size);
    encoder = otlp_protocol.encoder_new();
    REQUIRE(encoder);
    is_slow = is_one_in(2003, data, size);
    expanded_length = 0;
    take_endpoint(&source, &endpoints[0]);
    take_endpoint(&source, &endpoints[1]);
    count = 1 + (uint32_t)(take(&source, 1) % (is_slow ? 2 : SPANS_MAX));
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

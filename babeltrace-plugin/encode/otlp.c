/*
 * The OTLP encoder: an ExportTraceServiceRequest (opentelemetry-proto 1.x), in protobuf.
 *
 * Spans of one resource in a row are a group: they share a ResourceSpans. The first of them, as a
 * unit of a body, begins with the head of that group; the next ones are fields of the ScopeSpans
 * that it has left open. The lengths of both are written when it is known where a batch
 * ends, see frame(): they have four bytes each for that. Whatever comes first in a batch begins a
 * group, if need be with a copy of its group's head over what was sent before it.
 *
 * One refused span may cost the whole request, so what is written here is what all decoders take:
 * trace ids of 16 bytes, ids that are not zero, valid UTF-8, no key twice.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/hash.h"
#include "json.h"
#include "protobuf.h"
#include "protobuf_read.h"
#include "protocol.h"
#include "resource.h"
#include "tag_keys.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* Fields of ResourceSpans, of ScopeSpans, of Span, of its parts. */
#define RESOURCE_SPANS     PB_BYTES(1)
#define RESOURCE           PB_BYTES(1)
#define RESOURCE_ATTRIBUTE PB_BYTES(1)
#define SCOPE_SPANS        PB_BYTES(2)
#define SCOPE              PB_BYTES(1)
#define SPAN               PB_BYTES(2)

#define SPAN_TRACE_ID           PB_BYTES(1)
#define SPAN_ID                 PB_BYTES(2)
#define SPAN_PARENT_ID          PB_BYTES(4)
#define SPAN_NAME               PB_BYTES(5)
#define SPAN_KIND               PB_VARINT(6)
#define SPAN_START              PB_FIXED64(7)
#define SPAN_END                PB_FIXED64(8)
#define SPAN_ATTRIBUTE          PB_BYTES(9)
#define SPAN_DROPPED_ATTRIBUTES PB_VARINT(10)
#define SPAN_EVENT              PB_BYTES(11)
#define SPAN_DROPPED_EVENTS     PB_VARINT(12)
#define SPAN_LINKS              PB_BYTES(13)
#define SPAN_DROPPED_LINKS      PB_VARINT(14)
#define SPAN_STATUS             PB_BYTES(15)
#define SPAN_FLAGS              "\x85\x01" /* fixed32, number 16 */

#define EVENT_TIME      PB_FIXED64(1)
#define EVENT_NAME      PB_BYTES(2)
#define EVENT_ATTRIBUTE PB_BYTES(3)
#define STATUS_MESSAGE  PB_BYTES(2)
#define STATUS_CODE     PB_VARINT(3)
#define STATUS_OK       1
#define STATUS_ERROR    2

#define KEY           PB_BYTES(1) /* of an attribute */
#define VALUE         PB_BYTES(2)
#define VALUE_TEXT    PB_BYTES(1)
#define VALUE_BOOLEAN PB_VARINT(2)
#define VALUE_INTEGER PB_VARINT(3)
#define VALUE_ARRAY   PB_BYTES(5)

/* W3C's "sampled"; whether the parent is remote is known; it is. */
#define FLAGS          UINT32_C(0x101)
#define FLAG_IS_REMOTE UINT32_C(0x200)

#define LEFT_OUT_KEY "blkin.left_out"

#define OTLP_PATH "/v1/traces"

#define SPAN_LENGTH 2 /* bytes that are left free for it: more are rarely needed */

#define HEADS_LOG2 6
#define HEADS      (1U << HEADS_LOG2)

/* The head of a group is made once for a resource and copied from then on. */
struct head {
    struct resource of; /* its texts are in data, behind the head */
    uint64_t number;    /* of the group; 0: none is made */
    char *data;
    size_t length;
    size_t capacity;
    bool cut;
};

struct otlp {
    struct encoder base;
    uint64_t seed;
    struct head heads[HEADS]; /* by hash; the newer one takes the place */
    uint64_t groups;          /* that heads were made for */
};

/* One span on its way. */
struct writing {
    const struct span *span;
    const struct resource *resource;
    char *start;
    const struct span_entry *error; /* the tag that becomes the status */
    bool is_ok;                     /* a foreign span has the status OK */
    uint32_t events;
    uint32_t events_left_out;
    uint32_t tags; /* and links */
    uint32_t tags_left_out;
    uint32_t links_left_out; /* of these */
    bool cut;
    struct tag_keys *keys;
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* An AnyValue in its field. */
static char *put_text_value(char *at, struct text text, size_t limit, bool *cut)
{
    at[0] = VALUE;
    at[2] = VALUE_TEXT;
    return pb_end(at + 1, pb_put_text(at + 3, text, limit, cut));
}

static char *put_integer_value(char *at, int64_t integer)
{
    at[0] = VALUE;
    at[2] = VALUE_INTEGER;
    return pb_end(at + 1, pb_put_varint(at + 3, (uint64_t)integer));
}

/* One of a kind, of which no other has the key. pb_end(begin + 1, ...) ends it. */
static char *begin_single(char *begin, char tag, struct text key)
{
    begin[0] = tag;
    begin[2] = KEY;
    begin[3] = (char)key.length;
    return text_copy(begin + 4, key);
}

/* Of a span, which must not have two of one key. */
static char *begin_attribute(char *begin, struct writing *writing, struct text key)
{
    char *at, *end;

    begin[0] = SPAN_ATTRIBUTE;
    begin[2] = KEY;
    at = pb_put_characters(begin + 4, key, LIMIT_KEY, &writing->cut);
    at = tag_keys_add(writing->keys, begin + 4, at);
    end = pb_end(begin + 3, at);
    if (end != at)
        tag_keys_moved(writing->keys, (size_t)(end - at));
    return end;
}

static char *end_attribute(char *begin, char *at, struct writing *writing)
{
    char *const end = pb_end(begin + 1, at);

    if (end != at)
        tag_keys_moved(writing->keys, (size_t)(end - at));
    return end;
}

static char *put_text_attribute(char *begin, struct writing *writing, struct text key,
                                struct text value)
{
    char *at = begin_attribute(begin, writing, key);

    at = put_text_value(at, value, LIMIT_VALUE, &writing->cut);
    return end_attribute(begin, at, writing);
}

static char *put_integer_attribute(char *begin, struct writing *writing, struct text key,
                                   int64_t value)
{
    char *at = begin_attribute(begin, writing, key);

    at = put_integer_value(at, value);
    return end_attribute(begin, at, writing);
}

static char *put_true(char *begin, struct writing *writing, struct text key)
{
    char *at = begin_attribute(begin, writing, key);

    *at++ = VALUE;
    *at++ = 2;
    *at++ = VALUE_BOOLEAN;
    *at++ = 1;
    return end_attribute(begin, at, writing);
}

/* ---- the head of a group --------------------------------------------------------------------- */

/* An array of one text. */
static char *write_addresses(char *begin, struct text address, bool *cut)
{
    char *const at = begin_single(begin, RESOURCE_ATTRIBUTE, text_of("host.ip"));
    char *end;

    at[0] = VALUE;
    at[2] = VALUE_ARRAY;
    at[4] = PB_BYTES(1);
    at[6] = VALUE_TEXT;
    end = pb_put_text(at + 7, address, LIMIT_NAME, cut);
    end = pb_end(at + 5, end);
    end = pb_end(at + 3, end);
    end = pb_end(at + 1, end);
    return pb_end(begin + 1, end);
}

static char *write_resource_text(char *begin, const char *key, struct text value, bool *cut)
{
    char *at;

    if (!value.length)
        return begin;
    at = begin_single(begin, RESOURCE_ATTRIBUTE, text_of(key));
    return pb_end(begin + 1, put_text_value(at, value, LIMIT_NAME, cut));
}

static char *write_resource(char *at, const struct resource *resource, bool *cut)
{
    char *const length = at + 1;

    *at = RESOURCE;
    at += 2;
    at = write_resource_text(at, "service.name", resource->service, cut);
    at = write_resource_text(at, "service.version", resource->version, cut);
    at = write_resource_text(at, "host.name", resource->host, cut);
    if (resource->ip.length)
        at = write_addresses(at, resource->ip, cut);
    return pb_end(length, at);
}

static char *write_head(char *at, const struct resource *resource, bool *cut)
{
    static const char name[] = "blkin", version[] = BLKIN_RELEASE;
    char *length;

    *at = RESOURCE_SPANS;
    at = write_resource(at + 1 + PB_PADDED, resource, cut);
    *at = SCOPE_SPANS;
    at += 1 + PB_PADDED;
    *at = SCOPE;
    length = at + 1;
    at = PB_PUT_LITERAL(at + 2, PB_BYTES(1), name);
    at = PB_PUT_LITERAL(at, PB_BYTES(2), version);
    return pb_end(length, at);
}

static size_t head_size_limit(const struct resource *resource)
{
    return 512 + PB_TEXT_MAX(smaller(resource->service.length, LIMIT_NAME)) +
           PB_TEXT_MAX(smaller(resource->version.length, LIMIT_NAME)) +
           PB_TEXT_MAX(smaller(resource->host.length, LIMIT_NAME));
}

/* Copies the text to *at, and *at behind it. */
static struct text keep_text(char **at, struct text text)
{
    const struct text kept = {*at, text.length};

    *at = text_copy(*at, text);
    return kept;
}

static bool make_head(struct otlp *otlp, struct head *head, const struct resource *resource)
{
    const size_t needed = head_size_limit(resource) + resource->service.length +
                          resource->version.length + resource->host.length + resource->ip.length;
    char *at;

    if (head->capacity < needed) {
        char *data = realloc(head->data, needed);

        if (!data)
            return false;
        head->data = data;
        head->capacity = needed;
    }
    head->cut = false;
    at = write_head(head->data, resource, &head->cut);
    head->length = (size_t)(at - head->data);
    head->of.service = keep_text(&at, resource->service);
    head->of.version = keep_text(&at, resource->version);
    head->of.host = keep_text(&at, resource->host);
    head->of.ip = keep_text(&at, resource->ip);
    head->number = ++otlp->groups;
    return true;
}

/* Returns NULL when out of memory. */
static const struct head *head_of(struct otlp *otlp, const struct resource *resource)
{
    const uint64_t hash = resource_hash(otlp->seed, resource);
    struct head *head = &otlp->heads[hash >> (64 - HEADS_LOG2)];

    if (head->number && resource_equal(&head->of, resource))
        return head;
    head->number = 0;
    return make_head(otlp, head, resource) ? head : NULL;
}

/* ---- a span ---------------------------------------------------------------------------------- */

static char *write_ids(char *at, const struct span *span)
{
    *at++ = SPAN_TRACE_ID;
    *at++ = 16;
    at = pb_put_id(at, span->trace_id_high);
    at = pb_put_id(at, span->trace_id);
    *at++ = SPAN_ID;
    *at++ = 8;
    at = pb_put_id(at, span->id);
    if (span->parent_id && span->parent_id != span->id) {
        *at++ = SPAN_PARENT_ID;
        *at++ = 8;
        at = pb_put_id(at, span->parent_id);
    }
    return at;
}

static char *write_kind_and_times(char *at, const struct span *span)
{
    static const char kinds[] = {
        [SPAN_LOCAL] = 1,    [SPAN_SERVER] = 2,   [SPAN_CLIENT] = 3,
        [SPAN_PRODUCER] = 4, [SPAN_CONSUMER] = 5,
    };

    *at++ = SPAN_KIND;
    *at++ = kinds[span->kind];
    if (span->start_ns <= 0)
        return at;
    *at++ = SPAN_START;
    at = pb_put_fixed64(at, (uint64_t)span->start_ns);
    *at++ = SPAN_END;
    return pb_put_fixed64(at, (uint64_t)span->end_ns);
}

/* A server's parent, or a consumer's, is in another process: as far as we can know. */
static char *write_flags(char *at, const struct span *span)
{
    const bool is_remote = (span->kind == SPAN_SERVER || span->kind == SPAN_CONSUMER) &&
                           (span->parent_id || span->shared);

    at = text_copy(at, text_of(SPAN_FLAGS));
    return pb_put_fixed32(at, is_remote ? FLAGS | FLAG_IS_REMOTE : FLAGS);
}

static char *write_address(char *at, struct writing *writing, const struct endpoint *of,
                           const char *address, const char *port)
{
    if (endpoint_address(of).length)
        at = put_text_attribute(at, writing, text_of(address), endpoint_address(of));
    return of->port ? put_integer_attribute(at, writing, text_of(port), of->port) : at;
}

/* The addresses of the client and of the server, unless the program itself has told them. */
static char *write_logical_addresses(char *at, struct writing *writing)
{
    const struct span *span = writing->span;
    const struct endpoint *const server = span->kind == SPAN_SERVER ? span->endpoint : span->remote;
    const struct endpoint *const client = span->kind == SPAN_SERVER ? span->remote : NULL;

    if (span->kind == SPAN_LOCAL || writing->resource->has_logical_address)
        return at;
    if (server)
        at = write_address(at, writing, server, "server.address", "server.port");
    if (client)
        at = write_address(at, writing, client, "client.address", "client.port");
    return at;
}

/* What the span is, besides what the trace tells of it: first, so that a tag of the trace that is
 * called alike gets another name. */
static char *write_own_attributes(char *at, struct writing *writing)
{
    const struct endpoint *remote = writing->span->remote;

    if (writing->span->debug)
        at = put_true(at, writing, text_of("blkin.debug"));
    if (writing->span->shared)
        at = put_true(at, writing, text_of("blkin.shared"));
    at = write_address(at, writing, writing->span->endpoint, "network.local.address",
                       "network.local.port");
    if (remote && remote->service.length) {
        char *const begin = at;

        at = begin_attribute(begin, writing, text_of("peer.service"));
        at = put_text_value(at, remote->service, LIMIT_NAME, &writing->cut);
        at = end_attribute(begin, at, writing);
    }
    if (remote)
        at = write_address(at, writing, remote, "network.peer.address", "network.peer.port");
    return write_logical_addresses(at, writing);
}

static bool has_room(const struct writing *writing, const char *at)
{
    return (size_t)(at - writing->start) < LIMIT_SPAN;
}

static char *write_event(char *begin, struct writing *writing, const struct span_entry *entry)
{
    const struct text severity = span_entry_key(entry);
    char *at = begin + 2;

    begin[0] = SPAN_EVENT;
    *at++ = EVENT_TIME;
    at = pb_put_fixed64(at, (uint64_t)entry->integer);
    *at++ = EVENT_NAME;
    at = pb_put_text(at, span_entry_value(entry), LIMIT_VALUE, &writing->cut);
    if (severity.length) {
        char *const pair = at;

        at = begin_single(pair, EVENT_ATTRIBUTE, text_of("severity"));
        at = pb_end(pair + 1, put_text_value(at, severity, LIMIT_KEY, &writing->cut));
    }
    return pb_end(begin + 1, at);
}

static char *write_annotation(char *at, struct writing *writing, const struct span_entry *entry)
{
    if (is_implied(writing->span, entry))
        return at;
    if (entry->integer > 0 && writing->events < LIMIT_ANNOTATIONS && has_room(writing, at)) {
        writing->events++;
        return write_event(at, writing, entry);
    }
    writing->events_left_out++;
    return at;
}

static char *write_link(char *at, const struct span_entry *entry)
{
    const struct span_link link = span_entry_link(entry);

    *at++ = SPAN_LINKS;
    *at++ = 2 + 16 + 2 + 8;
    *at++ = SPAN_TRACE_ID;
    *at++ = 16;
    at = pb_put_id(at, link.trace_id_high);
    at = pb_put_id(at, link.trace_id);
    *at++ = SPAN_ID;
    *at++ = 8;
    return pb_put_id(at, link.span_id);
}

/* Of a foreign span: what OpenTelemetry's mapping to Zipkin made of the status, and the older names
 * of the scope's tags. */
static bool is_of_mapping(struct writing *writing, const struct span_entry *entry)
{
    const struct text key = span_entry_key(entry);

    if (!writing->span->is_foreign || key.length < 5 || memcmp(key.data, "otel.", 5) != 0)
        return false;
    if (!text_is(key, "otel.status_code"))
        return text_is(key, "otel.library.name") || text_is(key, "otel.library.version");
    writing->is_ok = text_is(span_entry_value(entry), "OK");
    return true;
}

static char *write_tag(char *at, struct writing *writing, const struct span_entry *entry)
{
    const struct text given = span_entry_key(entry);
    /* receivers refuse an attribute without a key */
    const struct text key = given.length ? given : text_of("unnamed");

    if (entry == writing->resource->tags[0] || entry == writing->resource->tags[1] ||
        is_of_mapping(writing, entry))
        return at;
    if (entry->type != SPAN_LINK && !writing->error && text_is(key, "error")) {
        writing->error = entry;
        return at;
    }
    if (writing->tags >= LIMIT_TAGS || !has_room(writing, at)) {
        writing->tags_left_out++;
        writing->links_left_out += entry->type == SPAN_LINK;
        return at;
    }
    writing->tags++;
    if (entry->type == SPAN_LINK)
        return write_link(at, entry);
    if (entry->type == SPAN_TAG_INTEGER)
        return put_integer_attribute(at, writing, key, entry->integer);
    return put_text_attribute(at, writing, key, span_entry_value(entry));
}

/* For people, as in Zipkin, and as OpenTelemetry counts it. */
static char *write_left_out(char *at, struct writing *writing)
{
    char text[96];
    char *end = text_copy(text, text_of("annotations: "));

    writing->cut = true;
    end = json_put_integer(end, writing->events_left_out);
    end = text_copy(end, text_of(", tags: "));
    end = json_put_integer(end, writing->tags_left_out);
    at = put_text_attribute(at, writing, text_of(LEFT_OUT_KEY),
                            (struct text){text, (size_t)(end - text)});
    *at++ = SPAN_DROPPED_ATTRIBUTES;
    at = pb_put_varint(at, writing->tags_left_out - writing->links_left_out);
    *at++ = SPAN_DROPPED_EVENTS;
    at = pb_put_varint(at, writing->events_left_out);
    *at++ = SPAN_DROPPED_LINKS;
    return pb_put_varint(at, writing->links_left_out);
}

static char *write_status(char *begin, struct writing *writing)
{
    const struct span_entry *entry = writing->error;
    char digits[JSON_INTEGER_MAX];
    struct text message = span_entry_value(entry);
    char *at = begin + 2;

    if (entry->type == SPAN_TAG_INTEGER)
        message =
            (struct text){digits, (size_t)(json_put_integer(digits, entry->integer) - digits)};
    begin[0] = SPAN_STATUS;
    *at++ = STATUS_MESSAGE;
    at = pb_put_text(at, message, LIMIT_VALUE, &writing->cut);
    *at++ = STATUS_CODE;
    *at++ = STATUS_ERROR;
    return pb_end(begin + 1, at);
}

static char *write_fields(char *at, struct writing *writing)
{
    const struct span *span = writing->span;

    at = write_ids(at, span);
    if (span->name_length) {
        *at++ = SPAN_NAME;
        at = pb_put_text(at, span_name(span), LIMIT_NAME, &writing->cut);
    }
    at = write_kind_and_times(at, span);
    at = write_flags(at, span);
    at = write_own_attributes(at, writing);
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (entry->type == SPAN_ANNOTATION)
            at = write_annotation(at, writing, entry);
        else
            at = write_tag(at, writing, entry);
    }
    if (writing->events_left_out || writing->tags_left_out)
        at = write_left_out(at, writing);
    if (!writing->error && writing->is_ok) {
        static const char ok[] = {SPAN_STATUS, 2, STATUS_CODE, STATUS_OK};

        return text_copy(at, (struct text){ok, sizeof(ok)});
    }
    return writing->error ? write_status(at, writing) : at;
}

static char *write_span(char *begin, struct writing *writing)
{
    char *const fields = begin + 1 + SPAN_LENGTH;
    char *const at = write_fields(fields, writing);
    const size_t size = (size_t)(at - fields);

    *begin = SPAN;
    if (size < UINT32_C(1) << SPAN_LENGTH * 7) {
        pb_put_padded(begin + 1, (uint32_t)size, SPAN_LENGTH);
        return at;
    }
    memmove(begin + 1 + PB_PADDED, fields, size);
    pb_put_padded(begin + 1, (uint32_t)size, PB_PADDED);
    return at + PB_PADDED - SPAN_LENGTH;
}

/*
 * No span needs more than this. The log is reckoned as if it were text, of which a byte becomes
 * three at most: for an entry's header that is more than what is written around key and value.
 */
static size_t size_limit(const struct span *span)
{
    const size_t entry = PB_TEXT_MAX(LIMIT_KEY) + PB_TEXT_MAX(LIMIT_VALUE);
    const size_t remote =
        span->remote ? PB_TEXT_MAX(smaller(span->remote->service.length, LIMIT_NAME)) : 0;

    static_assert(3 * sizeof(struct span_entry) >= 64, "the header makes room for the rest");
    return 1280 + remote + PB_TEXT_MAX(smaller(span->name_length, LIMIT_NAME)) +
           smaller(PB_TEXT_MAX(span->log_length - span->first_entry), LIMIT_SPAN + 3 * entry);
}

static bool encode(struct encoder *encoder, struct buffer *buffer, const struct span *span,
                   uint64_t *group, bool *cut)
{
    struct otlp *otlp = (struct otlp *)encoder;
    const struct resource resource = resource_of(span);
    const struct head *const head = head_of(otlp, &resource);
    struct tag_keys keys; /* large, and not to be cleared for each span */
    struct writing writing = {.span = span, .resource = &resource, .keys = &keys};
    char *at;

    if (!head || !buffer_reserve(buffer, size_limit(span) + head->length))
        return false;
    keys.count = 0;
    keys.seed = otlp->seed;
    at = buffer->data + buffer->length;
    if (!group || *group != head->number)
        at = text_copy(at, (struct text){head->data, head->length});
    writing.start = at;
    at = write_span(at, &writing);
    buffer->length = (size_t)(at - buffer->data);
    *cut = writing.cut || head->cut;
    if (group)
        *group = head->number;
    return true;
}

/* ---- batches --------------------------------------------------------------------------------- */

static bool begins_group(const char *unit)
{
    return *unit == RESOURCE_SPANS;
}

/* Behind a length of one byte or two. */
static char *skip(char *at)
{
    const unsigned low = (unsigned char)at[0], high = (unsigned char)at[1];

    return low < 128 ? at + 1 + low : at + 2 + (low - 128 + (high << 7));
}

/* Of a unit that begins a group: where its ScopeSpans begin. */
static char *scope_spans_of(char *unit)
{
    return skip(unit + 1 + PB_PADDED + 1);
}

static size_t head_length(char *unit)
{
    return (size_t)(skip(scope_spans_of(unit) + 1 + PB_PADDED + 1) - unit);
}

static void end_group(char *unit, const char *end)
{
    char *const spans = scope_spans_of(unit) + 1;

    pb_put_padded(unit + 1, (uint32_t)(end - (unit + 1 + PB_PADDED)), PB_PADDED);
    pb_put_padded(spans, (uint32_t)(end - (spans + PB_PADDED)), PB_PADDED);
}

/* There is room: what is before the unit are a head and a span of the same group at least. */
static void begin_group(char *data, uint32_t *starts, uint32_t unit)
{
    uint32_t first = unit;
    size_t length;

    while (!begins_group(data + starts[first]))
        first--;
    if (first == unit)
        return;
    length = head_length(data + starts[first]);
    memmove(data + starts[unit] - length, data + starts[first], length);
    starts[unit] -= (uint32_t)length;
}

static void frame(char *data, uint32_t *starts, uint32_t first, uint32_t end, size_t length)
{
    uint32_t group = first;

    begin_group(data, starts, first);
    for (uint32_t i = first + 1; i < end; i++) {
        if (!begins_group(data + starts[i]))
            continue;
        end_group(data + starts[group], data + starts[i]);
        group = i;
    }
    end_group(data + starts[group], data + length);
}

static struct text head_of_group(const char *data, const uint32_t *starts, uint32_t unit)
{
    const char *first = data + starts[unit];

    if (begins_group(first))
        return (struct text){NULL, 0};
    while (!begins_group(first))
        first = data + starts[--unit];
    return (struct text){first, head_length((char *)(uintptr_t)first)};
}

/* The ids, which a span has first. */
static const char *ids_of(struct text unit)
{
    const char *at = unit.data;

    if (begins_group(at))
        at += head_length((char *)(uintptr_t)at);
    return at + 1 + (at[2] & 0x80 ? PB_PADDED : SPAN_LENGTH) + 2;
}

static void trace_of(struct text unit, uint64_t id[2])
{
    memcpy(id, ids_of(unit), 16);
    id[0] = be64toh(id[0]);
    id[1] = be64toh(id[1]);
}

static void describe(struct text unit, char *line, size_t size)
{
    const char *const at = ids_of(unit);
    uint64_t ids[3];
    char digits[3 * 16];

    memcpy(ids, at, 16);
    memcpy(ids + 2, at + 16 + 2, 8);
    for (int i = 0; i < 3; i++)
        (void)json_put_hex(digits + 16 * i, be64toh(ids[i]));
    snprintf(line, size, "trace %.32s, span %.16s", digits, digits + 32);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The text or message that has this number; empty if there is none. */
static struct text field_of(struct text message, uint32_t number, uint64_t *value)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;
    struct text found = {NULL, 0};

    reader.is_cut = true; /* no more of an answer is kept than can be shown */
    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(number, PB_TYPE_BYTES))
            found = pb_text(&field);
        else if (value && field.tag == PB_TAG(1, PB_TYPE_VARINT))
            *value = field.value;
    }
    return found;
}

/* ExportTraceServiceResponse: partial_success (1), of it rejected_spans (1), error_message (2). */
static struct rejection rejected(struct text answer)
{
    const struct text partial = field_of(answer, 1, NULL);
    struct rejection rejection = {.spans = 0};

    rejection.why = field_of(partial, 2, &rejection.spans);
    if (rejection.spans > INT64_MAX) /* negative there */
        rejection.spans = 0;
    return rejection;
}

static bool is_message(struct text body)
{
    struct pb_reader reader = pb_reader_of(body);
    struct pb_member field;

    reader.is_cut = true;
    while (pb_next(&reader, &field)) {
    }
    return !pb_is_broken(&reader);
}

/*
 * Who says that it is protobuf is an OTLP receiver, however odd the message is. Many receivers
 * answer with an empty body, of any type or none.
 */
static bool is_answer(long status, struct text type, struct text body)
{
    static const char protobuf[] = "application/x-protobuf";
    const char first = protocol_first_byte(body);

    (void)status;
    if (!first || (type.length >= sizeof(protobuf) - 1 &&
                   strncasecmp(type.data, protobuf, sizeof(protobuf) - 1) == 0))
        return true;
    return !protocol_is_page(type) && (first == '{' || is_message(body));
}

/* google.rpc.Status: code (1), message (2). Or it is a text, of whoever has answered. */
static struct text reason(struct text answer)
{
    const bool is_status =
        answer.length && (answer.data[0] == PB_VARINT(1) || answer.data[0] == PB_BYTES(2));
    const struct text message = is_status ? field_of(answer, 2, NULL) : answer;

    return message.length ? message : answer;
}

/* ---- the protocol ---------------------------------------------------------------------------- */

static void otlp_free(struct encoder *encoder)
{
    struct otlp *otlp = (struct otlp *)encoder;

    for (unsigned i = 0; i < HEADS; i++)
        free(otlp->heads[i].data);
    free(otlp);
}

static struct encoder *otlp_encoder_new(void)
{
    struct otlp *otlp = calloc(1, sizeof(*otlp));

    if (!otlp)
        return NULL;
    otlp->base = (struct encoder){.encode = encode,
                                  .frame = frame,
                                  .head_of = head_of_group,
                                  .trace_of = trace_of,
                                  .describe = describe,
                                  .free = otlp_free};
    otlp->seed = hash_seed(otlp);
    return &otlp->base;
}

/* An empty request is an empty message, and batches one after the other are one batch. */
const struct protocol otlp_protocol = {
    .format = FORMAT_OTLP,
    .name = "otlp",
    .peer = "an OTLP collector",
    .endpoint = "http://localhost:4318" OTLP_PATH,
    .path = OTLP_PATH,
    .content_type = "application/x-protobuf",
    .empty_batch = {"", 0},
    .again = (const short[]){429, 502, 503, 504, 0},
    .suspect = (const short[]){0},
    .is_answer = is_answer,
    .rejected = rejected,
    .reason = reason,
    .encoder_new = otlp_encoder_new,
};

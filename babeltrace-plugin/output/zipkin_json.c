/*
 * The Zipkin v2 encoder.
 *
 * Format: zipkin2-api.yaml of openzipkin/zipkin-api, definition "Span". One refused span costs the
 * whole POST, so what is written here is what all decoders take: ids in lower case and not zero, no
 * parent that is the span itself, plain decimal times > 0, a duration of at least 1, string tags,
 * checked addresses and ports, a localEndpoint always, and no '|' in an annotation, which the
 * OpenTelemetry collector's Zipkin receiver takes for a separator.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "zipkin_json.h"

#include "json.h"

/* Tags that receivers take for something else, so that ours would vanish: they get a prefix. */
#define RESERVED_PREFIX "blkin."

static bool is_reserved(struct text key)
{
    static const char link_prefix[] = "otlp.link.";

    if (key.length >= sizeof(link_prefix) - 1 &&
        memcmp(key.data, link_prefix, sizeof(link_prefix) - 1) == 0)
        return true;
    return text_is(key, "w3c.tracestate") || text_is(key, "span.kind") ||
           text_is(key, "otel.status_code") || text_is(key, "otel.status_description");
}

static int64_t floor_us(int64_t ns)
{
    return ns / 1000 - (ns % 1000 < 0);
}

static int64_t ceil_us(int64_t ns)
{
    return ns / 1000 + (ns % 1000 > 0);
}

static char *write_ids(char *at, const struct span *span)
{
    at = JSON_LITERAL(at, "{\"traceId\":\"");
    if (span->trace_id_high)
        at = json_hex(at, span->trace_id_high);
    at = json_hex(at, span->trace_id);
    at = JSON_LITERAL(at, "\",\"id\":\"");
    at = json_hex(at, span->id);
    if (span->parent_id && span->parent_id != span->id) {
        at = JSON_LITERAL(at, "\",\"parentId\":\"");
        at = json_hex(at, span->parent_id);
    }
    return JSON_LITERAL(at, "\"");
}

static char *write_kind(char *at, enum span_kind kind)
{
    switch (kind) {
    case SPAN_CLIENT:
        return JSON_LITERAL(at, ",\"kind\":\"CLIENT\"");
    case SPAN_SERVER:
        return JSON_LITERAL(at, ",\"kind\":\"SERVER\"");
    case SPAN_PRODUCER:
        return JSON_LITERAL(at, ",\"kind\":\"PRODUCER\"");
    case SPAN_CONSUMER:
        return JSON_LITERAL(at, ",\"kind\":\"CONSUMER\"");
    case SPAN_LOCAL:
        break;
    }
    return at;
}

/*
 * Start rounded down, end rounded up: a span that encloses another one in nanoseconds does so in
 * microseconds too.
 */
static char *write_times(char *at, const struct span *span)
{
    const int64_t start = floor_us(span->start_ns);
    const int64_t end = ceil_us(span->end_ns);

    if (start <= 0)
        return at;
    at = JSON_LITERAL(at, ",\"timestamp\":");
    at = json_integer(at, start);
    at = JSON_LITERAL(at, ",\"duration\":");
    return json_integer(at, end > start ? end - start : 1);
}

static char *write_endpoint(char *at, const struct endpoint *endpoint)
{
    *at++ = '{';
    if (endpoint->service.length) {
        at = JSON_LITERAL(at, "\"serviceName\":");
        at = json_string(at, endpoint->service, '|');
        *at++ = ',';
    }
    if (endpoint->ipv4[0]) {
        at = JSON_LITERAL(at, "\"ipv4\":");
        at = json_string(at, text_of(endpoint->ipv4), '|');
        *at++ = ',';
    }
    if (endpoint->ipv6[0]) {
        at = JSON_LITERAL(at, "\"ipv6\":");
        at = json_string(at, text_of(endpoint->ipv6), '|');
        *at++ = ',';
    }
    if (endpoint->port) {
        at = JSON_LITERAL(at, "\"port\":");
        at = json_integer(at, endpoint->port);
        *at++ = ',';
    }
    if (at[-1] == ',')
        at--;
    return JSON_LITERAL(at, "}");
}

/* A core annotation at the very start or end says what kind, timestamp and duration say already. */
static bool is_implied(const struct span *span, const struct span_entry *entry)
{
    const struct text value = span_entry_value(entry);

    if ((span->kind != SPAN_CLIENT && span->kind != SPAN_SERVER) || value.length != 2)
        return false;
    if (entry->integer == span->start_ns)
        return text_is(value, span->kind == SPAN_CLIENT ? "cs" : "sr");
    return entry->integer == span->end_ns &&
           text_is(value, span->kind == SPAN_CLIENT ? "cr" : "ss");
}

static char *write_annotations(char *at, const struct span *span)
{
    char *start = at;

    at = JSON_LITERAL(at, ",\"annotations\":[");
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (entry->type != SPAN_ANNOTATION || is_implied(span, entry) ||
            floor_us(entry->integer) <= 0)
            continue;
        at = JSON_LITERAL(at, "{\"timestamp\":");
        at = json_integer(at, floor_us(entry->integer));
        at = JSON_LITERAL(at, ",\"value\":");
        at = json_string(at, span_entry_value(entry), '/');
        at = JSON_LITERAL(at, "},");
    }
    if (at[-1] != ',')
        return start;
    at[-1] = ']';
    return at;
}

/* How many tags before this one have the same key. */
static int64_t repetition(const struct span *span, const struct span_entry *of)
{
    int64_t count = 0;

    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (entry == of)
            break;
        if (entry->type != SPAN_ANNOTATION && text_equal(span_entry_key(entry), span_entry_key(of)))
            count++;
    }
    return count;
}

/* The second tag of one key is written as key#2: an object cannot hold both, and none is lost. */
static char *write_tag_key(char *at, const struct span *span, const struct span_entry *entry)
{
    const struct text key = span_entry_key(entry);
    const int64_t earlier = repetition(span, entry);

    at = json_string(at, key, '|');
    if (is_reserved(key)) {
        char *start = at - key.length - 2;

        at = json_bytes(start, "\"" RESERVED_PREFIX, sizeof(RESERVED_PREFIX));
        at = json_bytes(at, key.data, key.length);
        *at++ = '"';
    }
    if (earlier) {
        at[-1] = '#';
        at = json_integer(at, earlier + 1);
        *at++ = '"';
    }
    return at;
}

static char *write_tags(char *at, const struct span *span)
{
    char *start = at;

    at = JSON_LITERAL(at, ",\"tags\":{");
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (entry->type == SPAN_ANNOTATION)
            continue;
        at = write_tag_key(at, span, entry);
        *at++ = ':';
        if (entry->type == SPAN_TAG_INTEGER) {
            *at++ = '"';
            at = json_integer(at, entry->integer);
            *at++ = '"';
        } else {
            at = json_string(at, span_entry_value(entry), '|');
        }
        *at++ = ',';
    }
    if (at[-1] != ',')
        return start;
    at[-1] = '}';
    return at;
}

/* No span needs more than this. */
static size_t size_limit(const struct span *span)
{
    const size_t fixed = 512;
    const size_t per_entry = 96 + 2 * JSON_STRING_MAX(0);
    size_t size = fixed + JSON_STRING_MAX(span->name_length) +
                  JSON_STRING_MAX(span->endpoint->service.length);

    if (span->remote)
        size += fixed + JSON_STRING_MAX(span->remote->service.length);

    SPAN_FOR_EACH_ENTRY(span, entry)
    size += per_entry + 6 * ((size_t)entry->key_length + entry->value_length);
    return size;
}

bool zipkin_json_span(struct buffer *buffer, const struct span *span)
{
    char *at;

    if (!buffer_reserve(buffer, size_limit(span)))
        return false;
    at = buffer->data + buffer->length;
    at = write_ids(at, span);
    if (span->name_length) {
        at = JSON_LITERAL(at, ",\"name\":");
        at = json_string(at, span_name(span), '|');
    }
    at = write_kind(at, span->kind);
    at = write_times(at, span);
    at = JSON_LITERAL(at, ",\"localEndpoint\":");
    at = write_endpoint(at, span->endpoint);
    if (span->remote) {
        at = JSON_LITERAL(at, ",\"remoteEndpoint\":");
        at = write_endpoint(at, span->remote);
    }
    if (span->debug)
        at = JSON_LITERAL(at, ",\"debug\":true");
    at = write_annotations(at, span);
    at = write_tags(at, span);
    *at++ = '}';
    buffer->length = (size_t)(at - buffer->data);
    return true;
}

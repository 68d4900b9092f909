/*
 * OTLP traces, read: the whole of a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_decode.h"

#include "encoder.h"
#include "otlp_fields.h"
#include "resource.h"

#include <inttypes.h>
#include <stdio.h>

/* Of values within values: what is deeper is left out. */
#define DEPTH_MAX 8

/* ---- values as text -------------------------------------------------------------------------- */

/* What does not fit is cut off. */
struct line {
    char *data;
    size_t size;
    size_t length;
};

static void put(struct line *line, struct text text)
{
    const size_t room = line->size - line->length;
    const size_t length = text.length < room ? text.length : room;

    if (length)
        memcpy(line->data + line->length, text.data, length);
    line->length += length;
}

static void put_string(struct line *line, const char *string)
{
    put(line, text_of(string));
}

static struct text text_in(const struct line *line)
{
    return (struct text){line->data, line->length};
}

/* In quotes, where it is a part of something. */
static void put_quoted(struct line *line, struct text text)
{
    put_string(line, "\"");
    for (size_t i = 0; i < text.length; i++) {
        const char c = text.data[i];

        if (c == '"' || c == '\\')
            put_string(line, "\\");
        put(line, c == '\n'                 ? text_of("\\n")
                  : (unsigned char)c < 0x20 ? text_of(" ")
                                            : (struct text){&text.data[i], 1});
    }
    put_string(line, "\"");
}

static void put_hex(struct line *line, struct text bytes)
{
    for (size_t i = 0; i < bytes.length && line->length < line->size; i++) {
        char digits[4];

        (void)snprintf(digits, sizeof(digits), "%02x", (unsigned char)bytes.data[i]);
        put_string(line, digits);
    }
}

/* The field of a message AnyValue that tells its value: the last one. */
static bool value_field(struct text value, struct pb_member *last)
{
    struct pb_reader reader = pb_reader_of(value);
    struct pb_member field;
    bool is_there = false;

    while (pb_next(&reader, &field)) {
        *last = field;
        is_there = true;
    }
    return is_there;
}

static void put_value(struct line *line, struct text value, unsigned depth);

static void put_array(struct line *line, struct text array, unsigned depth)
{
    struct pb_reader reader = pb_reader_of(array);
    struct pb_member field;
    const char *before = "[";

    while (pb_next(&reader, &field) && line->length < line->size) {
        if (field.tag != OTLP_ARRAY_VALUE)
            continue;
        put_string(line, before);
        put_value(line, pb_text(&field), depth + 1);
        before = ",";
    }
    put_string(line, *before == '[' ? "[]" : "]");
}

/* Of a message that has attributes in fields of this tag: {"key":value,...}; "" if it has none. */
static void put_attributes(struct line *line, struct text message, enum otlp_field tag,
                           unsigned depth)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;
    const char *before = "{";

    while (pb_next(&reader, &field) && line->length < line->size) {
        if (field.tag != (uint32_t)tag)
            continue;
        put_string(line, before);
        put_quoted(line, otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY));
        put_string(line, ":");
        put_value(line, otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE), depth + 1);
        before = ",";
    }
    if (*before == ',')
        put_string(line, "}");
}

/* As JSON, but for a text that is the whole. */
static void put_value(struct line *line, struct text value, unsigned depth)
{
    struct pb_member field;
    char number[32];

    if (depth > DEPTH_MAX || !value_field(value, &field))
        return;
    switch (field.tag) {
    case OTLP_VALUE_STRING:
        if (depth)
            put_quoted(line, pb_text(&field));
        else
            put(line, pb_text(&field));
        break;
    case OTLP_VALUE_BOOL:
        put_string(line, field.value ? "true" : "false");
        break;
    case OTLP_VALUE_INT:
        (void)snprintf(number, sizeof(number), "%" PRId64, (int64_t)field.value);
        put_string(line, number);
        break;
    case OTLP_VALUE_DOUBLE:
        (void)snprintf(number, sizeof(number), "%.17g", pb_double(field.value));
        put_string(line, number);
        break;
    case OTLP_VALUE_ARRAY:
        put_array(line, pb_text(&field), depth);
        break;
    case OTLP_VALUE_LIST:
        put_attributes(line, pb_text(&field), OTLP_LIST_ATTRIBUTE, depth);
        break;
    case OTLP_VALUE_BYTES:
        put_hex(line, pb_text(&field));
        break;
    default:
        break;
    }
}

/* ---- one attribute --------------------------------------------------------------------------- */

static bool find_attribute(struct text message, enum otlp_field tag, struct text key, char *text,
                           size_t size)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;
    struct line line = {text, size - 1, 0};

    while (pb_next(&reader, &field)) {
        if (field.tag != (uint32_t)tag ||
            !text_equal(otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY), key))
            continue;
        put_value(&line, otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE), 0);
        text[line.length] = '\0';
        return true;
    }
    return false;
}

bool otlp_span_attribute(struct text span, struct text key, char *value, size_t size)
{
    return find_attribute(span, OTLP_SPAN_ATTRIBUTE, key, value, size);
}

bool otlp_resource_attribute(struct text resource, struct text key, char *value, size_t size)
{
    return find_attribute(resource, OTLP_RESOURCE_ATTRIBUTE, key, value, size);
}

/* ---- the whole span: what does not fit into its log is left out -------------------------------
 */

struct address {
    struct text address;
    int64_t port;
};

struct filling {
    struct span *whole;
    bool is_ours; /* written by our encoder: what it made of the span is undone */
    struct text peer_service;
    struct address peer, local;
};

/* Takes an attribute PREFIX.address or PREFIX.port. */
static bool take_address(struct address *taken, const char *prefix, struct text key,
                         struct text value)
{
    const size_t length = strlen(prefix);
    struct pb_member field;

    if (key.length <= length || memcmp(key.data, prefix, length) != 0)
        return false;
    key = (struct text){key.data + length, key.length - length};
    if (text_is(key, ".address"))
        taken->address = otlp_find(value, OTLP_VALUE_STRING);
    else if (text_is(key, ".port") && value_field(value, &field) && field.tag == OTLP_VALUE_INT)
        taken->port = (int64_t)field.value;
    else
        return false;
    return true;
}

/* What becomes an endpoint is no tag. */
static bool take_peer(struct filling *filling, struct text key, struct text value)
{
    if (!text_is(key, "peer.service"))
        return take_address(&filling->peer, "network.peer", key, value) ||
               take_address(&filling->local, "network.local", key, value);
    filling->peer_service = otlp_find(value, OTLP_VALUE_STRING);
    return true;
}

/* Of our own spans: what the encoder has written besides the tags. The addresses of client and
 * server follow those of the endpoints, unless the program gave other ones. */
static bool take_own(struct filling *filling, struct text key, struct text value)
{
    const bool is_server = filling->whole->kind == SPAN_SERVER;
    struct address address = {.port = 0};
    const struct address *same;

    if (text_is(key, "blkin.debug") || text_is(key, "blkin.shared")) {
        *(text_is(key, "blkin.debug") ? &filling->whole->debug : &filling->whole->shared) = true;
        return true;
    }
    if (take_address(&address, "server", key, value))
        same = is_server ? &filling->local : &filling->peer;
    else if (take_address(&address, "client", key, value))
        same = &filling->peer;
    else
        return false;
    return address.address.length ? text_equal(address.address, same->address)
                                  : address.port == same->port;
}

static void add_tag(struct filling *filling, struct text key, struct text value)
{
    char text[LIMIT_VALUE + 1];
    struct line line = {text, sizeof(text), 0};
    struct pb_member field;

    if (value_field(value, &field) && field.tag == OTLP_VALUE_INT) {
        (void)span_add(filling->whole, SPAN_TAG_INTEGER, key, text_of(""), (int64_t)field.value);
        return;
    }
    put_value(&line, value, 0);
    (void)span_add(filling->whole, SPAN_TAG_TEXT, key, text_in(&line), 0);
}

static void add_text_tag(struct filling *filling, const char *key, struct text value)
{
    if (value.length)
        (void)span_add(filling->whole, SPAN_TAG_TEXT, text_of(key), value, 0);
}

static struct text name_of_resource_tag(const struct filling *filling, struct text key)
{
    return filling->is_ours && text_is(key, "host.name") ? text_of(RESOURCE_HOST_TAG) : key;
}

/* Of the resource: what the local endpoint does not say already. */
static void add_resource(struct filling *filling, struct text resource)
{
    struct pb_reader reader = pb_reader_of(resource);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        struct text key;

        if (field.tag != OTLP_RESOURCE_ATTRIBUTE)
            continue;
        key = otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY);
        if (!text_is(key, "service.name") && !text_is(key, "host.ip"))
            add_tag(filling, name_of_resource_tag(filling, key),
                    otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE));
    }
}

static void add_scope(struct filling *filling, struct text scope)
{
    const struct text name = otlp_find(scope, OTLP_SCOPE_NAME);

    if (filling->is_ours)
        return;
    add_text_tag(filling, "otel.scope.name", name);
    add_text_tag(filling, "otel.scope.version", otlp_find(scope, OTLP_SCOPE_VERSION));
}

/* As OpenTelemetry writes it for Zipkin: "name", or "name": {"key":value,...} */
static void add_event(struct filling *filling, struct text event)
{
    char text[LIMIT_VALUE + 1];
    struct line line = {text, sizeof(text), 0};
    struct pb_reader reader = pb_reader_of(event);
    struct pb_member field;
    int64_t time_ns = filling->whole->start_ns;
    struct text name = {"", 0};
    size_t length;

    while (pb_next(&reader, &field)) {
        if (field.tag == OTLP_EVENT_TIME && field.value <= INT64_MAX)
            time_ns = (int64_t)field.value;
        else if (field.tag == OTLP_EVENT_NAME)
            name = pb_text(&field);
    }
    put(&line, name);
    length = line.length;
    put_string(&line, ": ");
    put_attributes(&line, event, OTLP_EVENT_ATTRIBUTE, 0);
    if (line.length == length + 2)
        line.length = length; /* it has none */
    (void)span_add(filling->whole, SPAN_ANNOTATION, text_of(""), text_in(&line), time_ns);
}

static void add_link(struct filling *filling, struct text link)
{
    const struct text trace_id = otlp_find(link, OTLP_LINK_TRACE_ID);
    const struct text span_id = otlp_find(link, OTLP_LINK_SPAN_ID);

    if (trace_id.length == 16 && span_id.length == 8)
        (void)span_add_link(filling->whole,
                            &(struct span_link){pb_id(trace_id.data), pb_id(trace_id.data + 8),
                                                pb_id(span_id.data)});
}

static void add_field(struct filling *filling, const struct pb_member *field)
{
    struct text key, value;

    switch (field->tag) {
    case OTLP_SPAN_ATTRIBUTE:
        key = otlp_find(pb_text(field), OTLP_ATTRIBUTE_KEY);
        value = otlp_find(pb_text(field), OTLP_ATTRIBUTE_VALUE);
        if (!take_peer(filling, key, value) && !(filling->is_ours && take_own(filling, key, value)))
            add_tag(filling, key, value);
        break;
    case OTLP_SPAN_EVENT:
        add_event(filling, pb_text(field));
        break;
    case OTLP_SPAN_LINK:
        add_link(filling, pb_text(field));
        break;
    case OTLP_SPAN_TRACE_STATE:
        add_text_tag(filling, "w3c.tracestate", pb_text(field));
        break;
    default:
        break;
    }
}

/* The first one that there is an address of. */
static struct text host_ip(struct text resource)
{
    struct pb_reader reader = pb_reader_of(resource);
    struct pb_member field;
    struct text value;

    while (pb_next(&reader, &field)) {
        if (field.tag != OTLP_RESOURCE_ATTRIBUTE ||
            !text_is(otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY), "host.ip"))
            continue;
        value = otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE);
        if (!value_field(value, &field))
            break;
        if (field.tag == OTLP_VALUE_STRING)
            return pb_text(&field);
        if (field.tag == OTLP_VALUE_ARRAY) {
            reader = pb_reader_of(pb_text(&field));
            if (pb_next(&reader, &field) && field.tag == OTLP_ARRAY_VALUE)
                return otlp_find(pb_text(&field), OTLP_VALUE_STRING);
        }
        break;
    }
    return (struct text){"", 0};
}

static bool set_endpoints(struct filling *filling, const struct otlp_origin *origin,
                          struct endpoint_table *endpoints)
{
    struct span *whole = filling->whole;
    const struct address *const peer = &filling->peer;
    const bool has_remote = filling->peer_service.length || peer->address.length || peer->port;
    const struct text ip =
        filling->local.address.length ? filling->local.address : host_ip(origin->resource);

    whole->endpoint = endpoint_get(endpoints, origin->service, ip, filling->local.port);
    whole->remote = has_remote
                        ? endpoint_get(endpoints, filling->peer_service, peer->address, peer->port)
                        : NULL;
    return whole->endpoint && (whole->remote || !has_remote);
}

bool otlp_decode_span(const struct otlp_origin *origin, const struct otlp_span *span,
                      struct endpoint_table *endpoints, struct span *whole)
{
    struct filling filling = {
        .whole = whole,
        .is_ours = text_is(otlp_find(origin->scope, OTLP_SCOPE_NAME), "blkin"),
        .peer_service = {"", 0},
        .peer = {.address = {"", 0}},
        .local = {.address = {"", 0}},
    };
    struct pb_reader reader = pb_reader_of(span->raw);
    struct pb_member field;
    struct text status = {"", 0};

    *whole = (struct span){
        .trace_id_high = span->trace_id_high,
        .trace_id = span->trace_id,
        .id = span->id,
        .parent_id = span->parent_id,
        .kind = span->kind,
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .log = whole->log,
        .log_capacity = whole->log_capacity,
    };
    if (!span_set_name(whole, span->name))
        return false;
    while (pb_next(&reader, &field)) {
        if (field.tag == OTLP_SPAN_STATUS)
            status = otlp_find(pb_text(&field), OTLP_STATUS_MESSAGE);
        else
            add_field(&filling, &field);
    }
    if (span->is_error)
        (void)span_add(whole, SPAN_TAG_TEXT, text_of("error"), status, 0);
    add_scope(&filling, origin->scope);
    add_resource(&filling, origin->resource);
    return !pb_is_broken(&reader) && set_endpoints(&filling, origin, endpoints);
}

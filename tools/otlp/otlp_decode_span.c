/*
 * OTLP traces, read: the whole of a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_decode.h"

#include "babeltrace-plugin/encode/encoder.h"
#include "babeltrace-plugin/encode/otlp_fields.h"
#include "babeltrace-plugin/encode/resource.h"

#include <arpa/inet.h>
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

/* What names a foreign span's remote endpoint: OpenTelemetry's list, the first one wins. */
enum rank {
    PEER_SERVICE,
    SERVER,
    NET_PEER,
    NETWORK_PEER,
    SERVER_SOCKET_DOMAIN,
    SERVER_SOCKET,
    NET_SOCK_PEER_NAME,
    NET_SOCK_PEER,
    PEER_HOSTNAME,
    PEER_ADDRESS,
    DB_NAME,
    RANKS,
};

static const struct {
    const char *name;
    const char *port;
    bool is_address; /* not a name */
    bool is_server;  /* of the server: a SERVER span's own */
} ranks[RANKS] = {
    [PEER_SERVICE] = {"peer.service", "", false, false},
    [SERVER] = {"server.address", "server.port", false, true},
    [NET_PEER] = {"net.peer.name", "net.peer.port", false, false},
    [NETWORK_PEER] = {"network.peer.address", "network.peer.port", true, false},
    [SERVER_SOCKET_DOMAIN] = {"server.socket.domain", "", false, true},
    [SERVER_SOCKET] = {"server.socket.address", "server.socket.port", true, true},
    [NET_SOCK_PEER_NAME] = {"net.sock.peer.name", "", false, false},
    [NET_SOCK_PEER] = {"net.sock.peer.addr", "net.sock.peer.port", true, false},
    [PEER_HOSTNAME] = {"peer.hostname", "", false, false},
    [PEER_ADDRESS] = {"peer.address", "", true, false},
    [DB_NAME] = {"db.name", "", false, true},
};

struct filling {
    struct span *whole;
    bool is_ours; /* written by our encoder: what it made of the span is undone */
    bool is_failed;
    struct text peer_service;
    struct address peer, local;
    struct address ranked[RANKS]; /* of a foreign span */
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

static void take_ranked(struct filling *filling, struct text key, struct text value)
{
    struct pb_member field;

    for (enum rank i = 0; i < RANKS; i++) {
        if (ranks[i].is_server && filling->whole->kind == SPAN_SERVER)
            continue;
        if (text_is(key, ranks[i].name))
            filling->ranked[i].address = otlp_find(value, OTLP_VALUE_STRING);
        else if (text_is(key, ranks[i].port) && value_field(value, &field) &&
                 field.tag == OTLP_VALUE_INT)
            filling->ranked[i].port = (int64_t)field.value;
    }
    if (text_is(key, "network.local.address") || text_is(key, "network.local.port"))
        (void)take_address(&filling->local, "network.local", key, value);
}

/* Of our own spans: what the encoder has written besides the tags, which is no tag. The addresses
 * of client and server follow those of the endpoints, unless the program gave other ones. */
static bool take_own(struct filling *filling, struct text key, struct text value)
{
    const bool is_server = filling->whole->kind == SPAN_SERVER;
    struct address address = {.port = 0};
    const struct address *same;

    if (text_is(key, "blkin.debug") || text_is(key, "blkin.shared")) {
        *(text_is(key, "blkin.debug") ? &filling->whole->debug : &filling->whole->shared) = true;
        return true;
    }
    if (text_is(key, "peer.service")) {
        filling->peer_service = otlp_find(value, OTLP_VALUE_STRING);
        return true;
    }
    if (take_address(&filling->peer, "network.peer", key, value) ||
        take_address(&filling->local, "network.local", key, value))
        return true;
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
        if (!text_is(key, "service.name") && !(filling->is_ours && text_is(key, "host.ip")))
            add_tag(filling, name_of_resource_tag(filling, key),
                    otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE));
    }
}

static void add_attributes(struct filling *filling, struct text message, enum otlp_field tag)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == (uint32_t)tag)
            add_tag(filling, otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY),
                    otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE));
    }
}

/* With the older names, as OpenTelemetry demands it. */
static void add_scope(struct filling *filling, struct text scope)
{
    const struct text name = otlp_find(scope, OTLP_SCOPE_NAME);
    const struct text version = otlp_find(scope, OTLP_SCOPE_VERSION);

    add_text_tag(filling, "otel.scope.name", name);
    add_text_tag(filling, "otel.library.name", name);
    add_text_tag(filling, "otel.scope.version", version);
    add_text_tag(filling, "otel.library.version", version);
    add_attributes(filling, scope, OTLP_SCOPE_ATTRIBUTE);
}

/* The last one, as protobuf has it. */
static uint64_t status_code(struct text status)
{
    struct pb_reader reader = pb_reader_of(status);
    struct pb_member field;
    uint64_t code = 0;

    while (pb_next(&reader, &field)) {
        if (field.tag == OTLP_STATUS_CODE)
            code = field.value;
    }
    return code;
}

static void add_status(struct filling *filling, struct text status)
{
    const uint64_t code = status_code(status);

    filling->is_failed = code == OTLP_STATUS_ERROR;
    if (filling->is_failed)
        (void)span_add(filling->whole, SPAN_TAG_TEXT, text_of("error"),
                       otlp_find(status, OTLP_STATUS_MESSAGE), 0);
    if (!filling->is_ours && (code == OTLP_STATUS_OK || filling->is_failed))
        add_text_tag(filling, "otel.status_code", text_of(filling->is_failed ? "ERROR" : "OK"));
}

/* An attribute "error" that is true or false: the status tells that, and Zipkin takes any tag
 * "error" for a failure. */
static bool is_error_flag(const struct filling *filling, struct text key, struct text value)
{
    struct pb_member field;
    bool is_true, is_false;

    if (!text_is(key, "error") || !value_field(value, &field))
        return false;
    is_true = field.tag == OTLP_VALUE_BOOL && field.value;
    is_false = field.tag == OTLP_VALUE_BOOL && !field.value;
    if (field.tag == OTLP_VALUE_STRING) {
        is_true = text_is(pb_text(&field), "true");
        is_false = text_is(pb_text(&field), "false");
    }
    return is_false || (is_true && filling->is_failed);
}

static void add_attribute(struct filling *filling, struct text key, struct text value)
{
    if (!filling->is_ours)
        take_ranked(filling, key, value);
    if (filling->is_ours ? !take_own(filling, key, value) : !is_error_flag(filling, key, value))
        add_tag(filling, key, value);
}

static void add_dropped(struct filling *filling, const char *key, uint64_t count)
{
    if (count && count <= INT64_MAX && !filling->is_ours)
        (void)span_add(filling->whole, SPAN_TAG_INTEGER, text_of(key), text_of(""), (int64_t)count);
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
    switch (field->tag) {
    case OTLP_SPAN_ATTRIBUTE:
        add_attribute(filling, otlp_find(pb_text(field), OTLP_ATTRIBUTE_KEY),
                      otlp_find(pb_text(field), OTLP_ATTRIBUTE_VALUE));
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
    case OTLP_SPAN_DROPPED_ATTRIBUTES:
        add_dropped(filling, "otel.dropped_attributes_count", field->value);
        break;
    case OTLP_SPAN_DROPPED_EVENTS:
        add_dropped(filling, "otel.dropped_events_count", field->value);
        break;
    case OTLP_SPAN_DROPPED_LINKS:
        add_dropped(filling, "otel.dropped_links_count", field->value);
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

static bool is_ip(struct text text)
{
    char string[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (text.length == 0 || text.length >= sizeof(string))
        return false;
    (void)text_copy(string, text);
    string[text.length] = '\0';
    return inet_pton(AF_INET, string, &address) == 1 || inet_pton(AF_INET6, string, &address) == 1;
}

/* The first one that is there names the endpoint; the first address, and the first port, are told
 * besides. */
static void choose_peer(struct filling *filling)
{
    enum rank chosen = 0;

    while (chosen < RANKS && !filling->ranked[chosen].address.length)
        chosen++;
    if (chosen == RANKS)
        return;
    if (!ranks[chosen].is_address || !is_ip(filling->ranked[chosen].address))
        filling->peer_service = filling->ranked[chosen].address;
    for (enum rank i = chosen; i < RANKS; i++) {
        const struct address *const ranked = &filling->ranked[i];

        if (!filling->peer.address.length && is_ip(ranked->address))
            filling->peer = *ranked;
        if (!filling->peer.port)
            filling->peer.port = ranked->port;
    }
}

static bool set_endpoints(struct filling *filling, const struct otlp_origin *origin,
                          struct endpoint_table *endpoints)
{
    const struct address *const peer = &filling->peer;
    struct span *whole = filling->whole;
    struct text ip = filling->local.address;
    bool has_remote;

    if (!filling->is_ours)
        choose_peer(filling);
    has_remote = filling->peer_service.length || peer->address.length || peer->port;
    if (!ip.length)
        ip = host_ip(origin->resource);
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
    };
    struct pb_reader reader = pb_reader_of(span->raw);
    struct pb_member field;

    *whole = (struct span){
        .trace_id_high = span->trace_id_high,
        .trace_id = span->trace_id,
        .id = span->id,
        .parent_id = span->parent_id,
        .kind = span->kind,
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .is_foreign = !filling.is_ours,
        .log = whole->log,
        .log_capacity = whole->log_capacity,
    };
    if (!span_set_name(whole, span->name))
        return false;
    add_status(&filling, otlp_find(span->raw, OTLP_SPAN_STATUS));
    while (pb_next(&reader, &field))
        add_field(&filling, &field);
    if (!filling.is_ours)
        add_scope(&filling, origin->scope);
    add_resource(&filling, origin->resource);
    return !pb_is_broken(&reader) && set_endpoints(&filling, origin, endpoints);
}

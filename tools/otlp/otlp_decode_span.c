/*
 * Reads all fields of an OTLP span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_decode.h"

#include "babeltrace-plugin/encode/encoder.h"
#include "otlp_write.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- one attribute --------------------------------------------------------------------------- */

bool otlp_attribute_text(struct text message, enum otlp_field tag, struct text key, char *text,
                         size_t size)
{
    const struct text value = otlp_attribute(message, tag, key);
    struct otlp_line line = {text, size - 1, 0};

    if (!value.data)
        return false;
    otlp_value_put(&line, value, 0);
    text[line.length] = '\0';
    return true;
}

/* ---- the whole span: entries that do not fit into its log are dropped ------------------------ */

struct address {
    struct text address;
    int64_t port;
};

/* OpenTelemetry's list of attributes that name the remote endpoint: the first one counts. */
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
    bool is_address; /* the value may be an IP address in place of a name */
    bool is_server;  /* names the server: in a SERVER span, the local endpoint */
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
    bool is_ours; /* BlkKin's encoder wrote the span, so the encoder's changes are undone */
    bool is_failed, is_ok;
    bool has_own_error; /* the span has an attribute "error" */
    struct text peer_service;
    struct address peer, local;
    struct address ranked[RANKS]; /* only of another tracer's span */
};

/* ---- endpoints ------------------------------------------------------------------------------- */

/* Takes an attribute PREFIX.address or PREFIX.port. */
static bool otlp_decode_take_address(struct address *taken, const char *prefix, struct text key,
                                     struct text value)
{
    const size_t length = strlen(prefix);

    if (key.length <= length || memcmp(key.data, prefix, length) != 0)
        return false;
    key = (struct text){key.data + length, key.length - length};
    if (text_is(key, ".address"))
        taken->address = otlp_find(value, OTLP_VALUE_STRING);
    else
        return text_is(key, ".port") && otlp_value_integer(value, &taken->port);
    return true;
}

static void otlp_decode_take_ranked(struct filling *filling, struct text key, struct text value)
{
    for (enum rank i = 0; i < RANKS; i++) {
        if (ranks[i].is_server && filling->whole->kind == SPAN_SERVER)
            continue;
        if (text_is(key, ranks[i].name))
            filling->ranked[i].address = otlp_find(value, OTLP_VALUE_STRING);
        else if (text_is(key, ranks[i].port))
            (void)otlp_value_integer(value, &filling->ranked[i].port);
    }
    if (text_is(key, "network.local.address") || text_is(key, "network.local.port"))
        (void)otlp_decode_take_address(&filling->local, "network.local", key, value);
}

/* Takes an attribute that BlkKin's encoder derived from the endpoints or flags. Returns false for a
 * tag of the program, which may also be an address that differs from the endpoint's. */
static bool otlp_decode_take_own(struct filling *filling, struct text key, struct text value)
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
    if (otlp_decode_take_address(&filling->peer, "network.peer", key, value) ||
        otlp_decode_take_address(&filling->local, "network.local", key, value))
        return true;
    if (otlp_decode_take_address(&address, "server", key, value))
        same = is_server ? &filling->local : &filling->peer;
    else if (otlp_decode_take_address(&address, "client", key, value))
        same = &filling->peer;
    else
        return false;
    return address.address.length ? text_equal(address.address, same->address)
                                  : address.port == same->port;
}

/* Returns the first element of the resource's host.ip, or its text. */
static struct text otlp_decode_host_ip(struct text resource)
{
    const struct text value = otlp_attribute(resource, OTLP_RESOURCE_ATTRIBUTE, text_of("host.ip"));
    struct pb_reader reader;
    struct pb_member field;

    if (otlp_find_field(value, OTLP_ANY, &field) && field.tag == OTLP_VALUE_STRING)
        return pb_text(&field);
    reader = pb_reader_of(otlp_find(value, OTLP_VALUE_ARRAY));
    if (pb_next(&reader, &field) && field.tag == OTLP_ARRAY_VALUE)
        return otlp_find(pb_text(&field), OTLP_VALUE_STRING);
    return (struct text){"", 0};
}

static bool otlp_decode_is_ip(struct text text)
{
    char string[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (text.length == 0 || text.length >= sizeof(string))
        return false;
    (void)text_copy(string, text);
    string[text.length] = '\0';
    return inet_pton(AF_INET, string, &address) == 1 || inet_pton(AF_INET6, string, &address) == 1;
}

/* The first attribute present names the endpoint. The first IP address and port from there on are
 * its address and port. */
static void otlp_decode_choose_peer(struct filling *filling)
{
    enum rank chosen = 0;

    while (chosen < RANKS && !filling->ranked[chosen].address.length)
        chosen++;
    if (chosen == RANKS)
        return;
    if (!ranks[chosen].is_address || !otlp_decode_is_ip(filling->ranked[chosen].address))
        filling->peer_service = filling->ranked[chosen].address;
    for (enum rank i = chosen; i < RANKS; i++) {
        const struct address *const ranked = &filling->ranked[i];

        if (!filling->peer.address.length && otlp_decode_is_ip(ranked->address))
            filling->peer = *ranked;
        if (!filling->peer.port)
            filling->peer.port = ranked->port;
    }
}

static bool otlp_decode_set_endpoints(struct filling *filling, const struct otlp_origin *origin,
                                      struct endpoint_table *endpoints)
{
    const struct address *const peer = &filling->peer;
    struct span *whole = filling->whole;
    struct text ip = filling->local.address;
    bool has_remote;

    if (!filling->is_ours)
        otlp_decode_choose_peer(filling);
    has_remote = filling->peer_service.length || peer->address.length || peer->port;
    if (!ip.length)
        ip = otlp_decode_host_ip(origin->resource);
    whole->endpoint = endpoint_get(endpoints, origin->service, ip, filling->local.port);
    whole->remote = has_remote
                        ? endpoint_get(endpoints, filling->peer_service, peer->address, peer->port)
                        : NULL;
    return whole->endpoint && (whole->remote || !has_remote);
}

/* ---- tags, annotations and links ------------------------------------------------------------- */

static void otlp_decode_add_tag(struct filling *filling, struct text key, struct text value)
{
    char text[LIMIT_VALUE + 1];
    struct otlp_line line = {text, sizeof(text), 0};
    int64_t number;

    if (otlp_value_integer(value, &number)) {
        (void)span_add(filling->whole, SPAN_TAG_INTEGER, key, text_of(""), number);
        return;
    }
    otlp_value_put(&line, value, 0);
    (void)span_add(filling->whole, SPAN_TAG_TEXT, key, otlp_line_text(&line), 0);
}

static void otlp_decode_add_text_tag(struct filling *filling, const char *key, struct text value)
{
    if (value.length)
        (void)span_add(filling->whole, SPAN_TAG_TEXT, text_of(key), value, 0);
}

/* Adds the attributes of the resource, except those that the local endpoint contains. */
static void otlp_decode_add_resource(struct filling *filling, struct text resource)
{
    struct pb_reader reader = pb_reader_of(resource);
    struct text key, value;

    while (otlp_next_attribute(&reader, OTLP_RESOURCE_ATTRIBUTE, &key, &value)) {
        if (filling->is_ours && text_is(key, "host.name"))
            key = text_of(RESOURCE_HOST_TAG);
        if (!text_is(key, "service.name") && !(filling->is_ours && text_is(key, "host.ip")))
            otlp_decode_add_tag(filling, key, value);
    }
}

/* Adds the scope under its names and its older names, as OpenTelemetry demands. */
static void otlp_decode_add_scope(struct filling *filling, struct text scope)
{
    const struct text name = otlp_find(scope, OTLP_SCOPE_NAME);
    const struct text version = otlp_find(scope, OTLP_SCOPE_VERSION);
    struct pb_reader reader = pb_reader_of(scope);
    struct text key, value;

    otlp_decode_add_text_tag(filling, "otel.scope.name", name);
    otlp_decode_add_text_tag(filling, "otel.library.name", name);
    otlp_decode_add_text_tag(filling, "otel.scope.version", version);
    otlp_decode_add_text_tag(filling, "otel.library.version", version);
    while (otlp_next_attribute(&reader, OTLP_SCOPE_ATTRIBUTE, &key, &value))
        otlp_decode_add_tag(filling, key, value);
}

/* Returns true if the value is a boolean, or the text "true" or "false". */
static bool otlp_decode_is_flag(struct text value, bool *is_true)
{
    struct pb_member field;
    bool is_false = false;

    *is_true = false;
    if (!otlp_find_field(value, OTLP_ANY, &field))
        return false;
    if (field.tag == OTLP_VALUE_BOOL) {
        *is_true = field.value;
        is_false = !field.value;
    } else if (field.tag == OTLP_VALUE_STRING) {
        *is_true = text_is(pb_text(&field), "true");
        is_false = text_is(pb_text(&field), "false");
    }
    return *is_true || is_false;
}

/* Returns the message of the status. Without a message, returns the text of another tracer's
 * attribute "error", and sets has_own_error. */
static struct text otlp_decode_error(struct filling *filling, struct text raw, struct text status)
{
    const struct text message = otlp_find(status, OTLP_STATUS_MESSAGE);
    const struct text value = otlp_attribute(raw, OTLP_SPAN_ATTRIBUTE, text_of("error"));
    const struct text own = otlp_find(value, OTLP_VALUE_STRING);
    bool is_true;

    if (message.length || filling->is_ours || !own.length || otlp_decode_is_flag(value, &is_true))
        return message;
    filling->has_own_error = true;
    return own;
}

static void otlp_decode_add_status(struct filling *filling, struct text raw)
{
    const struct text status = otlp_find(raw, OTLP_SPAN_STATUS);
    const uint64_t code = otlp_status_code(status);

    filling->is_failed = code == OTLP_STATUS_ERROR;
    filling->is_ok = code == OTLP_STATUS_OK;
    if (filling->is_failed)
        (void)span_add(filling->whole, SPAN_TAG_TEXT, text_of("error"),
                       otlp_decode_error(filling, raw, status), 0);
    if (!filling->is_ours && (filling->is_ok || filling->is_failed))
        otlp_decode_add_text_tag(filling, "otel.status_code",
                                 text_of(filling->is_failed ? "ERROR" : "OK"));
}

/* Adds another tracer's attribute "error", unless the status already says the same. With a status,
 * the tag is "error#2", because Zipkin treats any tag "error" as a failure. */
static void otlp_decode_add_own_error(struct filling *filling, struct text value)
{
    const bool has_status = filling->is_failed || filling->is_ok;
    bool is_true;

    if (filling->has_own_error ||
        (otlp_decode_is_flag(value, &is_true) && (!is_true || filling->is_failed)))
        return;
    otlp_decode_add_tag(filling, text_of(has_status ? "error#2" : "error"), value);
}

static void otlp_decode_add_attribute(struct filling *filling, struct text key, struct text value)
{
    if (!filling->is_ours)
        otlp_decode_take_ranked(filling, key, value);
    if (!filling->is_ours && text_is(key, "error"))
        otlp_decode_add_own_error(filling, value);
    else if (!filling->is_ours || !otlp_decode_take_own(filling, key, value))
        otlp_decode_add_tag(filling, key, value);
}

static void otlp_decode_add_dropped(struct filling *filling, const char *key, uint64_t count)
{
    if (count && count <= INT64_MAX && !filling->is_ours)
        (void)span_add(filling->whole, SPAN_TAG_INTEGER, text_of(key), text_of(""), (int64_t)count);
}

/* Adds an event in OpenTelemetry's form for Zipkin: "name", or "name": {"key":value,...} */
static void otlp_decode_add_event(struct filling *filling, struct text event)
{
    char text[LIMIT_VALUE + 1];
    struct otlp_line line = {text, sizeof(text), 0};
    struct pb_reader reader = pb_reader_of(event);
    struct pb_member field;
    int64_t time_ns = filling->whole->start_ns;
    struct text name = {"", 0};
    bool has_attributes = false;

    while (pb_next(&reader, &field)) {
        if (field.tag == OTLP_EVENT_TIME && field.value <= INT64_MAX)
            time_ns = (int64_t)field.value;
        else if (field.tag == OTLP_EVENT_NAME)
            name = pb_text(&field);
        has_attributes |= field.tag == OTLP_EVENT_ATTRIBUTE;
    }
    otlp_line_put(&line, name);
    if (has_attributes) {
        otlp_line_put_string(&line, ": ");
        otlp_value_put_attributes(&line, event, OTLP_EVENT_ATTRIBUTE, 0);
    }
    (void)span_add(filling->whole, SPAN_ANNOTATION, text_of(""), otlp_line_text(&line), time_ns);
}

/* Writes what a link has besides its ids, in the OpenTelemetry collector's form: trace state,
 * attributes as JSON, and the number of dropped attributes. */
static struct text otlp_decode_link_rest(struct text link, char *text, size_t size)
{
    struct otlp_line line = {text, size, 0};
    struct pb_member dropped = {.value = 0};
    char number[24];

    (void)otlp_find_field(link, OTLP_LINK_DROPPED, &dropped);
    (void)snprintf(number, sizeof(number), "|%" PRIu64, dropped.value);
    otlp_line_put(&line, otlp_find(link, OTLP_LINK_TRACE_STATE));
    otlp_line_put_string(&line, "|");
    otlp_value_put_attributes(&line, link, OTLP_LINK_ATTRIBUTE, 0);
    otlp_line_put_string(&line, number);
    return otlp_line_text(&line);
}

static void otlp_decode_add_link(struct filling *filling, struct text link)
{
    const struct text trace_id = otlp_find(link, OTLP_LINK_TRACE_ID);
    const struct text span_id = otlp_find(link, OTLP_LINK_SPAN_ID);
    char text[LIMIT_VALUE + 1];
    struct span_link to;

    if (trace_id.length != 16 || span_id.length != 8)
        return;
    to = (struct span_link){pb_id(trace_id.data), pb_id(trace_id.data + 8), pb_id(span_id.data)};
    (void)span_add(filling->whole, SPAN_LINK,
                   filling->is_ours ? text_of("") : otlp_decode_link_rest(link, text, sizeof(text)),
                   (struct text){(const char *)&to, sizeof(to)}, 0);
}

static void otlp_decode_add_field(struct filling *filling, const struct pb_member *field)
{
    switch (field->tag) {
    case OTLP_SPAN_ATTRIBUTE:
        otlp_decode_add_attribute(filling, otlp_find(pb_text(field), OTLP_ATTRIBUTE_KEY),
                                  otlp_find(pb_text(field), OTLP_ATTRIBUTE_VALUE));
        break;
    case OTLP_SPAN_EVENT:
        otlp_decode_add_event(filling, pb_text(field));
        break;
    case OTLP_SPAN_LINK:
        otlp_decode_add_link(filling, pb_text(field));
        break;
    case OTLP_SPAN_TRACE_STATE:
        otlp_decode_add_text_tag(filling, "w3c.tracestate", pb_text(field));
        break;
    case OTLP_SPAN_DROPPED_ATTRIBUTES:
        otlp_decode_add_dropped(filling, "otel.dropped_attributes_count", field->value);
        break;
    case OTLP_SPAN_DROPPED_EVENTS:
        otlp_decode_add_dropped(filling, "otel.dropped_events_count", field->value);
        break;
    case OTLP_SPAN_DROPPED_LINKS:
        otlp_decode_add_dropped(filling, "otel.dropped_links_count", field->value);
        break;
    default:
        break;
    }
}

/* Writes the fields of a ResourceSpans or ScopeSpans that precede its spans. */
static struct text otlp_decode_put_head(char *head, struct text message, struct text schema)
{
    char *at = otlp_put_raw(head, PB_BYTES(1), message);

    at = otlp_put_raw(at, PB_BYTES(3), schema);
    return (struct text){head, (size_t)(at - head)};
}

/* Adds the bytes of the message for back ends of OTLP. A message that is unsound or too large is
 * not added: then the encoder makes a message of the entries. */
static void otlp_decode_add_message(struct filling *filling, const struct otlp_origin *origin,
                                    const struct otlp_span *span)
{
    char resource[RESOURCE_MESSAGE_MAX + LIMIT_NAME + 16];
    char scope[RESOURCE_MESSAGE_MAX + LIMIT_NAME + 16];

    if (origin->resource.length <= RESOURCE_MESSAGE_MAX &&
        origin->scope.length <= RESOURCE_MESSAGE_MAX && origin->schema.length <= LIMIT_NAME &&
        origin->scope_schema.length <= LIMIT_NAME && otlp_is_sound(origin, span->raw) &&
        span_add(filling->whole, SPAN_ORIGIN,
                 otlp_decode_put_head(resource, origin->resource, origin->schema),
                 otlp_decode_put_head(scope, origin->scope, origin->scope_schema), 0))
        (void)span_add(filling->whole, SPAN_MESSAGE, text_of(""), span->raw, 0);
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
    otlp_decode_add_status(&filling, span->raw);
    while (pb_next(&reader, &field))
        otlp_decode_add_field(&filling, &field);
    if (!filling.is_ours)
        otlp_decode_add_scope(&filling, origin->scope);
    otlp_decode_add_resource(&filling, origin->resource);
    if (!filling.is_ours)
        otlp_decode_add_message(&filling, origin, span);
    return !pb_is_broken(&reader) && otlp_decode_set_endpoints(&filling, origin, endpoints);
}

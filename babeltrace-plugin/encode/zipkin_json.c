/*
 * The Zipkin v2 encoder.
 *
 * Format: zipkin2-api.yaml of openzipkin/zipkin-api, definition "Span". A collector refuses a whole
 * POST because of one span. So the encoder writes only forms that all decoders take:
 * - ids in lower case and not zero, and no parent that is the span itself;
 * - plain decimal times > 0, a duration of at least 1;
 * - string tags, no key twice;
 * - checked addresses and ports, always a localEndpoint;
 * - no '|' in an annotation: the OpenTelemetry collector's Zipkin receiver takes that byte for a
 *   separator.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "json.h"
#include "encoder.h"

#include <assert.h>
#include <stdio.h>

/* The prefix of tags whose own key has another meaning for receivers, and would be lost. */
#define RESERVED_PREFIX "blkin."

/* The prefix of a link's number: tags that collectors read as a link. */
#define LINK_PREFIX "otlp.link."

/* The tag with the parts of a span that were left out. */
#define ZIPKIN_LEFT_OUT "\"blkin.left_out\""

#define ZIPKIN_PATH "/api/v2/spans"

#define ENDPOINTS_LOG2 6
#define ENDPOINTS      (1U << ENDPOINTS_LOG2)

/* An endpoint in JSON, written once and then copied: many spans share it. */
struct endpoint_json {
    const struct endpoint *of;
    char *json;
    size_t length;
    size_t room;
    bool cut;
};

struct zipkin_json {
    struct encoder base;
    uint64_t seed;
    struct json_time last_time;
    struct endpoint_json endpoints[ENDPOINTS]; /* by address; a newer one replaces an older one */
};

/* The state of writing one span. */
struct json_writer {
    const struct span *span;
    struct zipkin_json *encoder;
    char *start; /* of the JSON object */
    uint32_t annotations_left_out;
    uint32_t tags_left_out;
    int64_t links;
    bool cut;
};

#define LETTER(c) (UINT32_C(1) << ((c)&31))

/* Returns true for keys with another meaning for the OpenTelemetry collector's receiver. The
 * receiver turns some tags into links, states and kinds. The receiver takes the tags of a resource
 * from one span, and applies the tags to all spans of the service in a request. */
__attribute__((noinline)) static bool is_taken(struct text key)
{
    static const char *const prefixes[] = {"aws.",     "cloud.",   "container.", "deployment.",
                                           "device.",  "faas.",    "host.",      "k8s.",
                                           "os.",      "otel.",    "otlp.",      "opencensus.",
                                           "process.", "service.", "telemetry.", "webengine."};

    for (unsigned i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (text_begins(key, prefixes[i]))
            return true;
    }
    return text_is(key, "span.kind") || text_is(key, "w3c.tracestate");
}

/* Same as is_taken(). Excludes nearly all other keys by their first two letters. */
static inline bool is_reserved(struct text key)
{
    /* for each first letter, the second letters of reserved keys */
    static const uint32_t second[32] = {
        ['a' & 31] = LETTER('w'),
        ['c' & 31] = LETTER('l') | LETTER('o'),
        ['d' & 31] = LETTER('e'),
        ['f' & 31] = LETTER('a'),
        ['h' & 31] = LETTER('o'),
        ['k' & 31] = LETTER('8'),
        ['o' & 31] = LETTER('s') | LETTER('t') | LETTER('p'),
        ['p' & 31] = LETTER('r'),
        ['s' & 31] = LETTER('e') | LETTER('p'),
        ['t' & 31] = LETTER('e'),
        ['w' & 31] = LETTER('e') | LETTER('3'),
    };

    return key.length > 2 && second[key.data[0] & 31] & LETTER(key.data[1]) && is_taken(key);
}

static int64_t floor_us(int64_t ns)
{
    const int64_t us = ns / 1000;

    return us - (us * 1000 > ns);
}

static int64_t ceil_us(int64_t ns)
{
    const int64_t us = ns / 1000;

    return us + (us * 1000 < ns);
}

static char *write_ids(char *at, const struct span *span)
{
    at = JSON_PUT_LITERAL(at, "{\"traceId\":\"");
    if (span->trace_id_high)
        at = json_put_hex(at, span->trace_id_high);
    at = json_put_hex(at, span->trace_id);
    at = JSON_PUT_LITERAL(at, "\",\"id\":\"");
    at = json_put_hex(at, span->id);
    if (span->parent_id && span->parent_id != span->id) {
        at = JSON_PUT_LITERAL(at, "\",\"parentId\":\"");
        at = json_put_hex(at, span->parent_id);
    }
    *at++ = '"';
    return at;
}

static char *write_kind(char *at, enum span_kind kind)
{
    switch (kind) {
    case SPAN_CLIENT:
        return JSON_PUT_LITERAL(at, ",\"kind\":\"CLIENT\"");
    case SPAN_SERVER:
        return JSON_PUT_LITERAL(at, ",\"kind\":\"SERVER\"");
    case SPAN_PRODUCER:
        return JSON_PUT_LITERAL(at, ",\"kind\":\"PRODUCER\"");
    case SPAN_CONSUMER:
        return JSON_PUT_LITERAL(at, ",\"kind\":\"CONSUMER\"");
    case SPAN_LOCAL:
        break;
    }
    return at;
}

/* Rounds the start down and the end up: a span that encloses another one in nanoseconds does so in
 * microseconds, too. */
static char *write_times(char *at, struct zipkin_json *encoder, const struct span *span)
{
    const int64_t start = floor_us(span->start_ns);
    const int64_t end = ceil_us(span->end_ns);

    if (start <= 0)
        return at;
    at = JSON_PUT_LITERAL(at, ",\"timestamp\":");
    at = json_put_time(at, &encoder->last_time, start);
    at = JSON_PUT_LITERAL(at, ",\"duration\":");
    return json_put_integer(at, end > start ? end - start : 1);
}

static size_t endpoint_size_limit(const struct endpoint *endpoint)
{
    return 256 + JSON_STRING_MAX(encoder_least(endpoint->service.length, LIMIT_NAME)) +
           JSON_STRING_MAX(sizeof(endpoint->ipv4)) + JSON_STRING_MAX(sizeof(endpoint->ipv6));
}

static char *write_member(char *at, const char *name, struct text value, bool *cut)
{
    if (!value.length)
        return at;
    at = text_copy(at, text_of(name));
    at = json_put_string(at, value, LIMIT_NAME, '|', cut);
    *at++ = ',';
    return at;
}

static char *write_endpoint(char *at, const struct endpoint *endpoint, bool *cut)
{
    *at++ = '{';
    at = write_member(at, "\"serviceName\":", endpoint->service, cut);
    at = write_member(at, "\"ipv4\":", text_of(endpoint->ipv4), cut);
    at = write_member(at, "\"ipv6\":", text_of(endpoint->ipv6), cut);
    if (endpoint->port) {
        at = JSON_PUT_LITERAL(at, "\"port\":");
        at = json_put_integer(at, endpoint->port);
        *at++ = ',';
    }
    if (at[-1] == ',')
        at--;
    *at++ = '}';
    return at;
}

/* Returns NULL when out of memory. */
static const struct endpoint_json *endpoint_json(struct zipkin_json *encoder,
                                                 const struct endpoint *endpoint)
{
    /* the upper bits of the product, because the lower bits of addresses are mostly equal */
    const uint64_t spread = (uint64_t)(uintptr_t)endpoint * UINT64_C(0x9e3779b97f4a7c15);
    struct endpoint_json *cached = &encoder->endpoints[spread >> (64 - ENDPOINTS_LOG2)];

    if (cached->of == endpoint)
        return cached;
    if (!ARRAY_FITS(cached->json, cached->room, endpoint_size_limit(endpoint)))
        return NULL;
    cached->cut = false;
    cached->length = (size_t)(write_endpoint(cached->json, endpoint, &cached->cut) - cached->json);
    cached->of = endpoint;
    return cached;
}

static bool has_room(const struct json_writer *writing, const char *at)
{
    return (size_t)(at - writing->start) < LIMIT_SPAN;
}

/* Writes "queue full" of severity warning as "queue full [warning]". */
static char *write_severity(char *at, struct json_writer *writing, struct text severity)
{
    char *const start = at;

    at[-1] = ' ';
    at = json_put_string(at, severity, LIMIT_KEY, '/', &writing->cut);
    *start = '[';
    at[-1] = ']';
    *at++ = '"';
    return at;
}

static char *write_annotation(char *at, struct json_writer *writing, int64_t us,
                              const struct span_entry *entry)
{
    const struct text severity = span_entry_key(entry);

    at = JSON_PUT_LITERAL(at, "{\"timestamp\":");
    at = json_put_time(at, &writing->encoder->last_time, us);
    at = JSON_PUT_LITERAL(at, ",\"value\":");
    at = json_put_string(at, span_entry_value(entry), LIMIT_VALUE, '/', &writing->cut);
    if (severity.length)
        at = write_severity(at, writing, severity);
    return JSON_PUT_LITERAL(at, "},");
}

static char *write_annotations(char *at, struct json_writer *writing)
{
    char *start = at;
    unsigned count = 0;

    at = JSON_PUT_LITERAL(at, ",\"annotations\":[");
    SPAN_FOR_EACH_ENTRY(writing->span, entry)
    {
        int64_t us;

        if (entry->type != SPAN_ANNOTATION || is_implied(writing->span, entry))
            continue;
        us = floor_us(entry->integer);
        if (us > 0 && count < LIMIT_ANNOTATIONS && has_room(writing, at)) {
            at = write_annotation(at, writing, us, entry);
            count++;
        } else {
            writing->annotations_left_out++;
        }
    }
    if (count == 0)
        return start;
    at[-1] = ']';
    return at;
}

/* Ends a key in quotes, from start to at, and makes it unique in its object. */
static char *end_key(struct tag_keys *keys, char *start, char *at)
{
    at = tag_keys_add(keys, start + 1, at - 1);
    *at++ = '"';
    return at;
}

static char *write_tag_key(char *at, struct json_writer *writing, struct tag_keys *keys,
                           struct text key)
{
    char *start = at;

    if (is_reserved(key) && !writing->span->is_foreign) {
        at = json_put_string(at + sizeof(RESERVED_PREFIX) - 1, key, LIMIT_KEY, '|', &writing->cut);
        (void)JSON_PUT_LITERAL(start, "\"" RESERVED_PREFIX);
    } else {
        at = json_put_string(at, key, LIMIT_KEY, '|', &writing->cut);
    }
    return end_key(keys, start, at);
}

/* Writes a link in the form of an OpenTelemetry collector: trace, span, state, attributes, number
 * of dropped attributes. */
static char *write_link(char *at, struct json_writer *writing, struct tag_keys *keys,
                        const struct span_entry *entry)
{
    const struct span_link link = span_entry_link(entry);
    const struct text rest = entry->key_length ? span_entry_key(entry) : text_of("|{}|0");
    char *start = at, *end;

    at = JSON_PUT_LITERAL(at, "\"" LINK_PREFIX);
    at = json_put_integer(at, writing->links++);
    *at++ = '"';
    at = end_key(keys, start, at);
    *at++ = ':';
    /* the bar before `rest` replaces its quote */
    end = json_put_string(at + 1 + 2 * 16 + 1 + 16, rest, LIMIT_VALUE, '|', &writing->cut);
    *at++ = '"';
    at = json_put_hex(at, link.trace_id_high);
    at = json_put_hex(at, link.trace_id);
    *at++ = '|';
    at = json_put_hex(at, link.span_id);
    *at = '|';
    *end++ = ',';
    return end;
}

static char *write_tag(char *at, struct json_writer *writing, struct tag_keys *keys,
                       const struct span_entry *entry)
{
    if (entry->type == SPAN_LINK)
        return write_link(at, writing, keys, entry);
    at = write_tag_key(at, writing, keys, span_entry_key(entry));
    *at++ = ':';
    if (entry->type == SPAN_TAG_INTEGER) {
        *at++ = '"';
        at = json_put_integer(at, entry->integer);
        *at++ = '"';
    } else {
        at = json_put_string(at, span_entry_value(entry), LIMIT_VALUE, '|', &writing->cut);
    }
    *at++ = ',';
    return at;
}

static char *write_left_out(char *at, const struct json_writer *writing, struct tag_keys *keys)
{
    char *start = at;

    at = JSON_PUT_LITERAL(at, ZIPKIN_LEFT_OUT);
    at = end_key(keys, start, at);
    at = JSON_PUT_LITERAL(at, ":\"annotations: ");
    at = json_put_integer(at, writing->annotations_left_out);
    at = JSON_PUT_LITERAL(at, ", tags: ");
    at = json_put_integer(at, writing->tags_left_out);
    return JSON_PUT_LITERAL(at, "\",");
}

static char *write_tags(char *at, struct json_writer *writing)
{
    char *start = at;
    struct tag_keys keys;

    keys.count = 0;
    keys.seed = writing->encoder->seed;
    at = JSON_PUT_LITERAL(at, ",\"tags\":{");
    SPAN_FOR_EACH_ENTRY(writing->span, entry)
    {
        if (entry->type == SPAN_ANNOTATION || entry->type >= SPAN_ORIGIN)
            continue;
        if (keys.count < LIMIT_TAGS && has_room(writing, at))
            at = write_tag(at, writing, &keys, entry);
        else
            writing->tags_left_out++;
    }
    if (writing->annotations_left_out || writing->tags_left_out) {
        at = write_left_out(at, writing, &keys);
        writing->cut = true;
    }
    if (keys.count == 0)
        return start;
    at[-1] = '}';
    return at;
}

/* Returns the upper limit of a span's size. Counts the log as text: escaping makes at most six
 * bytes of one byte. So an entry's header counts six times its size, which exceeds the bytes around
 * key and value. */
static size_t zipkin_size_limit(const struct span *span)
{
    const size_t fixed = 512 + endpoint_size_limit(span->endpoint) +
                         (span->remote ? endpoint_size_limit(span->remote) : 0);
    const size_t most = LIMIT_SPAN + 2 * JSON_STRING_MAX(LIMIT_KEY + LIMIT_VALUE);

    static_assert(6 * sizeof(struct span_entry) >= 128, "the header makes room for the rest");
    return fixed + JSON_STRING_MAX(encoder_least(span->name_length, LIMIT_NAME)) +
           encoder_least(JSON_STRING_MAX(span->log_length - span->first_entry), most);
}

static char *write_cached(char *at, const struct endpoint_json *endpoint,
                          struct json_writer *writing)
{
    writing->cut |= endpoint->cut;
    return json_put_bytes(at, endpoint->json, endpoint->length);
}

/* Writes the first endpoint before the lookup of the second, which may replace the first endpoint
 * in the table. Returns NULL when out of memory. */
static char *write_endpoints(char *at, struct json_writer *writing)
{
    const struct span *span = writing->span;
    const struct endpoint_json *endpoint = endpoint_json(writing->encoder, span->endpoint);

    if (!endpoint)
        return NULL;
    at = JSON_PUT_LITERAL(at, ",\"localEndpoint\":");
    at = write_cached(at, endpoint, writing);
    if (!span->remote)
        return at;
    endpoint = endpoint_json(writing->encoder, span->remote);
    if (!endpoint)
        return NULL;
    at = JSON_PUT_LITERAL(at, ",\"remoteEndpoint\":");
    return write_cached(at, endpoint, writing);
}

static bool zipkin_encode(struct encoder *encoder, struct buffer *buffer, const struct span *span,
                          uint64_t *group, bool *cut)
{
    struct zipkin_json *zipkin = (struct zipkin_json *)encoder;
    struct json_writer writing = {.span = span, .encoder = zipkin};
    char *at;

    (void)group;
    if (!buffer_reserve(buffer, zipkin_size_limit(span)))
        return false;
    writing.start = at = buffer->data + buffer->length;
    at = write_ids(at, span);
    if (span->name_length) {
        at = JSON_PUT_LITERAL(at, ",\"name\":");
        at = json_put_string(at, span_name(span), LIMIT_NAME, '|', &writing.cut);
    }
    at = write_kind(at, span->kind);
    at = write_times(at, zipkin, span);
    at = write_endpoints(at, &writing);
    if (!at)
        return false;
    if (span->debug)
        at = JSON_PUT_LITERAL(at, ",\"debug\":true");
    if (span->shared)
        at = JSON_PUT_LITERAL(at, ",\"shared\":true");
    at = write_annotations(at, &writing);
    at = write_tags(at, &writing);
    *at++ = '}';
    buffer->length = (size_t)(at - buffer->data);
    *cut = writing.cut;
    return true;
}

/* Reads 16 or 32 digits, up to the quote. */
static void zipkin_trace_of(struct text span, uint64_t id[2])
{
    const size_t before = strlen("{\"traceId\":\"");
    const char *quote =
        span.length > before ? memchr(span.data + before, '"', span.length - before) : NULL;

    if (!quote ||
        !hex_read_trace((struct text){span.data + before, (size_t)(quote - span.data) - before},
                        &id[0], &id[1]))
        id[0] = id[1] = 0;
}

static void zipkin_json_free(struct encoder *encoder)
{
    struct zipkin_json *zipkin = (struct zipkin_json *)encoder;

    for (unsigned i = 0; i < ENDPOINTS; i++)
        free(zipkin->endpoints[i].json);
    free(zipkin);
}

/* The ids come first in a unit. */
static void zipkin_describe(struct text unit, char *line, size_t size)
{
    const size_t length = encoder_least(unit.length, 60);

    snprintf(line, size, "%.*s...", (int)length, unit.data);
}

static struct encoder *zipkin_json_encoder_new(void)
{
    struct zipkin_json *zipkin = calloc(1, sizeof(*zipkin));

    if (!zipkin)
        return NULL;
    zipkin->base = (struct encoder){
        .open = {"[", 1},
        .separator = {",", 1},
        .close = {"]", 1},
        .encode = zipkin_encode,
        .describe = zipkin_describe,
        .trace_of = zipkin_trace_of,
        .free = zipkin_json_free,
    };
    zipkin->seed = hash_seed(zipkin);
    return &zipkin->base;
}

/* Zipkin sends 202. Other collectors of its format send 200 with an empty body or JSON. */
static bool zipkin_is_answer(long status, struct text type, struct text body)
{
    const char first = protocol_first_byte(body);

    return status == 202 || !first || ((first == '{' || first == '[') && !protocol_is_page(type));
}

/* The OpenTelemetry collector sends 500 when its queue is full. So the cause of 500, as of 408, may
 * be the batch or the collector. The cause of the other statuses in `again` is the collector. */
const struct protocol zipkin_protocol = {
    .format = FORMAT_ZIPKIN,
    .name = "zipkin",
    .peer = "a Zipkin collector",
    .endpoint = "http://localhost:9411" ZIPKIN_PATH,
    .path = ZIPKIN_PATH,
    .content_type = "application/json",
    .empty_batch = {"[]", 2},
    .is_answer = zipkin_is_answer,
    .again = (const short[]){408, 429, 500, 502, 503, 504, 0},
    .suspect = (const short[]){408, 500, 0},
    .file_open = {"[\n", 2},
    .file_joint = {",\n", 2},
    .file_close = {"\n]\n", 3},
    .encoder_new = zipkin_json_encoder_new,
};

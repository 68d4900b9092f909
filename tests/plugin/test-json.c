/*
 * The Zipkin encoder: the JSON of a span, for ordinary spans and for hostile ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/encode/json.h"
#include "babeltrace-plugin/encode/encoder.h"

#include "check.h"
#include "zipkin_rules.h"

#include <inttypes.h>
#include <time.h>

static const struct text none;
static struct encoder *encoder;
static struct endpoint endpoint;
static struct span span;
static struct buffer buffer;
static bool cut;

#define T0 INT64_C(1735732800123456789)

/* A literal with any bytes. */
#define JSON_BYTES(literal) ((struct text){(literal), sizeof(literal) - 1})

static void begin(void)
{
    /* a new encoder, because the endpoint changes */
    encoder = zipkin_protocol.encoder_new();
    endpoint = (struct endpoint){.service = text_of("osd.7"), .ipv4 = "10.0.0.1", .port = 6800};
    span = (struct span){
        .trace_id = 0xabc,
        .id = 0xdef,
        .endpoint = &endpoint,
        .start_ns = T0,
        .end_ns = T0 + MS,
    };
    CHECK(span_set_name(&span, text_of("write")));
}

static void annotate(struct text value, int64_t time_ns)
{
    CHECK(span_add(&span, SPAN_ANNOTATION, none, value, time_ns));
}

static void tag(struct text key, struct text value)
{
    CHECK(span_add(&span, SPAN_TAG_TEXT, key, value, 0));
}

static void test_buffer_limit(void)
{
    struct buffer small = {.limit = 5000};

    CHECK(buffer_reserve(&small, 4097));
    small.length = 4097;
    CHECK(buffer_reserve(&small, 903));
    CHECK(!buffer_reserve(&small, 904));
    buffer_free(&small);
}

/* Returns the span as a decoder sees it, after a check that every decoder accepts it. The caller
 * frees. */
static json_t *encoded(void)
{
    json_error_t error;
    const char *fault;
    json_t *json;

    buffer.length = 0;
    cut = false;
    CHECK(encoder->encode(encoder, &buffer, &span, NULL, &cut));
    CHECK(buffer_reserve(&buffer, 1));
    buffer.data[buffer.length] = '\0';
    fault = text_fault(buffer.data, buffer.length);
    json = span_load(buffer.data, buffer.length, &error);
    if (!fault)
        fault = json ? span_fault(json) : error.text;
    if (fault)
        fprintf(stderr, "%s: %.400s\n", fault, buffer.data);
    CHECK(!fault);
    encoder->free(encoder);
    free(span.log);
    return json;
}

static void becomes(const char *expected)
{
    json_decref(encoded());
    CHECK_TEXT(buffer.data, expected);
}

static const char *tag_of(json_t *json, const char *key)
{
    const char *value = json_string_value(json_object_get(json_object_get(json, "tags"), key));

    return value ? value : "(none)";
}

static void test_typical(void)
{
    begin();
    span.parent_id = UINT64_C(0x8000000000000001);
    span.kind = SPAN_CLIENT;
    annotate(text_of("cs"), T0);
    annotate(text_of("queued"), T0 + MS / 2);
    annotate(text_of("cr"), T0 + MS);
    tag(text_of("object"), text_of("rbd.1"));
    CHECK(span_add(&span, SPAN_TAG_INTEGER, text_of("length"), none, -4096));
    becomes("{\"traceId\":\"0000000000000abc\",\"id\":\"0000000000000def\",\"parentId\":"
            "\"8000000000000001\",\"name\":\"write\",\"kind\":\"CLIENT\",\"timestamp\":"
            "1735732800123456,\"duration\":1001,\"localEndpoint\":{\"serviceName\":\"osd.7\","
            "\"ipv4\":\"10.0.0.1\",\"port\":6800},\"annotations\":[{\"timestamp\":"
            "1735732800123956,\"value\":\"queued\"}],\"tags\":{\"object\":\"rbd.1\",\"length\":"
            "\"-4096\"}}");
}

/* Fields that the original's events never have. */
static void test_span_api(void)
{
    static struct endpoint peer = {.ipv6 = "2001:db8::2", .port = 6789};

    begin();
    peer.service = text_of("mon");
    span.trace_id_high = UINT64_C(0xfedcba9876543210);
    span.kind = SPAN_PRODUCER;
    span.remote = &peer;
    span.debug = true;
    span.shared = true;
    annotate(text_of("cs"), T0);
    becomes(
        "{\"traceId\":\"fedcba98765432100000000000000abc\",\"id\":\"0000000000000def\",\"name\":"
        "\"write\",\"kind\":\"PRODUCER\",\"timestamp\":1735732800123456,\"duration\":1001,"
        "\"localEndpoint\":{\"serviceName\":\"osd.7\",\"ipv4\":\"10.0.0.1\",\"port\":6800},"
        "\"remoteEndpoint\":{\"serviceName\":\"mon\",\"ipv6\":\"2001:db8::2\",\"port\":6789},"
        "\"debug\":true,\"shared\":true,\"annotations\":[{\"timestamp\":1735732800123456,\"value\":"
        "\"cs\"}]}");
}

static void test_least(void)
{
    begin();
    CHECK(span_set_name(&span, none));
    endpoint = (struct endpoint){.service = none};
    span.parent_id = span.id;
    span.start_ns = span.end_ns = -1;
    becomes("{\"traceId\":\"0000000000000abc\",\"id\":\"0000000000000def\",\"localEndpoint\":{}}");
}

static void test_times(void)
{
    begin();
    span.start_ns = 1000;
    span.end_ns = 1000;
    annotate(text_of("first microsecond"), 1999);
    annotate(text_of("last"), INT64_MAX);
    annotate(text_of("shorter than the one before"), 1234567890);
    becomes("{\"traceId\":\"0000000000000abc\",\"id\":\"0000000000000def\",\"name\":\"write\","
            "\"timestamp\":1,\"duration\":1,\"localEndpoint\":{\"serviceName\":\"osd.7\",\"ipv4\":"
            "\"10.0.0.1\",\"port\":6800},\"annotations\":[{\"timestamp\":1,\"value\":"
            "\"first microsecond\"},{\"timestamp\":9223372036854775,\"value\":\"last\"},"
            "{\"timestamp\":1234567,\"value\":\"shorter than the one before\"}]}");
}

/* Every number of digits, both signs, against printf. */
static void test_integers(void)
{
    uint64_t state = 1;

    for (int round = 0; round < 200000; round++) {
        char expected[32], actual[JSON_INTEGER_MAX + 1];
        struct json_time last = {0};
        int64_t value;

        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        value = (int64_t)(state >> (round % 64));
        if (round % 2)
            value = -value;
        if (round < 40) {
            /* about each power of ten */
            value = 1;
            for (int i = 0; i < round / 2; i++)
                value = (int64_t)((uint64_t)value * 10);
            value -= round % 2;
        }
        snprintf(expected, sizeof(expected), "%" PRId64, value);
        *json_put_integer(actual, value) = '\0';
        if (strcmp(expected, actual) != 0)
            CHECK_TEXT(actual, expected);
        *json_put_time(actual, &last, value) = '\0';
        if (strcmp(expected, actual) != 0)
            CHECK_TEXT(actual, expected);
        snprintf(expected, sizeof(expected), "%016" PRIx64, (uint64_t)value);
        *json_put_hex(actual, (uint64_t)value) = '\0';
        if (strcmp(expected, actual) != 0)
            CHECK_TEXT(actual, expected);
    }
    {
        char actual[JSON_INTEGER_MAX + 1];

        *json_put_integer(actual, INT64_MIN) = '\0';
        CHECK_TEXT(actual, "-9223372036854775808");
    }
}

/* Any byte at any place of texts of any length comes back unchanged. */
static void test_every_byte_at_every_place(void)
{
    for (size_t length = 1; length <= 40; length++) {
        for (int byte = 1; byte < 0x80; byte++) {
            for (size_t place = 0; place < length; place++) {
                char text[40], written[JSON_STRING_MAX(40)];
                bool ignored;
                json_t *json;
                const char *end;

                memset(text, 'x', sizeof(text));
                text[place] = (char)byte;
                end = json_put_string(written, (struct text){text, length}, 40, '|', &ignored);
                json = json_loadb(written, (size_t)(end - written), JSON_DECODE_ANY, NULL);
                if (json_string_length(json) != length ||
                    memcmp(json_string_value(json), text, length) != 0) {
                    fprintf(stderr, "byte %d at %zu of %zu\n", byte, place, length);
                    CHECK(!"round trip");
                }
                json_decref(json);
            }
        }
    }
}

static void test_utf8(void)
{
    static const struct {
        struct text given;
        const char *expected;
    } cases[] = {
        {JSON_BYTES("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x99"),
         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x99"},
        {JSON_BYTES("a\0b"), "a\xef\xbf\xbd"
                             "b"},
        {JSON_BYTES("\xff"), "\xef\xbf\xbd"},
        {JSON_BYTES("a\xc3"), "a\xef\xbf\xbd"},                               /* cut short */
        {JSON_BYTES("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
        {JSON_BYTES("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* surrogate */
        {JSON_BYTES("\xf0\x9f\x90."), "\xef\xbf\xbd."},                       /* cut, then text */
        {JSON_BYTES("\xf4\x90\x80\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {JSON_BYTES("\xe2\x82\xe2\x82\xac"), "\xef\xbf\xbd\xe2\x82\xac"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *json;

        begin();
        tag(text_of("text"), cases[i].given);
        json = encoded();
        CHECK_TEXT(tag_of(json, "text"), cases[i].expected);
        json_decref(json);
    }
}

static void test_receivers_traps(void)
{
    json_t *json;

    begin();
    annotate(text_of("a|b|c"), T0 + 1000);
    tag(text_of("binaryAnnotations"), text_of("x|y"));
    tag(text_of("v"), text_of("binaryAnnotations"));
    tag(text_of("span.kind"), text_of("client"));
    tag(text_of("otlp.link.0"), text_of("z"));
    json = encoded();
    CHECK_TEXT(json_string_value(json_object_get(
                   json_array_get(json_object_get(json, "annotations"), 0), "value")),
               "a/b/c");
    CHECK_TEXT(tag_of(json, "binaryAnnotations"), "x|y");
    CHECK_TEXT(tag_of(json, "v"), "binaryAnnotations");
    CHECK_TEXT(tag_of(json, "blkin.span.kind"), "client");
    CHECK_TEXT(tag_of(json, "blkin.otlp.link.0"), "z");
    json_decref(json);
}

/* Keys that a collector would move from one span of a request to all of its service. */
static void test_resource_keys(void)
{
    static const char *const taken[] = {"host.name",
                                        "process.pid",
                                        "device.id",
                                        "service.version",
                                        "os.type",
                                        "k8s.pod.uid",
                                        "container.id",
                                        "cloud.region",
                                        "telemetry.sdk.name",
                                        "otel.library.name",
                                        "aws.ecs.task.arn",
                                        "faas.id",
                                        "deployment.environment",
                                        "webengine.name",
                                        "w3c.tracestate"};
    static const char *const free[] = {"host",       "hostname", "processes.n", "devices",
                                       "osd.epoch",  "object",   "cloud",       "k8",
                                       "span.kinds", "otel"};
    const size_t taken_count = sizeof(taken) / sizeof(taken[0]);
    char renamed[64];
    json_t *json;

    begin();
    for (size_t i = 0; i < taken_count; i++)
        tag(text_of(taken[i]), text_of("x"));
    for (size_t i = 0; i < sizeof(free) / sizeof(free[0]); i++)
        tag(text_of(free[i]), text_of("y"));
    json = encoded();
    for (size_t i = 0; i < taken_count; i++) {
        snprintf(renamed, sizeof(renamed), "blkin.%s", taken[i]);
        CHECK_TEXT(tag_of(json, renamed), "x");
        CHECK(!json_object_get(json_object_get(json, "tags"), taken[i]));
    }
    for (size_t i = 0; i < sizeof(free) / sizeof(free[0]); i++)
        CHECK_TEXT(tag_of(json, free[i]), "y");
    json_decref(json);
}

static const char *annotation_of(json_t *json, size_t i)
{
    return json_string_value(
        json_object_get(json_array_get(json_object_get(json, "annotations"), i), "value"));
}

/* Severities stand behind the text; info and the original's annotations have none. */
static void test_severities(void)
{
    json_t *json;

    begin();
    CHECK(span_add(&span, SPAN_ANNOTATION, text_of("warning"), text_of("queue full"), T0));
    CHECK(span_add(&span, SPAN_ANNOTATION, text_of(""), text_of("queued"), T0));
    CHECK(span_add(&span, SPAN_ANNOTATION, text_of("err"), text_of(""), T0));
    CHECK(span_add(&span, SPAN_ANNOTATION, text_of("debug"), text_of("a|\"Annotations"), T0));
    CHECK(span_add(&span, SPAN_ANNOTATION, text_of("\"|\\\x01\xff"), text_of("any bytes"), T0));
    json = encoded();
    CHECK_TEXT(annotation_of(json, 0), "queue full [warning]");
    CHECK_TEXT(annotation_of(json, 1), "queued");
    CHECK_TEXT(annotation_of(json, 2), " [err]");
    CHECK_TEXT(annotation_of(json, 3), "a/\"Annotations [debug]");
    json_decref(json);
}

/* No value is lost, even if the number that makes a key unique is a key already. */
static void test_repeated_keys(void)
{
    static const char *const keys[] = {"k", "k#2", "k", "k", "k#2", "blkin.span.kind", "span.kind"};
    json_t *json;

    begin();
    for (int64_t i = 0; i < 7; i++)
        CHECK(span_add(&span, SPAN_TAG_INTEGER, text_of(keys[i]), none, i));
    json = encoded();
    CHECK(json_object_size(json_object_get(json, "tags")) == 7);
    CHECK_TEXT(tag_of(json, "k"), "0");
    CHECK_TEXT(tag_of(json, "k#2"), "1");
    CHECK_TEXT(tag_of(json, "k#3"), "2");
    CHECK_TEXT(tag_of(json, "k#4"), "3");
    CHECK_TEXT(tag_of(json, "k#2#2"), "4");
    CHECK_TEXT(tag_of(json, "blkin.span.kind#2"), "6");
    json_decref(json);
}

/* The maximum of keys, all equal, or made to collide. */
static void test_many_keys(bool alike)
{
    json_t *json;
    char key[16];

    begin();
    for (unsigned i = 0; i < LIMIT_TAGS; i++) {
        if (alike || i % 2 == 0)
            strcpy(key, "k");
        else
            snprintf(key, sizeof(key), "k#%u", i / 2 + 2);
        CHECK(span_add(&span, SPAN_TAG_INTEGER, text_of(key), none, i));
    }
    json = encoded();
    CHECK(!cut);
    CHECK(json_object_size(json_object_get(json, "tags")) == LIMIT_TAGS);
    json_decref(json);
}

static void test_cut_texts(void)
{
    static char huge[LIMIT_VALUE + 1000];
    char expected[64];
    const char *value;
    json_t *json;

    memset(huge, 'x', sizeof(huge));
    memcpy(huge + LIMIT_KEY - 3, "\xf0\x9f\x90\x99", 4); /* the limit is within this character */
    begin();
    annotate((struct text){huge, LIMIT_VALUE + 1}, T0 + 1000);
    tag((struct text){huge, sizeof(huge)}, (struct text){huge, LIMIT_VALUE});
    json = encoded();
    CHECK(cut);
    value = json_string_value(
        json_object_get(json_array_get(json_object_get(json, "annotations"), 0), "value"));
    snprintf(expected, sizeof(expected), "xx...[%u of %u bytes]", LIMIT_VALUE, LIMIT_VALUE + 1);
    CHECK_TEXT(value + LIMIT_VALUE - 2, expected);
    snprintf(expected, sizeof(expected), "x...[%u of %zu bytes]", LIMIT_KEY - 3, sizeof(huge));
    value = json_object_iter_key(json_object_iter(json_object_get(json, "tags")));
    CHECK_TEXT(value + LIMIT_KEY - 4, expected);
    CHECK(strlen(tag_of(json, value)) == LIMIT_VALUE);
    json_decref(json);

    begin();
    endpoint.service = (struct text){huge, sizeof(huge)};
    CHECK(span_set_name(&span, (struct text){huge, sizeof(huge)}));
    json_decref(encoded());
    CHECK(cut);
    CHECK(buffer.length < 3 * LIMIT_NAME);
}

static void test_too_many_entries(void)
{
    json_t *json;

    begin();
    for (unsigned i = 0; i < LIMIT_ANNOTATIONS + 3; i++)
        annotate(text_of("a"), T0 + i);
    for (unsigned i = 0; i < LIMIT_TAGS + 4; i++)
        tag(text_of("k"), none);
    json = encoded();
    CHECK(cut);
    CHECK(json_array_size(json_object_get(json, "annotations")) == LIMIT_ANNOTATIONS);
    CHECK(json_object_size(json_object_get(json, "tags")) == LIMIT_TAGS + 1);
    CHECK_TEXT(tag_of(json, "blkin.left_out"), "annotations: 3, tags: 4");
    json_decref(json);

    /* the word for it is taken, and an annotation's time cannot be written */
    begin();
    tag(text_of("blkin.left_out"), text_of("mine"));
    annotate(text_of("before 1970"), -5);
    json = encoded();
    CHECK_TEXT(tag_of(json, "blkin.left_out"), "mine");
    CHECK_TEXT(tag_of(json, "blkin.left_out#2"), "annotations: 1, tags: 0");
    json_decref(json);
}

/* The largest span, whose every byte becomes six. */
static void test_size_limit(void)
{
    static char control[LIMIT_VALUE];
    unsigned added = 0;

    begin();
    while (span_add(&span, SPAN_ANNOTATION, none, (struct text){control, sizeof(control)}, T0))
        added++;
    CHECK(added > 50);
    tag(text_of("last"), text_of("tag"));
    json_decref(encoded());
    CHECK(cut);
    CHECK(buffer.length < LIMIT_SPAN + 6 * LIMIT_VALUE + 4096);
}

/* Endpoints that share a slot in the encoder's table do not share a name. */
static void test_many_endpoints(void)
{
    static struct endpoint endpoints[1000];
    static char names[1000][16];

    begin();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) {
            char expected[32];

            snprintf(names[i], sizeof(names[i]), "osd.%d", i);
            endpoints[i] = (struct endpoint){.service = text_of(names[i])};
            span.endpoint = &endpoints[i];
            buffer.length = 0;
            CHECK(encoder->encode(encoder, &buffer, &span, NULL, &cut));
            snprintf(expected, sizeof(expected), "\"serviceName\":\"osd.%d\"", i);
            CHECK(memmem(buffer.data, buffer.length, expected, strlen(expected)) != NULL);
        }
    }
    json_decref(encoded());
}

int main(void)
{
    test_buffer_limit();
    test_typical();
    test_span_api();
    test_least();
    test_times();
    test_integers();
    test_every_byte_at_every_place();
    test_utf8();
    test_receivers_traps();
    test_resource_keys();
    test_severities();
    test_repeated_keys();
    test_many_keys(true);
    test_many_keys(false);
    test_cut_texts();
    test_too_many_entries();
    test_size_limit();
    test_many_endpoints();
    buffer_free(&buffer);
    return check_status();
}

/*
 * The Zipkin encoder: the JSON of hostile spans. traces/ has the JSON of ordinary ones.
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

TEST(test_buffer_limit)
{
    struct buffer small = {.limit = 5000};

    CHECK(buffer_reserve(&small, 4097));
    small.length = 4097;
    CHECK(buffer_reserve(&small, 903));
    CHECK(!buffer_reserve(&small, 904));
    buffer_free(&small);
}

/* Returns the span as a decoder sees it, and checks that every decoder accepts it. Frees what
 * begin() made. The caller frees the result. */
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

/* Encodes the span, and checks that it has exactly the expected keys and values as tags. */
static void check_tags(const char *const *expected)
{
    json_t *json = encoded();
    size_t count = 0;

    for (; *expected; expected += 2, count++)
        CHECK_TEXT(tag_of(json, expected[0]), expected[1]);
    CHECK(json_object_size(json_object_get(json, "tags")) == count);
    json_decref(json);
}

TEST(test_times)
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
TEST(test_integers)
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

/* A decoder gets each ASCII byte unchanged, at each position of texts of up to 40 bytes. */
TEST(test_every_byte_at_every_position)
{
    for (size_t length = 1; length <= 40; length++) {
        for (int byte = 1; byte < 0x80; byte++) {
            for (size_t position = 0; position < length; position++) {
                char text[40], written[JSON_STRING_MAX(40)];
                bool ignored;
                json_t *json;
                const char *end;

                memset(text, 'x', sizeof(text));
                text[position] = (char)byte;
                end = json_put_string(written, (struct text){text, length}, 40, '|', &ignored);
                json = json_loadb(written, (size_t)(end - written), JSON_DECODE_ANY, NULL);
                if (json_string_length(json) != length ||
                    memcmp(json_string_value(json), text, length) != 0) {
                    fprintf(stderr, "byte %d at %zu of %zu\n", byte, position, length);
                    CHECK(!"round trip");
                }
                json_decref(json);
            }
        }
    }
}

/* A collector would move tags with these keys from one span to all spans of the service. */
TEST(test_resource_keys)
{
    static const char taken[] =
        "host.name process.pid device.id service.version os.type k8s.pod.uid container.id "
        "cloud.region telemetry.sdk.name otel.library.name aws.ecs.task.arn faas.id "
        "deployment.environment webengine.name w3c.tracestate span.kind otlp.link.0";
    static const char free[] = "host hostname processes.n devices osd.epoch object cloud k8 "
                               "span.kinds otel binaryAnnotations";
    char keys[sizeof(taken) + sizeof(free)], renamed[64], *save = NULL;
    json_t *json;

    begin();
    (void)snprintf(keys, sizeof(keys), "%s %s", taken, free);
    for (char *key = strtok_r(keys, " ", &save); key; key = strtok_r(NULL, " ", &save))
        tag(text_of(key), text_of("x|y"));
    json = encoded();
    (void)snprintf(keys, sizeof(keys), "%s %s", taken, free);
    for (char *key = strtok_r(keys, " ", &save); key; key = strtok_r(NULL, " ", &save)) {
        const bool is_taken = key < keys + sizeof(taken);

        (void)snprintf(renamed, sizeof(renamed), "%s%s", is_taken ? "blkin." : "", key);
        CHECK_TEXT(tag_of(json, renamed), "x|y");
        CHECK(!is_taken || !json_object_get(json_object_get(json, "tags"), key));
    }
    json_decref(json);
}

/* No value is lost, even if the unique key that the encoder would make is a key of the span. */
TEST(test_repeated_keys)
{
    static const char *const keys[] = {"k", "k#2", "k", "k", "k#2", "blkin.span.kind", "span.kind"};

    begin();
    for (int64_t i = 0; i < 7; i++)
        CHECK(span_add(&span, SPAN_TAG_INTEGER, text_of(keys[i]), none, i));
    check_tags((const char *const[]){"k", "0", "k#2", "1", "k#3", "2", "k#4", "3", "k#2#2", "4",
                                     "blkin.span.kind", "5", "blkin.span.kind#2", "6", NULL});
}

/* The maximum of tags, whose keys collide with keys that the encoder makes. */
TEST(test_many_keys)
{
    json_t *json;
    char key[16];

    begin();
    for (unsigned i = 0; i < LIMIT_TAGS; i++) {
        (void)snprintf(key, sizeof(key), "k#%u", i / 2 + 2);
        key[i % 2 ? sizeof(key) - 1 : 1] = '\0'; /* every other key is "k" */
        CHECK(span_add(&span, SPAN_TAG_INTEGER, text_of(key), none, i));
    }
    json = encoded();
    CHECK(!cut);
    CHECK(json_object_size(json_object_get(json, "tags")) == LIMIT_TAGS);
    json_decref(json);
}

TEST(test_cut_texts)
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

TEST(test_too_many_entries)
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

    /* the program uses the key blkin.left_out, and Zipkin has no such time of an annotation */
    begin();
    tag(text_of("blkin.left_out"), text_of("mine"));
    annotate(text_of("before 1970"), -5);
    json = encoded();
    CHECK_TEXT(tag_of(json, "blkin.left_out"), "mine");
    CHECK_TEXT(tag_of(json, "blkin.left_out#2"), "annotations: 1, tags: 0");
    json_decref(json);
}

/* Endpoints that share a slot in the encoder's table do not share a name. */
TEST(test_many_endpoints)
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

CHECK_MAIN_WITH((void)0, buffer_free(&buffer))

/*
 * The decoder reads the OTLP of our encoder, and of other encoders. otlp/test-as-it-came.py tests
 * how foreign spans are sent to Zipkin.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/otlp/otlp_decode.h"
#include "tools/otlp/otlp_value.h"
#include "babeltrace-plugin/encode/encoder.h"

#include <stdlib.h>
#include <string.h>

static struct endpoint_table *endpoints;
static struct span read_back;
static unsigned calls;

static void on_span(void *context, const struct otlp_origin *origin, const struct otlp_span *span)
{
    struct otlp_span *found = context;

    *found = *span;
    CHECK(otlp_decode_span(origin, span, endpoints, &read_back));
    calls++;
}

static struct text tag_of(const struct span *span, const char *key, int64_t *integer)
{
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (!text_is(span_entry_key(entry), key))
            continue;
        *integer = entry->type == SPAN_TAG_INTEGER ? entry->integer : -1;
        return span_entry_value(entry);
    }
    return text_of("(none)");
}

static unsigned entries_of(const struct span *span, enum span_entry_type type)
{
    unsigned count = 0;

    SPAN_FOR_EACH_ENTRY(span, entry) count += entry->type == (uint32_t)type;
    return count;
}

TEST(test_own)
{
    struct encoder *encoder = otlp_protocol.encoder_new();
    struct buffer buffer = {.limit = 0};
    struct otlp_decoded decoded;
    struct span span = {.trace_id_high = 1,
                        .trace_id = 2,
                        .id = 3,
                        .parent_id = 4,
                        .kind = SPAN_CLIENT,
                        .start_ns = 1790000000123456789,
                        .end_ns = 1790000000123456999};
    const struct span_link link = {5, 6, 7};
    struct otlp_span found;
    uint32_t start = 0;
    int64_t integer;
    char value[32];
    bool cut;

    span.endpoint = endpoint_get(endpoints, text_of("osd.1"), text_of("127.0.0.1"), 40000);
    span.remote = endpoint_get(endpoints, text_of("osd.2"), text_of("10.0.0.2"), 6800);
    CHECK(span_set_name(&span, text_of("write")));
    CHECK(span_add(&span, SPAN_TAG_TEXT, text_of("lttng.host"), text_of("store-1"), 0));
    CHECK(span_add(&span, SPAN_TAG_TEXT, text_of("service.version"), text_of("19.2"), 0));
    CHECK(span_add(&span, SPAN_ANNOTATION, text_of(""), text_of("queued"), span.start_ns + 5));
    CHECK(span_add(&span, SPAN_TAG_TEXT, text_of("pool"), text_of("rbd"), 0));
    CHECK(span_add(&span, SPAN_TAG_INTEGER, text_of("bytes"), text_of(""), 4096));
    CHECK(span_add(&span, SPAN_TAG_TEXT, text_of("error"), text_of("EIO"), 0));
    CHECK(span_add_link(&span, &link));
    CHECK(encoder->encode(encoder, &buffer, &span, NULL, &cut));
    encoder->frame(buffer.data, &start, 0, 1, buffer.length);
    calls = 0;
    decoded =
        otlp_decode((struct text){buffer.data + start, buffer.length - start}, on_span, &found);
    CHECK(decoded.spans == 1 && !decoded.invalid && !decoded.is_broken && calls == 1);
    CHECK(found.trace_id_high == 1 && found.trace_id == 2 && found.id == 3 && found.parent_id == 4);
    CHECK(found.start_ns == span.start_ns && found.end_ns == span.end_ns);
    CHECK(found.kind == SPAN_CLIENT && found.is_error && text_is(found.name, "write"));
    CHECK(text_is(found.peer_service, "osd.2"));
    CHECK(text_is(span_name(&read_back), "write") && read_back.endpoint == span.endpoint);
    CHECK(read_back.remote == span.remote);
    CHECK(text_is(tag_of(&read_back, "pool", &integer), "rbd"));
    CHECK(text_is(tag_of(&read_back, "error", &integer), "EIO"));
    CHECK(text_is(tag_of(&read_back, "lttng.host", &integer), "store-1"));
    CHECK(text_is(tag_of(&read_back, "service.version", &integer), "19.2"));
    CHECK(entries_of(&read_back, SPAN_TAG_TEXT) + entries_of(&read_back, SPAN_TAG_INTEGER) == 5);
    (void)tag_of(&read_back, "bytes", &integer);
    CHECK(integer == 4096);
    CHECK(entries_of(&read_back, SPAN_ANNOTATION) == 1 && entries_of(&read_back, SPAN_LINK) == 1);
    SPAN_FOR_EACH_ENTRY(&read_back, entry)
    {
        if (entry->type == SPAN_ANNOTATION)
            CHECK(entry->integer == span.start_ns + 5 &&
                  text_is(span_entry_value(entry), "queued"));
        if (entry->type == SPAN_LINK)
            CHECK(span_entry_link(entry).trace_id == 6 && span_entry_link(entry).span_id == 7);
    }
    CHECK(otlp_attribute_text(found.raw, OTLP_SPAN_ATTRIBUTE, text_of("bytes"), value,
                              sizeof(value)));
    CHECK_TEXT(value, "4096");
    CHECK(otlp_attribute_text(found.raw, OTLP_SPAN_ATTRIBUTE, text_of("pool"), value, 3));
    CHECK_TEXT(value, "rb");
    CHECK(
        !otlp_attribute_text(found.raw, OTLP_SPAN_ATTRIBUTE, text_of("poo"), value, sizeof(value)));
    buffer_free(&buffer);
    encoder->free(encoder);
    free(span.log);
}

#define BYTES(...) ((struct text){(const char[]){__VA_ARGS__}, sizeof((const char[]){__VA_ARGS__})})

#define IDS \
    0x0a, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0x12, 8, 0, 0, 0, 0, 0, 0, 0, 8

/* Other encoders: the resource after its spans, a list as an attribute, and fields of newer
 * versions. */
TEST(test_others)
{
    const struct text request =
        BYTES(0x0a, 75, 0x12, 48, 0x12, 46, IDS, 0x4a, 14, 0x0a, 1, 'l', 0x12, 9, 0x2a, 7, 0x0a, 2,
              0x18, 7, 0x0a, 1, 0, 0x78, 1, 0x0a, 23, 0x0a, 21, 0x0a, 12, 's', 'e', 'r', 'v', 'i',
              'c', 'e', '.', 'n', 'a', 'm', 'e', 0x12, 5, 0x0a, 3, 'm', 'd', 's');
    const struct text zero_id = BYTES(0x0a, 32, 0x12, 30, 0x12, 28, 0x0a, 16, 0, 0, 0, 0, 0, 0, 0,
                                      0, 0, 0, 0, 0, 0, 0, 0, 9, 0x12, 8, 0, 0, 0, 0, 0, 0, 0, 0);
    struct otlp_decoded decoded;
    struct otlp_span found;
    int64_t integer;

    calls = 0;
    decoded = otlp_decode(request, on_span, &found);
    CHECK(decoded.spans == 1 && !decoded.is_broken && calls == 1);
    CHECK(found.trace_id == 9 && found.id == 8 && found.start_ns == 0 && found.name.length == 0);
    CHECK(text_is(read_back.endpoint->service, "mds") && !read_back.remote);
    CHECK(text_is(tag_of(&read_back, "l", &integer), "[7,null]"));
    decoded = otlp_decode(zero_id, on_span, &found);
    CHECK(decoded.spans == 1 && decoded.invalid == 1 && !decoded.is_broken && calls == 1);
    /* a request that is cut anywhere is invalid */
    for (size_t length = 1; length < request.length; length++)
        CHECK(otlp_decode((struct text){request.data, length}, on_span, &found).is_broken);
    CHECK(!otlp_decode((struct text){"", 0}, on_span, &found).is_broken);
}

/* A name, a time and flags that are longer than the rest of their span: they must not take bytes of
 * the next span. */
TEST(test_overlap)
{
    const struct text requests[] = {
        BYTES(0x0a, 64, 0x12, 62, 0x12, 30, IDS, 0x2a, 5, 0x12, 28, IDS),
        BYTES(0x0a, 64, 0x12, 62, 0x12, 30, IDS, 0x39, 5, 0x12, 28, IDS),
        BYTES(0x0a, 65, 0x12, 63, 0x12, 31, IDS, 0x85, 1, 1, 0x12, 28, IDS),
    };
    const struct text whole = BYTES(0x0a, 64, 0x12, 62, 0x12, 30, IDS, 0x30, 3, 0x12, 28, IDS);
    struct otlp_decoded decoded;
    struct otlp_span found;

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        calls = 0;
        decoded = otlp_decode(requests[i], on_span, &found);
        CHECK(decoded.is_broken && decoded.spans == 0 && calls == 0);
    }
    decoded = otlp_decode(whole, on_span, &found);
    CHECK(!decoded.is_broken && decoded.spans == 2 && calls == 2);
}

CHECK_MAIN_WITH(endpoints = endpoint_table_new(), endpoint_table_free(endpoints))

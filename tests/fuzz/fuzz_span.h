/*
 * Spans of any bytes, ids and times, from a fuzzer's input: for the encoders.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_FUZZ_SPAN_H
#define TESTS_FUZZ_SPAN_H

#include "babeltrace-plugin/spans/span.h"

#include "fuzz.h"

/* In few executions, slow cases: a text of 16 KiB, or more tags than the limit. */
static bool is_slow;

static char expanded[1 << 16];
static size_t expanded_length;

static struct text repeat(struct text piece, size_t copies)
{
    char *start = expanded + expanded_length;

    if (piece.length == 0 || piece.length * copies > sizeof(expanded) - expanded_length)
        return piece;
    for (size_t i = 0; i < copies; i++)
        memcpy(start + i * piece.length, piece.data, piece.length);
    expanded_length += copies * piece.length;
    return (struct text){start, copies * piece.length};
}

/* Returns a piece of the input, once or repeated; or a text that grows most in JSON. */
static struct text take_text(struct fuzz *source)
{
    static const char grows[] = "\x01\"\\\xff\x1f\xc2\xed|";
    const uint64_t length = take(source, 1);

    if (length < 200)
        return take_bytes(source, length % 48);
    if (length < 225)
        return repeat((struct text){&grows[length % (sizeof(grows) - 1)], 1},
                      take(source, 1) + (is_slow ? 17000 : 0));
    return repeat(take_bytes(source, length % 48), is_slow ? 400 : length - 223);
}

/* Returns a key: one that the encoder handles specially, or any text without a NUL. */
static struct text take_key(struct fuzz *source)
{
    static const char *const keys[] = {
        "cs",           "cr",
        "sr",           "ss",
        "span.kind",    "otlp.link.",
        "key",          "key#2",
        "error",        "",
        "Blkin|",       "blkin.left_out",
        "key#3",        "bAnnotations",
        "yAnnotations", "otel.status_code",
        "host.name",    "warning",
    };
    const uint64_t choice = take(source, 1);
    const struct text text =
        choice < 128 ? text_of(keys[choice % (sizeof(keys) / sizeof(keys[0]))]) : take_text(source);

    /* jansson and LTTng have no keys with a NUL */
    return text.length && memchr(text.data, '\0', text.length) ? text_of("NUL") : text;
}

static int64_t take_time(struct fuzz *source)
{
    static const int64_t edges[] = {0,
                                    1,
                                    999,
                                    1000,
                                    INT64_MAX,
                                    INT64_MIN,
                                    -1,
                                    INT64_MAX / 1000,
                                    -1000,
                                    -1001,
                                    INT64_MAX - 999,
                                    1700000000000000000};
    const uint64_t choice = take(source, 1);

    return choice < 128 ? edges[choice % (sizeof(edges) / sizeof(edges[0]))]
                        : (int64_t)take(source, 8);
}

static void take_endpoint(struct fuzz *source, struct endpoint *endpoint)
{
    static const char *const v4[] = {"", "10.0.0.1", "255.255.255.255"};
    static const char *const v6[] = {"", "::", "2001:db8:1111:2222:3333:4444:5555:6666"};
    const uint64_t choice = take(source, 1);

    *endpoint = (struct endpoint){.service = take_text(source), .port = (uint16_t)take(source, 2)};
    strcpy(endpoint->ipv4, v4[choice % 3]);
    if (!endpoint->ipv4[0])
        strcpy(endpoint->ipv6, v6[choice / 3 % 3]);
}

struct entries {
    size_t annotations, tags;
};

static void take_entry(struct fuzz *source, struct span *span, struct entries *entries)
{
    const uint64_t choice = take(source, 1);
    const unsigned copies = is_slow && choice > 128 ? 600 : 1;
    const struct text none = {NULL, 0};
    const struct text key = take_key(source);
    const int64_t integer = take_time(source);
    const struct text value = choice % 4 == SPAN_TAG_TEXT ? take_text(source) : none;
    const struct span_link link = {choice, (uint64_t)integer, choice};

    for (unsigned i = 0; i < copies; i++) {
        if (choice % 4 == SPAN_ANNOTATION)
            entries->annotations +=
                span_add(span, SPAN_ANNOTATION, choice & 64 ? key : none, key, integer);
        else if (choice % 4 == SPAN_LINK)
            entries->tags += span_add_link(span, &link);
        else
            entries->tags +=
                span_add(span, (enum span_entry_type)(choice % 4), key, value, integer);
    }
}

static void take_span(struct fuzz *source, struct span *span, struct endpoint *endpoints,
                      struct entries *entries)
{
    const uint64_t shape = take(source, 1);
    const int64_t a = take_time(source), b = shape & 1 ? a : take_time(source);

    *entries = (struct entries){0, 0};
    *span = (struct span){.log = span->log, .log_capacity = span->log_capacity};
    span->trace_id_high = shape & 2 ? take(source, 8) : 0;
    span->trace_id = take(source, 8);
    span->id = take(source, 8);
    span->parent_id = shape & 4 ? span->id : take(source, 8);
    span->trace_id += (span->trace_id | span->trace_id_high) == 0;
    span->id += span->id == 0;
    span->kind = (enum span_kind)(take(source, 1) % 5);
    span->debug = shape & 8;
    span->start_ns = a < b ? a : b;
    span->end_ns = a < b ? b : a;
    span->endpoint = &endpoints[shape >> 4 & 1];
    span->remote = shape & 32 ? &endpoints[shape >> 6 & 1] : NULL;
    REQUIRE(span_set_name(span, take_text(source)));
    for (uint64_t count = take(source, 1) % 12; count && source->at < source->end; count--)
        take_entry(source, span, entries);
}

#endif

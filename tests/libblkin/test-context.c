/*
 * Trace contexts: the specifications' examples, their limits, and malformed input. context_model.h
 * checks the meaning of a text; this file checks which texts are accepted, how they are written
 * again, and the fields of some examples.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "context_model.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void *exact_copy(const void *bytes, size_t length)
{
    return memcpy(exact(length), bytes, length);
}

/* Returns a buffer without slack and without a NUL. */
static char *marked_buffer(size_t size)
{
    return memset(exact(size), '#', size);
}

/* Requires that library and model agree. Returns whether they accept the text. */
static int is_accepted(int format, const char *text, size_t length)
{
    char *copy = exact_copy(text, length);
    struct blkin_context context = marked();
    int error;

    (void)snprintf(subject, sizeof(subject), "format %d: %s", format, text);
    check_text(&formats[format], copy, length);
    error = formats[format].from(&context, copy, length);
    free(copy);
    return error == 0;
}

/* ---------------------------------------------------------------- texts */

#define PARENT    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define W3C_IDS   "12345678901234567890123456789012-1234567890123456-"
#define TRACE_128 "80f198ee56343ba864fe8b2a57d3eff7"
#define TRACE_64  "64fe8b2a57d3eff7"
#define SPAN_64   "e457b5a2e4d86bd1"
#define PARENT_64 "05e3ac9a4f6e3b90"
#define ZEROS     "0000000000000000"

static const struct {
    int format;
    const char *text, *written; /* NULL: written unchanged */
} accepted[] = {
    /* W3C Trace Context, level 1, sections 3.2.3 and 3.1; level 2: the random flag */
    {TRACEPARENT, PARENT, NULL},
    {TRACEPARENT, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", NULL},
    {TRACEPARENT, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03", NULL},
    /* bits that are not defined are ignored, and not sent on */
    {TRACEPARENT, "00-" W3C_IDS "ff", "00-" W3C_IDS "03"},
    {TRACEPARENT, "00-" W3C_IDS "fc", "00-" W3C_IDS "00"},
    /* a 64-bit trace id, and ids that are zero in one half */
    {TRACEPARENT, "00-0000000000000000a3ce929d0e0e4736-0000000000000001-01", NULL},
    /* higher versions, from the W3C test suite: written as version 00 */
    {TRACEPARENT, "cc-" W3C_IDS "01", "00-" W3C_IDS "01"},
    {TRACEPARENT, "cc-" W3C_IDS "01-what-the-future-will-be-like", "00-" W3C_IDS "01"},
    {TRACEPARENT, "01-" W3C_IDS "03-", "00-" W3C_IDS "01"},
    /* B3's README, and Brave's documentation */
    {B3, TRACE_128 "-" SPAN_64 "-1-" PARENT_64, NULL},
    {B3, TRACE_128 "-" SPAN_64, NULL},
    {B3, TRACE_128 "-" SPAN_64 "-d-" PARENT_64, NULL},
    {B3, "0", NULL},
    {B3, "1", NULL},
    {B3, "d", NULL},
    /* each form with a 64-bit trace id */
    {B3, TRACE_64 "-" SPAN_64 "-0", NULL},
    {B3, TRACE_64 "-" SPAN_64 "-0-" PARENT_64, NULL},
    {B3, TRACE_64 "-" SPAN_64 "-" PARENT_64, NULL},
    /* leading zeros are dropped, a parent of zeros is no parent */
    {B3, ZEROS TRACE_64 "-" SPAN_64 "-1", TRACE_64 "-" SPAN_64 "-1"},
    {B3, TRACE_64 "-" SPAN_64 "-1-" ZEROS, TRACE_64 "-" SPAN_64 "-1"},
    {B3, TRACE_64 "-" SPAN_64 "-" ZEROS, TRACE_64 "-" SPAN_64},
    {B3, TRACE_64 ZEROS "-" SPAN_64, NULL},
};

static const struct {
    int format;
    const char *text;
} refused[] = {
    {TRACEPARENT, ""},
    {TRACEPARENT, "00-" W3C_IDS "011"},
    {TRACEPARENT, "00-" W3C_IDS "01-"},
    {TRACEPARENT, "00-123456789012345678901234567890123-1234567890123456-01"},
    {TRACEPARENT, "ff-" W3C_IDS "01"},
    {TRACEPARENT, "cc-" W3C_IDS "01.what-the-future-will-be-like"},
    {TRACEPARENT, "cc-" W3C_IDS "0x-"},
    {TRACEPARENT, " " PARENT}, /* refused: the carrier must remove white space first */
    {TRACEPARENT, "00-00000000000000000000000000000000-1234567890123456-01"},
    {TRACEPARENT, "00-12345678901234567890123456789012-0000000000000000-01"},
    {B3, "2"},
    {B3, "not-a-tumor"},
    /* parts: too few; empty; in the wrong order; an empty one at the end */
    {B3, TRACE_128},
    {B3, TRACE_64 "-" SPAN_64 "--" PARENT_64},
    {B3, TRACE_64 "-" SPAN_64 "-" PARENT_64 "-1"},
    {B3, TRACE_64 "-" SPAN_64 "-1-" PARENT_64 "-"},
    /* id lengths */
    {B3, "4fe8b2a57d3eff7-" SPAN_64 "-1"},
    {B3, "0" TRACE_128 "-" SPAN_64 "-1"},
    {B3, TRACE_64 "-457b5a2e4d86bd1-1"},
    {B3, TRACE_64 "-0" SPAN_64 "-1"},
    /* ids of zeros; white space */
    {B3, ZEROS ZEROS "-" SPAN_64 "-1"},
    {B3, TRACE_64 "-" ZEROS "-1"},
    {B3, " " TRACE_64 "-" SPAN_64 "-1"},
};

TEST(test_texts)
{
    struct blkin_context context;

    for (size_t i = 0; i < COUNT(accepted); i++) {
        const struct format *format = &formats[accepted[i].format];
        const char *text = accepted[i].text;
        const char *written = accepted[i].written ? accepted[i].written : text;
        char *buffer = marked_buffer(format->size);

        HOLDS(is_accepted(accepted[i].format, text, strlen(text)));
        HOLDS(format->from(&context, text, strlen(text)) == 0);
        HOLDS(blkin_context_has_ids(&context) == (context.span_id != 0));
        HOLDS(format->to(&context, buffer) == (int)strlen(written));
        HOLDS(memcmp(buffer, written, strlen(written) + 1) == 0);
        free(buffer);
    }
    for (size_t i = 0; i < COUNT(refused); i++)
        HOLDS(!is_accepted(refused[i].format, refused[i].text, strlen(refused[i].text)));
    /* the fields of the first text of B3 */
    HOLDS(blkin_context_from_b3(&context, accepted[9].text, strlen(accepted[9].text)) == 0);
    HOLDS(context.trace_id_high == 0x80f198ee56343ba8 && context.trace_id == 0x64fe8b2a57d3eff7);
    HOLDS(context.span_id == 0xe457b5a2e4d86bd1 && context.parent_span_id == 0x05e3ac9a4f6e3b90);
    HOLDS(context.flags == (SAMPLED | DECIDED | REMOTE) && !context.tracestate);
}

/* Replaces each character of a valid text by each byte, and cuts the text at each length. */
static void test_each_byte(int format, const char *text)
{
    const size_t length = strlen(text);
    unsigned count = 0;
    char changed[80];

    for (size_t i = 0; i < length; i++) {
        for (int c = 0; c < 256; c++) {
            memcpy(changed, text, length + 1);
            changed[i] = (char)c;
            count += (unsigned)is_accepted(format, changed, length);
        }
        memcpy(changed, text, i);
        changed[i] = '\0';
        (void)is_accepted(format, changed, i);
    }
    /* Each text has at least 48 hex digits, and 16 bytes are accepted for each: lower case only.
     * Fewer bytes are accepted elsewhere. */
    HOLDS(count > 16 * 48 && count < 17 * length);
}

TEST(test_bytes)
{
    test_each_byte(TRACEPARENT, PARENT);
    test_each_byte(B3, TRACE_128 "-" SPAN_64 "-1-" PARENT_64);
    test_each_byte(B3, TRACE_128 "-" SPAN_64 "-d");
}

static const struct blkin_context incomplete[] = {
    {.flags = REMOTE}, {.trace_id = 1, .flags = SAMPLED}, {.span_id = 1}, {.parent_span_id = 1}};

/* A context that cannot be written leaves the buffer alone. */
TEST(test_writers)
{
    struct blkin_context context = marked();
    char buffer[BLKIN_B3_SIZE] = "unchanged";

    for (int format = 0; format < (int)COUNT(formats); format++) {
        (void)snprintf(subject, sizeof(subject), "writer of format %d", format);
        for (size_t i = 0; i < COUNT(incomplete); i++)
            HOLDS(formats[format].to(&incomplete[i], buffer) == -EINVAL);
        HOLDS(formats[format].to(NULL, buffer) == -EINVAL);
        HOLDS(formats[format].to(&context, NULL) == -EINVAL);
        HOLDS(formats[format].from(&context, NULL, 1) == -EINVAL);
        HOLDS(formats[format].from(NULL, PARENT, sizeof(PARENT) - 1) == -EINVAL);
    }
    HOLDS(strcmp(buffer, "unchanged") == 0);
    context = (struct blkin_context){.trace_id_high = 1, .span_id = 1, .flags = CONTEXT_DEBUG};
    HOLDS(blkin_context_to_traceparent(&context, buffer) == 55);
    HOLDS(strcmp(buffer, "00-00000000000000010000000000000000-0000000000000001-01") == 0);
}

/* ---------------------------------------------------------------- B3 in several fields */

static struct blkin_context_text field(const char *text)
{
    return (struct blkin_context_text){text ? exact_copy(text, strlen(text)) : NULL,
                                       text ? strlen(text) : 0};
}

/* texts: trace id, span id, parent span id, sampled, flags; NULL: missing. */
static int from_fields(struct blkin_context *context, const char *const texts[5])
{
    const struct blkin_context_text all[] = {field(texts[0]), field(texts[1]), field(texts[2]),
                                             field(texts[3]), field(texts[4])};
    const struct blkin_context_b3_fields fields = {all[0], all[1], all[2], all[3], all[4]};
    int error;

    (void)snprintf(subject, sizeof(subject), "b3 fields:");
    for (int i = 0; i < 5; i++)
        (void)snprintf(subject + strlen(subject), sizeof(subject) - strlen(subject), " %s",
                       texts[i] ? texts[i] : "none");
    check_fields(&fields);
    error = blkin_context_from_b3_fields(context, &fields);
    for (int i = 0; i < 5; i++)
        free((void *)all[i].text);
    return error;
}

TEST(test_fields)
{
    static const struct {
        const char *texts[5];
        const char *single; /* the same in one header; NULL: refused */
    } cases[] = {
        {{TRACE_128, SPAN_64, PARENT_64, "1", NULL}, TRACE_128 "-" SPAN_64 "-1-" PARENT_64},
        {{TRACE_64, SPAN_64, NULL, "false", NULL}, TRACE_64 "-" SPAN_64 "-0"},
        {{TRACE_64, SPAN_64, NULL, "TRUE", NULL}, TRACE_64 "-" SPAN_64 "-1"},
        {{TRACE_64, SPAN_64, NULL, "False", NULL}, TRACE_64 "-" SPAN_64 "-0"},
        {{TRACE_64, SPAN_64, PARENT_64, NULL, NULL}, TRACE_64 "-" SPAN_64 "-" PARENT_64},
        {{TRACE_64, SPAN_64, PARENT_64, NULL, "1"}, TRACE_64 "-" SPAN_64 "-d-" PARENT_64},
        {{TRACE_64, SPAN_64, PARENT_64, "0", "1"}, TRACE_64 "-" SPAN_64 "-d-" PARENT_64},
        {{TRACE_64, SPAN_64, ZEROS, "1", "0"}, TRACE_64 "-" SPAN_64 "-1"},
        {{TRACE_64, SPAN_64, NULL, "1", "true"}, TRACE_64 "-" SPAN_64 "-1"},
        {{TRACE_64, SPAN_64, NULL, NULL, ""}, TRACE_64 "-" SPAN_64},
        {{NULL, NULL, NULL, "0", NULL}, "0"},
        {{NULL, NULL, NULL, "1", NULL}, "1"},
        {{NULL, NULL, NULL, NULL, "1"}, "d"},
        {{NULL, NULL, NULL, NULL, NULL}, NULL},
        {{NULL, NULL, NULL, NULL, "0"}, NULL},
        {{TRACE_64, NULL, NULL, "1", NULL}, NULL},
        {{"", SPAN_64, NULL, "1", NULL}, NULL},
        {{TRACE_64, SPAN_64, "", "1", NULL}, NULL},
        {{TRACE_64, SPAN_64, NULL, "d", NULL}, NULL},
        {{TRACE_64, SPAN_64, NULL, "truee", NULL}, NULL},
        {{TRACE_64, SPAN_64, NULL, "x", "1"}, NULL},
        {{TRACE_64, SPAN_64, PARENT_64 "0", "1", NULL}, NULL},
        {{TRACE_64, SPAN_64, "05E3AC9A4F6E3B90", "1", NULL}, NULL},
    };
    struct blkin_context context, single;
    struct blkin_context_b3_values values;
    struct blkin_context_b3_fields none = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const *texts = cases[i].texts, *whole = cases[i].single;

        context = marked();
        HOLDS((from_fields(&context, texts) == 0) == (whole != NULL));
        if (!whole)
            continue;
        HOLDS(blkin_context_from_b3(&single, whole, strlen(whole)) == 0);
        HOLDS(same(&context, &single));
        HOLDS(blkin_context_to_b3_fields(&context, &values) == 0);
        HOLDS(strcmp(values.trace_id, texts[0] ? texts[0] : "") == 0);
        HOLDS(strcmp(values.span_id, texts[1] ? texts[1] : "") == 0);
        HOLDS(strcmp(values.parent_span_id, context.parent_span_id ? PARENT_64 : "") == 0);
        HOLDS(strcmp(values.flags, context.flags & CONTEXT_DEBUG ? "1" : "") == 0);
        HOLDS(strcmp(values.sampled, context.flags & CONTEXT_DEBUG ? ""
                                     : !(context.flags & DECIDED)  ? ""
                                     : context.flags & SAMPLED     ? "1"
                                                                   : "0") == 0);
    }
    (void)snprintf(subject, sizeof(subject), "b3 fields: NULL");
    HOLDS(blkin_context_from_b3_fields(&context, NULL) == -EINVAL);
    HOLDS(blkin_context_from_b3_fields(NULL, &none) == -EINVAL);
    memset(&context, 0, sizeof(context));
    HOLDS(blkin_context_to_b3_fields(&context, &values) == -EINVAL);
    HOLDS(blkin_context_to_b3_fields(NULL, &values) == -EINVAL);
    HOLDS(blkin_context_to_b3_fields(&context, NULL) == -EINVAL);
}

/* ---------------------------------------------------------------- tracestate */

static struct blkin_context with_parent(void)
{
    struct blkin_context context = {0};

    HOLDS(blkin_context_from_traceparent(&context, PARENT, strlen(PARENT)) == 0);
    return context;
}

static int takes_state(const char *text)
{
    struct blkin_context context = with_parent();
    const size_t length = strlen(text);
    char *copy = exact_copy(text, length);
    int error;

    (void)snprintf(subject, sizeof(subject), "tracestate: %.500s", text);
    for (size_t room = 0; room < length + 2; room += 1 + room / 8)
        check_tracestate(copy, length, room);
    error = blkin_context_set_tracestate(&context, copy, length);
    free(copy);
    return error == 0;
}

/* Returns KEY=VALUE with these lengths of key and value. The caller frees the text. */
static char *entry_of(size_t key_length, size_t value_length)
{
    char *text = exact(key_length + value_length + 2);

    memset(text, 'z', key_length);
    text[key_length] = '=';
    memset(text + key_length + 1, 'v', value_length);
    text[key_length + 1 + value_length] = '\0';
    return text;
}

static int takes_entry(size_t key_length, size_t value_length)
{
    char *text = entry_of(key_length, value_length);
    const int takes = takes_state(text);

    free(text);
    return takes;
}

/* Does the library accept a list of this number of entries, k0=v,k1=v,..., with a text at its end?
 */
static int takes_list(int count, const char *end)
{
    char text[512] = "";

    for (int i = 0; i < count; i++)
        sprintf(text + strlen(text), "%sk%d=v", i ? "," : "", i);
    return takes_state(strcat(text, end));
}

/* every character that a value may have */
#define VALUE_CHARACTERS                                                \
    " !\"#$%&'()*+-./0123456789:;<>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`" \
    "abcdefghijklmnopqrstuvwxyz{|}~"

TEST(test_tracestate)
{
    /* clang-format off */
    static const char *const good[] = {
        "congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "foo=1 \t , \t bar=2",
        "foo=1\t \t,\t \tbar=2", " foo=1", "\tfoo=1", "foo=1 ", "foo=1\t", "\t foo=1 \t", "foo= 1",
        "foo=  a b  c", "foo=1;bar", ",", "foo=1,", ",foo=1", "foo=1,,bar=2", "foo=1, \t ,bar=2",
        "fw529a3039@dt=FfkxNDY", "0tenant@vendor=1", "1=1", "foo@=1", "foo@@bar=1", "a_-*/@z=1",
        "k=" VALUE_CHARACTERS, "foo=1,foo=1", "foo=1,bar=2,foo=3"};
    static const char *const bad[] = {
        "foo", "=", "=1", "foo=", "foo=,bar=3", "foo= ", "foo =1", "FOO=1", "foo.bar=1", "foO=1",
        "@foo=1", "_foo=1", "-foo=1", "foo=b=z", "foo=a\tb", "foo=\t1", "foo=1\n", "a=1,=",
        "a=1 ,b", "f\xc3=1", "foo=\x7f", "f=\xc3\xa9", "foo=1\r\nX: y", "foo=1 x=2,y=3="};
    /* clang-format on */
    struct blkin_context context = with_parent();
    char buffer[BLKIN_TRACESTATE_SIZE], *large;

    for (size_t i = 0; i < COUNT(good); i++)
        HOLDS(takes_state(good[i]));
    for (size_t i = 0; i < COUNT(bad); i++)
        HOLDS(!takes_state(bad[i]));
    HOLDS(takes_entry(1, 1) && takes_entry(256, 1) && takes_entry(1, 256) && takes_entry(256, 256));
    HOLDS(!takes_entry(0, 1) && !takes_entry(1, 0) && !takes_entry(257, 1) && !takes_entry(1, 257));
    HOLDS(takes_list(32, "") && takes_list(31, ","));
    HOLDS(!takes_list(33, "") && !takes_list(32, ",") && !takes_list(32, ", "));

    (void)snprintf(subject, sizeof(subject), "tracestate: other cases");
    HOLDS(blkin_context_set_tracestate(&context, "foo=1\0", 6) == -EINVAL && !context.tracestate);
    /* a list without entries removes the former tracestate */
    HOLDS(blkin_context_set_tracestate(&context, "a=b", 3) == 0 && context.tracestate);
    HOLDS(blkin_context_set_tracestate(&context, "", 0) == 0 && !context.tracestate);
    HOLDS(blkin_context_to_tracestate(&context, buffer, sizeof(buffer)) == 0 && !*buffer);
    /* reading a traceparent removes the former tracestate */
    HOLDS(blkin_context_set_tracestate(&context, "a=b", 3) == 0 && context.tracestate);
    HOLDS(blkin_context_from_traceparent(&context, PARENT, 55) == 0 && !context.tracestate);
    /* too long, although it is only white space */
    large = memset(exact(BLKIN_TRACESTATE_MAX + 1), ' ', BLKIN_TRACESTATE_MAX + 1);
    HOLDS(blkin_context_set_tracestate(&context, large, BLKIN_TRACESTATE_MAX) == 0);
    HOLDS(blkin_context_set_tracestate(&context, large, BLKIN_TRACESTATE_MAX + 1) == -EINVAL);
    free(large);
    HOLDS(blkin_context_set_tracestate(&context, NULL, 0) == -EINVAL);
    HOLDS(blkin_context_to_tracestate(&context, NULL, 10) == -EINVAL);
    HOLDS(blkin_context_to_tracestate(&context, buffer, 0) == -EINVAL);
    /* no tracestate without a traceparent */
    memset(&context, 0, sizeof(context));
    HOLDS(blkin_context_set_tracestate(&context, "a=b", 3) == -EINVAL && !context.tracestate);
    HOLDS(blkin_context_to_tracestate(&context, buffer, sizeof(buffer)) == -EINVAL);
    HOLDS(blkin_context_set_tracestate(NULL, "a=b", 3) == -EINVAL);
}

/* Lists that are too long for the buffer: see naive_truncate(). */
TEST(test_truncation)
{
    static const struct {
        const char *text;
        size_t room;
        const char *wanted;
    } cases[] = {
        {"a=1 , b=2", 9, "a=1 , b=2"}, /* a list that fits is passed on as it is */
        {"a=1 , b=2", 8, "a=1,b=2"},   /* then white space and empty members go, */
        {",, a=1 ,,b=2 \t", 7, "a=1,b=2"},
        {"a=1,b=2", 6, "a=1"}, /* then whole entries, from the end */
        {"a=1,b=2", 0, ""},
    };
    char text[1000], *large = entry_of(5, 123), *larger = entry_of(6, 200); /* 129 and 207 */
    char *small = entry_of(4, 123);                                         /* 128 */

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct blkin_context context = with_parent();
        char *buffer = marked_buffer(cases[i].room + 1);

        (void)snprintf(subject, sizeof(subject), "truncated to %zu: %s", cases[i].room,
                       cases[i].text);
        HOLDS(blkin_context_set_tracestate(&context, cases[i].text, strlen(cases[i].text)) == 0);
        HOLDS(blkin_context_to_tracestate(&context, buffer, cases[i].room + 1) ==
              (int)strlen(cases[i].wanted));
        HOLDS(strcmp(buffer, cases[i].wanted) == 0);
        free(buffer);
    }
    /* entries above 128 characters go first */
    (void)snprintf(text, sizeof(text), "a=1,%s,b=2,%s,c=3,%s", large, larger, small);
    for (size_t room = 0; room < strlen(text) + 2; room++)
        check_tracestate(text, strlen(text), room);
    free(large);
    free(larger);
    free(small);
}

/* ---------------------------------------------------------------- binary forms */

TEST(test_opencensus)
{
    /* the specification's example */
    static const unsigned char example[] = {0,   0,   75,  249, 47,  53, 119, 179, 77, 166,
                                            163, 206, 146, 157, 0,   14, 71,  54,  1,  52,
                                            240, 103, 170, 11,  169, 2,  183, 2,   1};
    struct blkin_context context = marked();
    unsigned char written[BLKIN_OPENCENSUS_SIZE];
    char bytes[40];

    HOLDS(blkin_context_from_opencensus(&context, example, 29) == 0);
    HOLDS(context.trace_id_high == 0x4bf92f3577b34da6 && context.trace_id == 0xa3ce929d000e4736);
    HOLDS(context.span_id == 0x34f067aa0ba902b7 && context.parent_span_id == 0);
    HOLDS(context.flags == (SAMPLED | DECIDED | REMOTE) && !context.tracestate);
    HOLDS(blkin_context_to_opencensus(&context, written) == 29);
    HOLDS(memcmp(written, example, 29) == 0);
    /* The last byte has the options. All its values are accepted. Without the byte, the context is
     * undecided. */
    memcpy(bytes, example, 29);
    for (int options = 0; options < 256; options++) {
        bytes[28] = (char)options;
        HOLDS(is_accepted(OPENCENSUS, bytes, 29));
    }
    for (size_t length = 0; length <= 28; length++)
        HOLDS(is_accepted(OPENCENSUS, bytes, length) == (length == 27));
    /* after the fields, only those that this version does not know */
    for (int id = 0; id < 4; id++) {
        bytes[29] = (char)id;
        HOLDS(is_accepted(OPENCENSUS, bytes, 30) == (id > 2));
    }
    bytes[27] = 3;
    HOLDS(is_accepted(OPENCENSUS, bytes, 28) && is_accepted(OPENCENSUS, bytes, 30));
}

TEST(test_packed)
{
    static const unsigned char wire[24] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
                                           0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff,
                                           0x80, 0,    0,    0,    0,    0,    0,    0x01};
    static const unsigned char zeros[24];
    struct blkin_context context = marked();
    struct blkin_trace_info_packed packed;

    (void)snprintf(subject, sizeof(subject), "packed");
    check_packed(wire, sizeof(wire));
    check_packed(zeros, sizeof(zeros));
    memcpy(&packed, wire, sizeof(wire));
    HOLDS(blkin_context_from_packed(&context, &packed) == 0);
    HOLDS(context.trace_id == 0x0001020304050607 && context.span_id == 0xf8f9fafbfcfdfeff);
    HOLDS(context.parent_span_id == 0x8000000000000001);
    HOLDS(context.flags == (SAMPLED | DECIDED | REMOTE) && !context.tracestate);

    /* a 128-bit trace id loses its high half; undecided is taken as sampled */
    context.trace_id_high = 7;
    context.flags = 0;
    memset(&packed, 0, sizeof(packed));
    HOLDS(blkin_context_to_packed(&context, &packed) == 0);
    HOLDS(memcmp(&packed, wire, sizeof(wire)) == 0);

    /* An unsampled context is packed as zeros. A child in such a trace sends a span id without a
     * trace id: this is also unsampled. */
    context.flags = DECIDED;
    HOLDS(blkin_context_to_packed(&context, &packed) == 0);
    HOLDS(memcmp(&packed, zeros, sizeof(zeros)) == 0);
    ((unsigned char *)&packed)[15] = 1;
    context = marked();
    HOLDS(blkin_context_from_packed(&context, &packed) == 0);
    HOLDS(context.flags == (DECIDED | REMOTE) && !blkin_context_has_ids(&context));
    HOLDS(context.span_id == 0 && context.parent_span_id == 0);

    /* contexts that lack an id */
    for (size_t i = 0; i < COUNT(incomplete); i++)
        HOLDS(blkin_context_to_packed(&incomplete[i], &packed) == -EINVAL);
    context = (struct blkin_context){.trace_id_high = 1, .span_id = 1};
    HOLDS(blkin_context_to_packed(&context, &packed) == -EINVAL);
    HOLDS(blkin_context_from_packed(&context, NULL) == -EINVAL);
    HOLDS(blkin_context_from_packed(NULL, &packed) == -EINVAL);
    HOLDS(blkin_context_to_packed(&context, NULL) == -EINVAL);
    HOLDS(blkin_context_to_packed(NULL, &packed) == -EINVAL);
}

/* ---------------------------------------------------------------- environment */

TEST(test_environment)
{
    struct blkin_context context = marked(), before = context, read;
    char *parent = marked_buffer(BLKIN_TRACEPARENT_VARIABLE_SIZE), *state;
    char large[BLKIN_TRACESTATE_VARIABLE_SIZE], *value;

    snprintf(subject, sizeof(subject), "environment");
    unsetenv("TRACEPARENT");
    setenv("TRACESTATE", "congo=t61rcWkgMzE", 1);
    HOLDS(blkin_context_from_environment(&context) == -ENOENT);
    setenv("TRACEPARENT", "", 1);
    HOLDS(blkin_context_from_environment(&context) == -ENOENT);
    setenv("TRACEPARENT", "00-what", 1);
    HOLDS(blkin_context_from_environment(&context) == -EINVAL);
    HOLDS(memcmp(&context, &before, sizeof(context)) == 0);
    setenv("TRACEPARENT", PARENT, 1);
    HOLDS(blkin_context_from_environment(NULL) == -EINVAL);
    HOLDS(blkin_context_from_environment(&context) == 0);
    HOLDS(context.span_id == 0x00f067aa0ba902b7 && context.flags == (SAMPLED | DECIDED | REMOTE));
    HOLDS(context.tracestate && context.tracestate_length == 17 &&
          memcmp(context.tracestate, "congo=t61rcWkgMzE", 17) == 0);
    setenv("TRACESTATE", "Not Valid", 1);
    HOLDS(blkin_context_from_environment(&context) == 0 && !context.tracestate);
    unsetenv("TRACESTATE");
    HOLDS(blkin_context_from_environment(&context) == 0 && !context.tracestate);

    /* a child reads the context that was written for it */
    HOLDS(blkin_context_set_tracestate(&context, "rojo=1,congo=2", 14) == 0);
    HOLDS(blkin_context_to_traceparent_variable(&context, parent) == 67);
    HOLDS(memcmp(parent, "TRACEPARENT=" PARENT, 68) == 0);
    HOLDS(blkin_context_to_tracestate_variable(&context, large, sizeof(large)) == 25);
    HOLDS(strcmp(large, "TRACESTATE=rojo=1,congo=2") == 0);
    putenv(parent);
    putenv(large);
    HOLDS(blkin_context_from_environment(&read) == 0);
    HOLDS(read.trace_id == context.trace_id && read.tracestate_length == 14);
    unsetenv("TRACEPARENT");
    unsetenv("TRACESTATE");

    /* shortened to the buffer; then nothing remains */
    state = marked_buffer(18);
    HOLDS(blkin_context_to_tracestate_variable(&context, state, 18) == 17);
    HOLDS(strcmp(state, "TRACESTATE=rojo=1") == 0);
    HOLDS(blkin_context_to_tracestate_variable(&context, state, 17) == 0 && !*state);
    HOLDS(blkin_context_to_tracestate_variable(&context, state, 12) == 0 && !*state);
    for (size_t size = 0; size < 12; size++)
        HOLDS(blkin_context_to_tracestate_variable(&context, state, size) == -EINVAL);
    HOLDS(blkin_context_set_tracestate(&context, "", 0) == 0);
    HOLDS(blkin_context_to_tracestate_variable(&context, state, 18) == 0 && !*state);

    /* 512 characters fit the advised size */
    value = entry_of(256, 255);
    HOLDS(strlen(value) == 512);
    HOLDS(blkin_context_set_tracestate(&context, value, 512) == 0);
    HOLDS(blkin_context_to_tracestate_variable(&context, large, sizeof(large)) == 523);
    HOLDS(strcmp(large + 11, value) == 0);

    memset(&context, 0, sizeof(context));
    memset(parent, '#', BLKIN_TRACEPARENT_VARIABLE_SIZE - 1);
    HOLDS(blkin_context_to_traceparent_variable(&context, parent) == -EINVAL && *parent == '#');
    HOLDS(blkin_context_to_tracestate_variable(&context, large, sizeof(large)) == -EINVAL);
    HOLDS(blkin_context_to_traceparent_variable(&context, NULL) == -EINVAL);
    HOLDS(blkin_context_to_tracestate_variable(&context, NULL, 100) == -EINVAL);
    free(value);
    free(state);
    free(parent);
}

CHECK_MAIN

/*
 * Trace context formats: what the specifications publish, their limits, round trips, and malformed
 * input. Inputs are heap copies without slack, so that AddressSanitizer sees a read too far.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin_context.h>
#include <zipkin_c.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not true: %s [%s]\n", __FILE__, __LINE__, #condition, \
                    subject);                                                             \
            failures++;                                                                   \
        }                                                                                 \
    } while (0)

/* what the checks are about, for the message */
static char subject[600];

#define SAMPLED BLKIN_CONTEXT_SAMPLED
#define DECIDED BLKIN_CONTEXT_DECIDED
#define DEBUG   BLKIN_CONTEXT_DEBUG
#define RANDOM  BLKIN_CONTEXT_RANDOM
#define REMOTE  BLKIN_CONTEXT_REMOTE

static void about(const char *what, const void *text, size_t length)
{
    int at = snprintf(subject, sizeof(subject), "%s: ", what);

    for (size_t i = 0; i < length && at + 5 < (int)sizeof(subject); i++) {
        unsigned char c = ((const unsigned char *)text)[i];

        at += snprintf(subject + at, sizeof(subject) - (size_t)at,
                       c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
    }
}

static void *exact_copy(const void *bytes, size_t length)
{
    void *copy = malloc(length);

    if (!copy)
        abort();
    memcpy(copy, bytes, length);
    return copy;
}

static char *repeated(char c, size_t count)
{
    char *text = malloc(count + 1);

    if (!text)
        abort();
    memset(text, c, count);
    text[count] = '\0';
    return text;
}

/* A buffer without slack and without a NUL. */
static char *marked_buffer(size_t size)
{
    char *buffer = malloc(size);

    if (!buffer)
        abort();
    memset(buffer, '#', size);
    return buffer;
}

static int same(const struct blkin_context *a, const struct blkin_context *b)
{
    return a->trace_id_high == b->trace_id_high && a->trace_id == b->trace_id &&
           a->span_id == b->span_id && a->parent_span_id == b->parent_span_id &&
           a->flags == b->flags && a->tracestate == b->tracestate &&
           a->tracestate_length == b->tracestate_length;
}

/* ---------------------------------------------------------------- parsers behind one type */

typedef int parse_function(struct blkin_context *context, const char *text, size_t length);

static int from_opencensus(struct blkin_context *context, const char *text, size_t length)
{
    return blkin_context_from_opencensus(context, text, length);
}

/* A tracestate needs a context, and must leave its ids alone. */
static int as_tracestate(struct blkin_context *context, const char *text, size_t length)
{
    const struct blkin_context before = *context;
    int error = blkin_context_set_tracestate(context, text, length);

    CHECK(context->trace_id == before.trace_id && context->span_id == before.span_id &&
          context->flags == before.flags);
    return error;
}

/* Parses a copy without slack; on error the context must be as it was. */
static int parse(parse_function *function, struct blkin_context *context, const void *bytes,
                 size_t length)
{
    char *copy = exact_copy(bytes, length);
    struct blkin_context before = *context;
    int error = function(context, copy, length);

    CHECK(error == 0 || error == -EINVAL);
    CHECK(error == 0 || memcmp(&before, context, sizeof(before)) == 0);
    if (context->tracestate == copy)
        context->tracestate = NULL;
    free(copy);
    return error;
}

static struct blkin_context marked(void)
{
    struct blkin_context context;

    memset(&context, 0x5a, sizeof(context));
    return context;
}

static int accepts(parse_function *function, const void *bytes, size_t length)
{
    struct blkin_context context = marked();

    return parse(function, &context, bytes, length) == 0;
}

static void refuses(parse_function *function, const char *what, const char *text)
{
    about(what, text, strlen(text));
    CHECK(!accepts(function, text, strlen(text)));
}

/* ---------------------------------------------------------------- traceparent */

#define PARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

struct expected {
    const char *text;
    uint64_t trace_id_high, trace_id, span_id, parent_span_id;
    uint32_t flags; /* besides REMOTE */
    const char *written;
};

static void reads_as(parse_function *function, const struct expected *expected)
{
    struct blkin_context context = marked();
    const struct blkin_context wanted = {
        .trace_id_high = expected->trace_id_high,
        .trace_id = expected->trace_id,
        .span_id = expected->span_id,
        .parent_span_id = expected->parent_span_id,
        .flags = expected->flags | REMOTE,
    };

    CHECK(parse(function, &context, expected->text, strlen(expected->text)) == 0);
    CHECK(same(&context, &wanted));
}

static void test_traceparent_valid(void)
{
    static const struct expected table[] = {
        /* level 1, 3.2.3 and 3.1 */
        {PARENT, 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 0, DECIDED | SAMPLED,
         PARENT},
        {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", 0x4bf92f3577b34da6,
         0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 0, DECIDED,
         "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 0x0af7651916cd43dd,
         0x8448eb211c80319c, 0xb7ad6b7169203331, 0, DECIDED | SAMPLED,
         "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
        /* level 2, the random flag */
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03", 0x0af7651916cd43dd,
         0x8448eb211c80319c, 0xb7ad6b7169203331, 0, DECIDED | SAMPLED | RANDOM,
         "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02", 0x0af7651916cd43dd,
         0x8448eb211c80319c, 0xb7ad6b7169203331, 0, DECIDED | RANDOM,
         "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02"},
        /* bits that are not defined are read over and not sent on */
        {"00-12345678901234567890123456789012-1234567890123456-ff", 0x1234567890123456,
         0x7890123456789012, 0x1234567890123456, 0, DECIDED | SAMPLED | RANDOM,
         "00-12345678901234567890123456789012-1234567890123456-03"},
        {"00-12345678901234567890123456789012-1234567890123456-fc", 0x1234567890123456,
         0x7890123456789012, 0x1234567890123456, 0, DECIDED,
         "00-12345678901234567890123456789012-1234567890123456-00"},
        /* a 64-bit trace id, and ids that are zero in one half */
        {"00-0000000000000000a3ce929d0e0e4736-0000000000000001-01", 0, 0xa3ce929d0e0e4736, 1, 0,
         DECIDED | SAMPLED, "00-0000000000000000a3ce929d0e0e4736-0000000000000001-01"},
        {"00-80000000000000000000000000000000-8000000000000000-00", 0x8000000000000000, 0,
         0x8000000000000000, 0, DECIDED, "00-80000000000000000000000000000000-8000000000000000-00"},
        /* higher versions, from the W3C test suite: written as version 00 */
        {"cc-12345678901234567890123456789012-1234567890123456-01", 0x1234567890123456,
         0x7890123456789012, 0x1234567890123456, 0, DECIDED | SAMPLED,
         "00-12345678901234567890123456789012-1234567890123456-01"},
        {"cc-12345678901234567890123456789012-1234567890123456-01-what-the-future-will-be-like",
         0x1234567890123456, 0x7890123456789012, 0x1234567890123456, 0, DECIDED | SAMPLED,
         "00-12345678901234567890123456789012-1234567890123456-01"},
        {"01-12345678901234567890123456789012-1234567890123456-03-", 0x1234567890123456,
         0x7890123456789012, 0x1234567890123456, 0, DECIDED | SAMPLED,
         "00-12345678901234567890123456789012-1234567890123456-01"},
        {"fe-12345678901234567890123456789012-1234567890123456-00", 0x1234567890123456,
         0x7890123456789012, 0x1234567890123456, 0, DECIDED,
         "00-12345678901234567890123456789012-1234567890123456-00"},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        struct blkin_context context = {0};
        char *buffer = marked_buffer(BLKIN_TRACEPARENT_SIZE);

        about("traceparent", table[i].text, strlen(table[i].text));
        reads_as(blkin_context_from_traceparent, &table[i]);
        CHECK(parse(blkin_context_from_traceparent, &context, table[i].text,
                    strlen(table[i].text)) == 0);
        CHECK(blkin_context_to_traceparent(&context, buffer) == 55);
        CHECK(memcmp(buffer, table[i].written, 56) == 0);
        free(buffer);
    }
}

static void test_traceparent_malformed(void)
{
    static const char *const table[] = {
        "",
        "00",
        "00-",
        /* lengths */
        "00-12345678901234567890123456789012-1234567890123456-0",
        "00-12345678901234567890123456789012-1234567890123456-011",
        "00-12345678901234567890123456789012-1234567890123456-01-",
        "00-12345678901234567890123456789012-1234567890123456-01.",
        "00-12345678901234567890123456789012-1234567890123456-01-what-the-future-will-be-like",
        "00-123456789012345678901234567890123-1234567890123456-01",
        "00-1234567890123456789012345678901-1234567890123456-01",
        "00-12345678901234567890123456789012-12345678901234567-01",
        "00-12345678901234567890123456789012-123456789012345-01",
        "00-12345678901234567890123456789012-1234567890123456-1",
        "0-12345678901234567890123456789012-1234567890123456-01",
        "000-12345678901234567890123456789012-1234567890123456-01",
        /* higher versions */
        "ff-12345678901234567890123456789012-1234567890123456-01",
        "ff-12345678901234567890123456789012-1234567890123456-01-x",
        "cc-12345678901234567890123456789012-1234567890123456-01.what-the-future-will-be-like",
        "cc-12345678901234567890123456789012-1234567890123456-0",
        "cc-12345678901234567890123456789012-1234567890123456-0x-",
        /* characters */
        ".0-12345678901234567890123456789012-1234567890123456-01",
        "0.-12345678901234567890123456789012-1234567890123456-01",
        "00-.2345678901234567890123456789012-1234567890123456-01",
        "00-1234567890123456789012345678901.-1234567890123456-01",
        "00-12345678901234567890123456789012-.234567890123456-01",
        "00-12345678901234567890123456789012-123456789012345.-01",
        "00-12345678901234567890123456789012-1234567890123456-.0",
        "00-12345678901234567890123456789012-1234567890123456-0.",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00F067AA0BA902B7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0A",
        "0A-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
        "0x4bf92f3577b34da6a3ce929d0e0e4736f-00f067aa0ba902b7-01",
        "00- bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        /* white space is the carrier's */
        " " PARENT,
        PARENT " ",
        PARENT "\n",
        /* ids of zeros */
        "00-00000000000000000000000000000000-1234567890123456-01",
        "00-12345678901234567890123456789012-0000000000000000-01",
        "cc-00000000000000000000000000000000-1234567890123456-01-x",
    };
    static const char with_nul[] = "00-4bf92f3577b34da6a3ce929d0e0e473\0-00f067aa0ba902b7-01";
    struct blkin_context context = marked();

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        refuses(blkin_context_from_traceparent, "traceparent", table[i]);
    about("traceparent", with_nul, sizeof(with_nul) - 1);
    CHECK(!accepts(blkin_context_from_traceparent, with_nul, sizeof(with_nul) - 1));
    about("traceparent: NULL", "", 0);
    CHECK(blkin_context_from_traceparent(&context, NULL, 55) == -EINVAL);
    CHECK(blkin_context_from_traceparent(NULL, PARENT, 55) == -EINVAL);
}

/*
 * A valid text with each of its characters replaced by each byte, and cut at each length. classes:
 * 'h' takes any lower-case hex digit, 's' a decision, any other character only itself.
 */
static void test_each_byte(parse_function *function, const char *text, const char *classes)
{
    size_t length = strlen(text);
    char changed[80];

    for (size_t i = 0; i < length; i++) {
        for (int c = 0; c < 256; c++) {
            int wanted = classes[i] == 'h'   ? c && strchr("0123456789abcdef", c)
                         : classes[i] == 's' ? c && strchr("01d", c)
                                             : (unsigned char)classes[i] == c;

            memcpy(changed, text, length);
            changed[i] = (char)c;
            about("each byte", changed, length);
            CHECK(accepts(function, changed, length) == (wanted != 0));
        }
    }
    for (size_t i = 0; i < length; i++) {
        about("cut", text, i);
        /* B3 is complete after the ids and after the decision */
        CHECK(accepts(function, text, i) ==
              (classes[length - 18] == 's' && (i == length - 19 || i == length - 17)));
    }
}

/* ---------------------------------------------------------------- tracestate */

static struct blkin_context with_parent(void)
{
    struct blkin_context context = {0};

    CHECK(blkin_context_from_traceparent(&context, PARENT, strlen(PARENT)) == 0);
    return context;
}

static int takes_state(const char *text)
{
    struct blkin_context context = with_parent();

    about("tracestate", text, strlen(text));
    return parse(as_tracestate, &context, text, strlen(text)) == 0;
}

/* key, "=", value of the given lengths */
static char *entry_of(const char *key, size_t key_length, size_t value_length)
{
    char *text = malloc(key_length + value_length + 2), *z = repeated('z', key_length);
    size_t named = strlen(key);

    if (!text)
        abort();
    if (named)
        memcpy(z, key, named < key_length ? named : key_length);
    sprintf(text, "%s=", z);
    memset(text + key_length + 1, 'v', value_length);
    text[key_length + 1 + value_length] = '\0';
    free(z);
    return text;
}

static int takes_entry(size_t key_length, size_t value_length)
{
    char *text = entry_of("", key_length, value_length);
    int takes = takes_state(text);

    free(text);
    return takes;
}

/* count entries k0=v,k1=v,... */
static void list_of(char *text, int count, const char *end)
{
    *text = '\0';
    for (int i = 0; i < count; i++)
        sprintf(text + strlen(text), "%sk%d=v", i ? "," : "", i);
    strcat(text, end);
}

/* every character that a value may have */
#define VALUE_CHARACTERS                                                \
    " !\"#$%&'()*+-./0123456789:;<>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`" \
    "abcdefghijklmnopqrstuvwxyz{|}~"

static void test_tracestate_valid(void)
{
    static const char *const table[] = {
        "congo=t61rcWkgMzE",
        "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
        "vendorname1=opaqueValue1,vendorname2=opaqueValue2",
        "foo=1,bar=2",
        "foo=1 \t , \t bar=2, \t baz=3",
        "foo=1\t \t,\t \tbar=2,\t \tbaz=3",
        " foo=1",
        "\tfoo=1",
        "foo=1 ",
        "foo=1\t",
        "\t foo=1 \t",
        "foo= 1",
        "foo=  a b  c",
        /* empty members */
        ",",
        "foo=1,",
        ",foo=1",
        "foo=1,,bar=2",
        "foo=1, \t ,bar=2",
        /* keys: level 1 with a tenant, and what level 2 adds */
        "fw529a3039@dt=FfkxNDY",
        "0tenant@vendor=1",
        "1=1",
        "foo@=1",
        "foo@@bar=1",
        "a_-*/@z=1",
        "k=" VALUE_CHARACTERS,
        /* a key that comes twice: others may care */
        "foo=1,foo=1",
        "foo=1,bar=2,foo=3",
    };
    struct blkin_context context = with_parent();
    char buffer[BLKIN_TRACESTATE_SIZE], list[512];

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        CHECK(takes_state(table[i]));
        context = with_parent();
        CHECK(blkin_context_set_tracestate(&context, table[i], strlen(table[i])) == 0);
        if (strcmp(table[i], ",") == 0) {
            CHECK(!context.tracestate && context.tracestate_length == 0);
            continue;
        }
        CHECK(context.tracestate == table[i] && context.tracestate_length == strlen(table[i]));
        CHECK(blkin_context_to_tracestate(&context, buffer, sizeof(buffer)) ==
              (int)strlen(table[i]));
        CHECK(strcmp(buffer, table[i]) == 0);
    }

    CHECK(takes_entry(1, 1));
    CHECK(takes_entry(256, 1));
    CHECK(takes_entry(1, 256));
    CHECK(takes_entry(256, 256));
    list_of(list, 32, "");
    CHECK(takes_state(list));
    list_of(list, 31, ",");
    CHECK(takes_state(list));

    /* without entries: none, and one that was there is gone */
    about("tracestate", "", 0);
    context = with_parent();
    CHECK(blkin_context_set_tracestate(&context, "a=b", 3) == 0 && context.tracestate);
    CHECK(blkin_context_set_tracestate(&context, "", 0) == 0 && !context.tracestate);
    CHECK(blkin_context_to_tracestate(&context, buffer, sizeof(buffer)) == 0 && !*buffer);

    /* a traceparent comes without the tracestate of the one before */
    CHECK(blkin_context_set_tracestate(&context, "a=b", 3) == 0 && context.tracestate);
    CHECK(blkin_context_from_traceparent(&context, PARENT, 55) == 0 && !context.tracestate);
}

static void test_tracestate_malformed(void)
{
    static const char *const table[] = {
        "foo",      "=",          "=1",        "foo=",           "foo=,bar=3", "foo= ",
        "foo =1",   "FOO=1",      "foo.bar=1", "foO=1",          "@foo=1",     "_foo=1",
        "-foo=1",   "foo=b=z",    "foo=a\tb",  "foo=\t1",        "foo=1\n",    "foo=1\r\nX: y",
        "foo=\x7f", "f=\xc3\xa9", "foo=1;bar", "foo=1 x=2,y=3=", "a=1,=",      "a=1 ,b",
        "f\xc3=1",
    };
    struct blkin_context context;
    char list[512], buffer[BLKIN_TRACESTATE_SIZE], *large;
    static const char nul[] = "foo=1\0";

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (strcmp(table[i], "foo=1;bar") == 0)
            CHECK(takes_state(table[i])); /* odd, but a value */
        else
            CHECK(!takes_state(table[i]));
    }
    CHECK(!takes_entry(0, 1));
    CHECK(!takes_entry(1, 0));
    CHECK(!takes_entry(257, 1));
    CHECK(!takes_entry(1, 257));
    list_of(list, 33, "");
    CHECK(!takes_state(list));
    list_of(list, 32, ",");
    CHECK(!takes_state(list));
    list_of(list, 32, ", ");
    CHECK(!takes_state(list));

    about("tracestate with NUL", "", 0);
    context = with_parent();
    CHECK(parse(as_tracestate, &context, nul, sizeof(nul) - 1) == -EINVAL);

    /* an invalid one is dropped, the context is not */
    CHECK(context.span_id == 0x00f067aa0ba902b7 && !context.tracestate);

    /* too long, though only of white space */
    large = repeated(' ', BLKIN_TRACESTATE_MAX + 1);
    CHECK(blkin_context_set_tracestate(&context, large, BLKIN_TRACESTATE_MAX) == 0);
    CHECK(blkin_context_set_tracestate(&context, large, BLKIN_TRACESTATE_MAX + 1) == -EINVAL);
    free(large);

    /* none without a traceparent */
    memset(&context, 0, sizeof(context));
    CHECK(blkin_context_set_tracestate(&context, "a=b", 3) == -EINVAL && !context.tracestate);
    CHECK(blkin_context_to_tracestate(&context, buffer, sizeof(buffer)) == -EINVAL);
    CHECK(blkin_context_set_tracestate(NULL, "a=b", 3) == -EINVAL);
    context = with_parent();
    CHECK(blkin_context_set_tracestate(&context, NULL, 0) == -EINVAL);
    CHECK(blkin_context_to_tracestate(&context, NULL, 10) == -EINVAL);
    CHECK(blkin_context_to_tracestate(&context, buffer, 0) == -EINVAL);

    /* filled in by hand, past the check */
    context.tracestate = "not a list";
    context.tracestate_length = 10;
    CHECK(blkin_context_to_tracestate(&context, buffer, 5) == -EINVAL);
}

/* The tracestate must come out like this in a buffer of room characters and the NUL. */
static void truncates(const char *text, size_t room, const char *wanted)
{
    struct blkin_context context = with_parent();
    char *buffer = marked_buffer(room + 1);

    about("truncated tracestate", text, strlen(text));
    CHECK(blkin_context_set_tracestate(&context, text, strlen(text)) == 0);
    CHECK(blkin_context_to_tracestate(&context, buffer, room + 1) == (int)strlen(wanted));
    CHECK(memcmp(buffer, wanted, strlen(wanted) + 1) == 0);
    free(buffer);
}

static void test_tracestate_truncation(void)
{
    char text[2000], wanted[2000];
    char *large = entry_of("large", 5, 123);   /* 129 characters */
    char *larger = entry_of("larger", 6, 200); /* 207 */
    char *limit = entry_of("limit", 5, 122);   /* 128: not large */

    /* all that fits is passed on as it is */
    truncates("a=1 , b=2", 9, "a=1 , b=2");
    /* then white space and empty members go */
    truncates("a=1 , b=2", 8, "a=1,b=2");
    truncates(",, a=1 ,,b=2 \t", 7, "a=1,b=2");
    /* then whole entries, from the end */
    truncates("a=1,b=2", 6, "a=1");
    truncates("a=1,bb=2,c=3", 11, "a=1,bb=2");
    truncates("a=1,b=2", 3, "a=1");
    truncates("a=1,b=2", 2, "");
    truncates("a=1,b=2", 0, "");

    /* but those above 128 characters first, no more of them than need be, from the last */
    sprintf(text, "a=1,%s,b=2,%s,c=3", large, larger);
    sprintf(wanted, "a=1,%s,b=2,c=3", large);
    truncates(text, strlen(text), text);
    truncates(text, strlen(text) - 1, wanted);
    truncates(text, strlen(wanted), wanted);
    truncates(text, strlen(wanted) - 1, "a=1,b=2,c=3");
    truncates(text, 11, "a=1,b=2,c=3");
    truncates(text, 10, "a=1,b=2");
    sprintf(text, "%s,a=1", limit);
    truncates(text, 131, limit);
    truncates(text, 128, limit);
    sprintf(text, "%s,a=1", large);
    truncates(text, 132, "a=1");

    /* 512 characters survive */
    *text = '\0';
    for (int i = 0; i < 4; i++)
        sprintf(text + strlen(text), "%sk%d=%.*s", i ? "," : "", i, i ? 124 : 125, limit + 6);
    strcat(text, "abc");
    CHECK(strlen(text) <= 512);
    truncates(text, BLKIN_TRACESTATE_SIZE - 1, text);
    free(large);
    free(larger);
    free(limit);
}

/* ---------------------------------------------------------------- B3 */

#define TRACE_128 "80f198ee56343ba864fe8b2a57d3eff7"
#define TRACE_64  "64fe8b2a57d3eff7"
#define SPAN      "e457b5a2e4d86bd1"
#define UP        "05e3ac9a4f6e3b90"
#define ZEROS     "0000000000000000"

static const struct expected b3_valid[] = {
    /* the README, and Brave's documentation */
    {TRACE_128 "-" SPAN "-1-" UP, 0x80f198ee56343ba8, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1,
     0x05e3ac9a4f6e3b90, SAMPLED | DECIDED, NULL},
    {"4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1", 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736,
     0x00f067aa0ba902b7, 0, SAMPLED | DECIDED, NULL},
    {"4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736,
     0x00f067aa0ba902b7, 0, 0, NULL},
    {"4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-d-5b4185666d50f68b", 0x4bf92f3577b34da6,
     0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 0x5b4185666d50f68b, SAMPLED | DECIDED | DEBUG, NULL},
    {"0", 0, 0, 0, 0, DECIDED, NULL},
    {"1", 0, 0, 0, 0, SAMPLED | DECIDED, NULL},
    {"d", 0, 0, 0, 0, SAMPLED | DECIDED | DEBUG, NULL},
    /* each form with a 64-bit trace id */
    {TRACE_64 "-" SPAN, 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, 0, NULL},
    {TRACE_64 "-" SPAN "-0", 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, DECIDED, NULL},
    {TRACE_64 "-" SPAN "-1", 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, SAMPLED | DECIDED, NULL},
    {TRACE_64 "-" SPAN "-d", 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0,
     SAMPLED | DECIDED | DEBUG, NULL},
    {TRACE_64 "-" SPAN "-0-" UP, 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0x05e3ac9a4f6e3b90,
     DECIDED, NULL},
    /* leading zeros are dropped, a parent of zeros is none */
    {ZEROS TRACE_64 "-" SPAN "-1", 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, SAMPLED | DECIDED,
     TRACE_64 "-" SPAN "-1"},
    {TRACE_64 "-" SPAN "-1-" ZEROS, 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, SAMPLED | DECIDED,
     TRACE_64 "-" SPAN "-1"},
    /* a parent and no decision, as in Brave's tests */
    {TRACE_64 "-" SPAN "-" UP, 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0x05e3ac9a4f6e3b90, 0,
     NULL},
    {TRACE_128 "-" SPAN "-" UP, 0x80f198ee56343ba8, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1,
     0x05e3ac9a4f6e3b90, 0, NULL},
    {TRACE_64 "-" SPAN "-" ZEROS, 0, 0x64fe8b2a57d3eff7, 0xe457b5a2e4d86bd1, 0, 0,
     TRACE_64 "-" SPAN},
    {TRACE_64 ZEROS "-" SPAN, 0x64fe8b2a57d3eff7, 0, 0xe457b5a2e4d86bd1, 0, 0, NULL},
};

static void test_b3_valid(void)
{
    for (size_t i = 0; i < sizeof(b3_valid) / sizeof(*b3_valid); i++) {
        const struct expected *e = &b3_valid[i];
        struct blkin_context context = {0};
        const char *written = e->written ? e->written : e->text;
        char *buffer = marked_buffer(BLKIN_B3_SIZE);
        int length;

        about("b3", e->text, strlen(e->text));
        reads_as(blkin_context_from_b3, e);
        CHECK(parse(blkin_context_from_b3, &context, e->text, strlen(e->text)) == 0);
        CHECK(blkin_context_has_ids(&context) == (e->span_id != 0));
        length = blkin_context_to_b3(&context, buffer);
        CHECK(length == (int)strlen(written) && length < BLKIN_B3_SIZE);
        CHECK(memcmp(buffer, written, strlen(written) + 1) == 0);
        free(buffer);
    }
}

static void test_b3_malformed(void)
{
    static const char *const table[] = {
        "",
        "-",
        "2",
        "D",
        "b",
        "-1",
        "1-",
        "1-1",
        "01",
        "1-" UP,
        "not-a-tumor",
        "b970dafd-0d95-40aa-95d8-1d8725aebe40",
        /* parts */
        TRACE_64,
        TRACE_64 "-",
        TRACE_128,
        TRACE_128 "-",
        TRACE_64 "-" SPAN "-",
        TRACE_64 "-" SPAN "-1-",
        TRACE_64 "-" SPAN "-1-05e3ac9a4f6e3b9",
        TRACE_64 "-" SPAN "-1-" UP "0",
        TRACE_64 "-" SPAN "-1-" UP "-",
        TRACE_64 "-" SPAN "-11",
        TRACE_64 "-" SPAN "--" UP,
        TRACE_64 "-" SPAN "-" UP "0",
        TRACE_64 "-" SPAN "-" UP "-1",
        TRACE_64 "-" SPAN "-05e3ac9a4f6e3b9",
        TRACE_64 "-" SPAN "-05e3ac9a4f6e3b9?",
        TRACE_64 "-" SPAN "-2",
        TRACE_64 "-" SPAN "-D",
        TRACE_64 "-" SPAN "-true",
        TRACE_64 SPAN "-1",
        /* id lengths: only 16 and 32 for the trace, 16 for the span */
        "4fe8b2a57d3eff7-" SPAN "-1",
        "0" TRACE_64 "-" SPAN "-1",
        "0f198ee56343ba864fe8b2a57d3eff7-" SPAN "-1",
        "0" TRACE_128 "-" SPAN "-1",
        TRACE_64 "-457b5a2e4d86bd1-1",
        TRACE_64 "-0" SPAN "-1",
        TRACE_64 TRACE_64 TRACE_64 "-" SPAN "-" TRACE_64,
        /* zeros */
        ZEROS "-" SPAN "-1",
        ZEROS ZEROS "-" SPAN "-1",
        TRACE_64 "-" ZEROS "-1",
        /* characters */
        "64FE8B2A57D3EFF7-" SPAN "-1",
        TRACE_64 "-E457B5A2E4D86BD1-1",
        TRACE_64 "-" SPAN "-1-05E3AC9A4F6E3B90",
        TRACE_64 "_" SPAN "-1",
        TRACE_64 "-" SPAN "_1",
        " " TRACE_64 "-" SPAN "-1",
        TRACE_64 "-" SPAN "-1 ",
        TRACE_64 "-" SPAN "-1\n",
        "64fe8b2a57d3eff?-" SPAN "-1",
        TRACE_64 "-e457b5a2e4d86bd?-1",
    };
    struct blkin_context context = marked();
    char buffer[BLKIN_B3_SIZE] = "unchanged";

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        refuses(blkin_context_from_b3, "b3", table[i]);
    about("b3: NULL", "", 0);
    CHECK(blkin_context_from_b3(&context, NULL, 1) == -EINVAL);
    CHECK(blkin_context_from_b3(NULL, "1", 1) == -EINVAL);
    CHECK(blkin_context_to_b3(NULL, buffer) == -EINVAL);
    CHECK(blkin_context_to_b3(&context, NULL) == -EINVAL);

    about("b3: nothing to write", "", 0);
    memset(&context, 0, sizeof(context));
    CHECK(blkin_context_to_b3(&context, buffer) == -EINVAL);
    context.trace_id = 1;
    context.flags = SAMPLED;
    CHECK(blkin_context_to_b3(&context, buffer) == -EINVAL);
    context.trace_id = 0;
    context.span_id = 1;
    CHECK(blkin_context_to_b3(&context, buffer) == -EINVAL);
    context.span_id = 0;
    context.parent_span_id = 1;
    CHECK(blkin_context_to_b3(&context, buffer) == -EINVAL);
    CHECK(strcmp(buffer, "unchanged") == 0);
}

static struct blkin_context_text field(const char *text)
{
    return (struct blkin_context_text){text ? exact_copy(text, strlen(text)) : NULL,
                                       text ? strlen(text) : 0};
}

/* trace id, span id, parent span id, sampled, flags; NULL: did not come */
static int from_fields(struct blkin_context *context, const char *const texts[5])
{
    struct blkin_context_b3_fields fields = {field(texts[0]), field(texts[1]), field(texts[2]),
                                             field(texts[3]), field(texts[4])};
    struct blkin_context before = *context;
    int error = blkin_context_from_b3_fields(context, &fields);

    snprintf(subject, sizeof(subject), "b3 fields: %s %s %s %s %s", texts[0] ? texts[0] : "none",
             texts[1] ? texts[1] : "none", texts[2] ? texts[2] : "none",
             texts[3] ? texts[3] : "none", texts[4] ? texts[4] : "none");
    CHECK(error == 0 || memcmp(&before, context, sizeof(before)) == 0);
    free((void *)fields.trace_id.text);
    free((void *)fields.span_id.text);
    free((void *)fields.parent_span_id.text);
    free((void *)fields.sampled.text);
    free((void *)fields.flags.text);
    return error;
}

static void test_b3_fields(void)
{
    static const struct {
        const char *texts[5];
        uint32_t flags;
        const char *single;          /* the same in one header */
        const char *sampled, *debug; /* as written */
    } valid[] = {
        {{TRACE_128, SPAN, UP, "1", NULL}, SAMPLED | DECIDED, TRACE_128 "-" SPAN "-1-" UP, "1", ""},
        {{TRACE_64, SPAN, NULL, "0", NULL}, DECIDED, TRACE_64 "-" SPAN "-0", "0", ""},
        {{TRACE_64, SPAN, NULL, NULL, NULL}, 0, TRACE_64 "-" SPAN, "", ""},
        {{TRACE_64, SPAN, NULL, "true", NULL}, SAMPLED | DECIDED, TRACE_64 "-" SPAN "-1", "1", ""},
        {{TRACE_64, SPAN, NULL, "false", NULL}, DECIDED, TRACE_64 "-" SPAN "-0", "0", ""},
        {{TRACE_64, SPAN, NULL, "TRUE", NULL}, SAMPLED | DECIDED, TRACE_64 "-" SPAN "-1", "1", ""},
        {{TRACE_64, SPAN, NULL, "False", NULL}, DECIDED, TRACE_64 "-" SPAN "-0", "0", ""},
        {{TRACE_64, SPAN, UP, NULL, NULL}, 0, TRACE_64 "-" SPAN "-" UP, "", ""},
        {{TRACE_64, SPAN, UP, NULL, "1"},
         SAMPLED | DECIDED | DEBUG,
         TRACE_64 "-" SPAN "-d-" UP,
         "",
         "1"},
        {{TRACE_64, SPAN, UP, "0", "1"},
         SAMPLED | DECIDED | DEBUG,
         TRACE_64 "-" SPAN "-d-" UP,
         "",
         "1"},
        {{TRACE_64, SPAN, ZEROS, "1", "0"}, SAMPLED | DECIDED, TRACE_64 "-" SPAN "-1", "1", ""},
        {{TRACE_64, SPAN, NULL, "1", "true"}, SAMPLED | DECIDED, TRACE_64 "-" SPAN "-1", "1", ""},
        {{TRACE_64, SPAN, NULL, NULL, ""}, 0, TRACE_64 "-" SPAN, "", ""},
        {{NULL, NULL, NULL, "0", NULL}, DECIDED, "0", "0", ""},
        {{NULL, NULL, NULL, "1", NULL}, SAMPLED | DECIDED, "1", "1", ""},
        {{NULL, NULL, NULL, NULL, "1"}, SAMPLED | DECIDED | DEBUG, "d", "", "1"},
    };
    static const char *const malformed[][5] = {
        {NULL, NULL, NULL, NULL, NULL},
        {NULL, NULL, NULL, NULL, "0"},
        {TRACE_64, NULL, NULL, "1", NULL},
        {NULL, SPAN, NULL, "1", NULL},
        {NULL, NULL, UP, "1", NULL},
        {TRACE_64, NULL, UP, "1", NULL},
        {"", SPAN, NULL, "1", NULL},
        {TRACE_64, "", NULL, "1", NULL},
        {TRACE_64, SPAN, "", "1", NULL},
        {TRACE_64, SPAN, NULL, "", NULL},
        {TRACE_64, SPAN, NULL, "2", NULL},
        {TRACE_64, SPAN, NULL, "d", NULL},
        {TRACE_64, SPAN, NULL, "tru", NULL},
        {TRACE_64, SPAN, NULL, "truee", NULL},
        {TRACE_64, SPAN, NULL, "1 ", NULL},
        {TRACE_64, SPAN, NULL, "x", "1"},
        {TRACE_64 "0", SPAN, NULL, "1", NULL},
        {TRACE_128 "0", SPAN, NULL, "1", NULL},
        {"4fe8b2a57d3eff7", SPAN, NULL, "1", NULL},
        {TRACE_64, SPAN "0", NULL, "1", NULL},
        {TRACE_64, "457b5a2e4d86bd1", NULL, "1", NULL},
        {TRACE_64, SPAN, UP "0", "1", NULL},
        {TRACE_64, SPAN, "5e3ac9a4f6e3b90", "1", NULL},
        {ZEROS, SPAN, NULL, "1", NULL},
        {ZEROS ZEROS, SPAN, NULL, "1", NULL},
        {TRACE_64, ZEROS, NULL, "1", NULL},
        {"64FE8B2A57D3EFF7", SPAN, NULL, "1", NULL},
        {TRACE_64, "E457B5A2E4D86BD1", NULL, "1", NULL},
        {TRACE_64, SPAN, "05E3AC9A4F6E3B90", "1", NULL},
        {TRACE_64, SPAN, "05e3ac9a4f6e3b9-", "1", NULL},
    };
    struct blkin_context context;
    struct blkin_context_b3_values values;
    struct blkin_context_b3_fields none = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};

    for (size_t i = 0; i < sizeof(valid) / sizeof(*valid); i++) {
        struct blkin_context single = {0};

        context = marked();
        CHECK(from_fields(&context, valid[i].texts) == 0);
        CHECK(blkin_context_from_b3(&single, valid[i].single, strlen(valid[i].single)) == 0);
        CHECK(same(&context, &single));
        CHECK(context.flags == (valid[i].flags | REMOTE));
        memset(&values, '#', sizeof(values));
        CHECK(blkin_context_to_b3_fields(&context, &values) == 0);
        CHECK(strcmp(values.trace_id, valid[i].texts[0] ? valid[i].texts[0] : "") == 0);
        CHECK(strcmp(values.span_id, valid[i].texts[1] ? valid[i].texts[1] : "") == 0);
        CHECK(strcmp(values.parent_span_id, context.parent_span_id ? UP : "") == 0);
        CHECK(strcmp(values.sampled, valid[i].sampled) == 0);
        CHECK(strcmp(values.flags, valid[i].debug) == 0);
    }
    for (size_t i = 0; i < sizeof(malformed) / sizeof(*malformed); i++) {
        context = marked();
        CHECK(from_fields(&context, malformed[i]) == -EINVAL);
    }

    about("b3 fields: NULL", "", 0);
    CHECK(blkin_context_from_b3_fields(&context, NULL) == -EINVAL);
    CHECK(blkin_context_from_b3_fields(NULL, &none) == -EINVAL);
    memset(&context, 0, sizeof(context));
    CHECK(blkin_context_to_b3_fields(&context, &values) == -EINVAL);
    CHECK(blkin_context_to_b3_fields(NULL, &values) == -EINVAL);
    CHECK(blkin_context_to_b3_fields(&context, NULL) == -EINVAL);
}

/* ---------------------------------------------------------------- binary forms */

static const unsigned char opencensus[] = {
    /* the specification's example */
    0,  0,  75, 249, 47, 53,  119, 179, 77, 166, 163, 206, 146, 157, 0,
    14, 71, 54, 1,   52, 240, 103, 170, 11, 169, 2,   183, 2,   1,
};

static const unsigned char opencensus_java[] = {
    /* the example of the reference implementations' tests */
    0,  0,  64, 65, 66, 67, 68, 69,  70,  71,  72,  73,  74, 75, 76,
    77, 78, 79, 1,  97, 98, 99, 100, 101, 102, 103, 104, 2,  1,
};

static void test_opencensus(void)
{
    static const struct {
        size_t at;
        unsigned char value;
    } broken[] = {
        {0, 1},  {0, 66}, {0, 255}, /* version */
        {1, 4},  {1, 1},  {1, 2},   /* no trace id first */
        {18, 3}, {18, 0}, {18, 2},  /* no span id second */
        {27, 0}, {27, 1},           /* out of order */
    };
    struct blkin_context context = marked();
    unsigned char bytes[40] = {0}, *written = malloc(BLKIN_OPENCENSUS_SIZE);

    if (!written)
        abort();
    about("opencensus", opencensus, sizeof(opencensus));
    CHECK(parse(from_opencensus, &context, opencensus, 29) == 0);
    CHECK(context.trace_id_high == 0x4bf92f3577b34da6 && context.trace_id == 0xa3ce929d000e4736);
    CHECK(context.span_id == 0x34f067aa0ba902b7 && context.parent_span_id == 0);
    CHECK(context.flags == (SAMPLED | DECIDED | REMOTE) && !context.tracestate);
    CHECK(blkin_context_to_opencensus(&context, written) == 29);
    CHECK(memcmp(written, opencensus, 29) == 0);

    context = marked();
    CHECK(parse(from_opencensus, &context, opencensus_java, 29) == 0);
    CHECK(context.trace_id_high == 0x4041424344454647 && context.trace_id == 0x48494a4b4c4d4e4f);
    CHECK(context.span_id == 0x6162636465666768 && context.flags == (SAMPLED | DECIDED | REMOTE));

    /* not sampled, options missing: the decision is open; other bits are not defined */
    memcpy(bytes, opencensus, 29);
    bytes[28] = 0;
    CHECK(parse(from_opencensus, &context, bytes, 29) == 0 && context.flags == REMOTE);
    CHECK(blkin_context_to_opencensus(&context, written) == 29 && memcmp(written, bytes, 29) == 0);
    bytes[28] = 0xfe;
    CHECK(parse(from_opencensus, &context, bytes, 29) == 0 && context.flags == REMOTE);
    bytes[28] = 0xff;
    CHECK(parse(from_opencensus, &context, bytes, 29) == 0);
    CHECK(context.flags == (SAMPLED | DECIDED | REMOTE));
    CHECK(parse(from_opencensus, &context, bytes, 27) == 0 && context.flags == REMOTE);

    /* an unknown field ends the reading, with or without options before it */
    bytes[28] = 1;
    bytes[29] = 3;
    for (size_t length = 30; length <= sizeof(bytes); length++)
        CHECK(parse(from_opencensus, &context, bytes, length) == 0 && context.flags & SAMPLED);
    bytes[27] = 3;
    for (size_t length = 28; length <= sizeof(bytes); length++)
        CHECK(parse(from_opencensus, &context, bytes, length) == 0 && context.flags == REMOTE);
    /* a known one there is out of order */
    bytes[27] = 2;
    for (int id = 0; id <= 2; id++) {
        bytes[29] = (unsigned char)id;
        CHECK(!accepts(from_opencensus, bytes, 30));
        CHECK(!accepts(from_opencensus, bytes, sizeof(bytes)));
    }

    for (size_t length = 0; length <= 28; length++) {
        about("opencensus cut", opencensus, length);
        CHECK(accepts(from_opencensus, opencensus, length) == (length == 27));
    }
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
        memcpy(bytes, opencensus, 29);
        bytes[broken[i].at] = broken[i].value;
        about("opencensus", bytes, 29);
        CHECK(!accepts(from_opencensus, bytes, 29));
    }
    memcpy(bytes, opencensus, 29);
    memset(bytes + 2, 0, 16);
    CHECK(!accepts(from_opencensus, bytes, 29));
    memcpy(bytes, opencensus, 29);
    memset(bytes + 19, 0, 8);
    CHECK(!accepts(from_opencensus, bytes, 29));

    CHECK(blkin_context_from_opencensus(&context, NULL, 29) == -EINVAL);
    CHECK(blkin_context_from_opencensus(NULL, opencensus, 29) == -EINVAL);
    CHECK(blkin_context_to_opencensus(&context, NULL) == -EINVAL);
    memset(&context, 0, sizeof(context));
    CHECK(blkin_context_to_opencensus(&context, written) == -EINVAL);
    free(written);
}

static void test_packed(void)
{
    static const unsigned char wire[24] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
                                           0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff,
                                           0x80, 0,    0,    0,    0,    0,    0,    0x01};
    static const unsigned char zeros[24];
    const struct blkin_trace_info info = {-1, -2, -3};
    struct blkin_context context = marked();
    struct blkin_trace_info_packed *packed = malloc(sizeof(*packed)), original;

    if (!packed)
        abort();
    snprintf(subject, sizeof(subject), "packed");
    memcpy(packed, wire, sizeof(wire));
    CHECK(blkin_context_from_packed(&context, packed) == 0);
    CHECK(context.trace_id_high == 0 && context.trace_id == 0x0001020304050607);
    CHECK(context.span_id == 0xf8f9fafbfcfdfeff && context.parent_span_id == 0x8000000000000001);
    CHECK(context.flags == (SAMPLED | DECIDED | REMOTE) && !context.tracestate);
    memset(packed, '#', sizeof(*packed));
    CHECK(blkin_context_to_packed(&context, packed) == 0);
    CHECK(memcmp(packed, wire, sizeof(wire)) == 0);

    /* the same as the original functions */
    CHECK(blkin_pack_trace_info(&info, &original) == 0);
    CHECK(blkin_context_from_packed(&context, &original) == 0);
    CHECK(context.trace_id == UINT64_MAX && context.span_id == UINT64_MAX - 1 &&
          context.parent_span_id == UINT64_MAX - 2);

    /* a 128-bit trace id loses its high half; undecided is taken as sampled */
    context.trace_id_high = 7;
    context.flags = 0;
    CHECK(blkin_context_to_packed(&context, packed) == 0);
    CHECK(memcmp(packed, &original, sizeof(original)) == 0);
    context.trace_id = 0;
    CHECK(blkin_context_to_packed(&context, packed) == -EINVAL);

    /* not sampled is "not traced", both ways; a child of such a trace has a span id */
    context.flags = DECIDED;
    CHECK(blkin_context_to_packed(&context, packed) == 0);
    CHECK(memcmp(packed, zeros, sizeof(zeros)) == 0);
    ((unsigned char *)packed)[15] = 1;
    context = marked();
    CHECK(blkin_context_from_packed(&context, packed) == 0);
    CHECK(context.flags == (DECIDED | REMOTE) && !blkin_context_has_ids(&context));
    CHECK(context.span_id == 0 && context.parent_span_id == 0);
    CHECK(blkin_context_to_packed(&context, packed) == 0);
    CHECK(memcmp(packed, zeros, sizeof(zeros)) == 0);

    /* a trace without a span */
    context = marked();
    memcpy(packed, zeros, sizeof(zeros));
    ((unsigned char *)packed)[7] = 1;
    CHECK(blkin_context_from_packed(&context, packed) == -EINVAL && context.span_id != 0);
    memset(&context, 0, sizeof(context));
    CHECK(blkin_context_to_packed(&context, packed) == -EINVAL);
    context.trace_id = 1;
    CHECK(blkin_context_to_packed(&context, packed) == -EINVAL);
    context.flags = SAMPLED;
    context.trace_id = 0;
    CHECK(blkin_context_to_packed(&context, packed) == -EINVAL);

    CHECK(blkin_context_from_packed(&context, NULL) == -EINVAL);
    CHECK(blkin_context_from_packed(NULL, packed) == -EINVAL);
    CHECK(blkin_context_to_packed(&context, NULL) == -EINVAL);
    CHECK(blkin_context_to_packed(NULL, packed) == -EINVAL);
    free(packed);
}

/* ---------------------------------------------------------------- environment */

static void test_environment(void)
{
    struct blkin_context context = marked(), before = context, read;
    char *parent = marked_buffer(BLKIN_TRACEPARENT_VARIABLE_SIZE), *state;
    char large[BLKIN_TRACESTATE_VARIABLE_SIZE], *value;

    snprintf(subject, sizeof(subject), "environment");
    unsetenv("TRACEPARENT");
    setenv("TRACESTATE", "congo=t61rcWkgMzE", 1);
    CHECK(blkin_context_from_environment(&context) == -ENOENT);
    setenv("TRACEPARENT", "", 1);
    CHECK(blkin_context_from_environment(&context) == -ENOENT);
    setenv("TRACEPARENT", "00-what", 1);
    CHECK(blkin_context_from_environment(&context) == -EINVAL);
    CHECK(memcmp(&context, &before, sizeof(context)) == 0);
    setenv("TRACEPARENT", PARENT, 1);
    CHECK(blkin_context_from_environment(NULL) == -EINVAL);
    CHECK(blkin_context_from_environment(&context) == 0);
    CHECK(context.span_id == 0x00f067aa0ba902b7 && context.flags == (SAMPLED | DECIDED | REMOTE));
    CHECK(context.tracestate && context.tracestate_length == 17 &&
          memcmp(context.tracestate, "congo=t61rcWkgMzE", 17) == 0);
    setenv("TRACESTATE", "Not Valid", 1);
    CHECK(blkin_context_from_environment(&context) == 0 && !context.tracestate);
    unsetenv("TRACESTATE");
    CHECK(blkin_context_from_environment(&context) == 0 && !context.tracestate);

    /* what is written for a child is what the child reads */
    CHECK(blkin_context_set_tracestate(&context, "rojo=1,congo=2", 14) == 0);
    CHECK(blkin_context_to_traceparent_variable(&context, parent) == 67);
    CHECK(memcmp(parent, "TRACEPARENT=" PARENT, 68) == 0);
    CHECK(blkin_context_to_tracestate_variable(&context, large, sizeof(large)) == 25);
    CHECK(strcmp(large, "TRACESTATE=rojo=1,congo=2") == 0);
    putenv(parent);
    putenv(large);
    CHECK(blkin_context_from_environment(&read) == 0);
    CHECK(read.trace_id == context.trace_id && read.tracestate_length == 14);
    unsetenv("TRACEPARENT");
    unsetenv("TRACESTATE");

    /* shortened to the buffer; nothing left, nothing there */
    state = marked_buffer(18);
    CHECK(blkin_context_to_tracestate_variable(&context, state, 18) == 17);
    CHECK(strcmp(state, "TRACESTATE=rojo=1") == 0);
    CHECK(blkin_context_to_tracestate_variable(&context, state, 17) == 0 && !*state);
    CHECK(blkin_context_to_tracestate_variable(&context, state, 12) == 0 && !*state);
    for (size_t size = 0; size < 12; size++)
        CHECK(blkin_context_to_tracestate_variable(&context, state, size) == -EINVAL);
    CHECK(blkin_context_set_tracestate(&context, "", 0) == 0);
    CHECK(blkin_context_to_tracestate_variable(&context, state, 18) == 0 && !*state);

    /* 512 characters fit the advised size */
    value = entry_of("", 256, 255);
    CHECK(strlen(value) == 512);
    CHECK(blkin_context_set_tracestate(&context, value, 512) == 0);
    CHECK(blkin_context_to_tracestate_variable(&context, large, sizeof(large)) == 523);
    CHECK(strcmp(large + 11, value) == 0);

    memset(&context, 0, sizeof(context));
    memset(parent, '#', BLKIN_TRACEPARENT_VARIABLE_SIZE - 1);
    CHECK(blkin_context_to_traceparent_variable(&context, parent) == -EINVAL && *parent == '#');
    CHECK(blkin_context_to_tracestate_variable(&context, large, sizeof(large)) == -EINVAL);
    CHECK(blkin_context_to_traceparent_variable(&context, NULL) == -EINVAL);
    CHECK(blkin_context_to_tracestate_variable(&context, NULL, 100) == -EINVAL);
    free(value);
    free(state);
    free(parent);
}

/* ---------------------------------------------------------------- round trips */

static uint64_t random_number(void)
{
    static uint64_t state = 1;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* flags as a reader must see them: all that are implied, and only those that the format has */
static uint32_t seen(uint32_t flags, uint32_t carried)
{
    if (flags & DEBUG)
        flags |= SAMPLED;
    if (flags & SAMPLED)
        flags |= DECIDED;
    return (flags & carried) | REMOTE;
}

static void test_round_trips(void)
{
    for (int i = 0; i < 100000; i++) {
        const struct blkin_context sent = {
            .trace_id_high = i % 3 ? random_number() : 0,
            .trace_id = random_number(),
            .span_id = random_number(),
            .parent_span_id = i % 2 ? random_number() : 0,
            .flags = (uint32_t)random_number() & 31,
        };
        struct blkin_context got, wanted;
        struct blkin_trace_info_packed packed;
        char text[BLKIN_B3_SIZE];
        int length;

        snprintf(subject, sizeof(subject), "round trip %d, flags %u", i, sent.flags);
        wanted = sent;
        wanted.parent_span_id = 0;
        wanted.flags = seen(sent.flags, SAMPLED | RANDOM) | DECIDED;
        length = blkin_context_to_traceparent(&sent, text);
        CHECK(blkin_context_from_traceparent(&got, text, (size_t)length) == 0);
        CHECK(same(&got, &wanted));

        wanted.flags = seen(sent.flags, SAMPLED);
        if (wanted.flags & SAMPLED)
            wanted.flags |= DECIDED;
        length = blkin_context_to_opencensus(&sent, text);
        CHECK(blkin_context_from_opencensus(&got, text, (size_t)length) == 0);
        CHECK(same(&got, &wanted));

        wanted.flags = seen(sent.flags, SAMPLED | DECIDED | DEBUG);
        wanted.parent_span_id = sent.parent_span_id;
        length = blkin_context_to_b3(&sent, text);
        CHECK(blkin_context_from_b3(&got, text, (size_t)length) == 0);
        CHECK(same(&got, &wanted));

        CHECK(blkin_context_to_packed(&sent, &packed) == 0);
        CHECK(blkin_context_from_packed(&got, &packed) == 0);
        wanted = (struct blkin_context){.flags = DECIDED | REMOTE};
        if (seen(sent.flags, SAMPLED | DECIDED) != (DECIDED | REMOTE)) {
            wanted.trace_id = sent.trace_id;
            wanted.span_id = sent.span_id;
            wanted.parent_span_id = sent.parent_span_id;
            wanted.flags |= SAMPLED;
        }
        CHECK(same(&got, &wanted));
    }
}

static void test_traceparent_writer(void)
{
    struct blkin_context context = {0};
    char *buffer = marked_buffer(BLKIN_TRACEPARENT_SIZE);

    snprintf(subject, sizeof(subject), "traceparent writer");
    CHECK(blkin_context_to_traceparent(&context, buffer) == -EINVAL);
    context.trace_id = 1;
    CHECK(blkin_context_to_traceparent(&context, buffer) == -EINVAL);
    context.trace_id = 0;
    context.span_id = 1;
    CHECK(blkin_context_to_traceparent(&context, buffer) == -EINVAL);
    for (int i = 0; i < BLKIN_TRACEPARENT_SIZE; i++)
        CHECK(buffer[i] == '#');
    CHECK(blkin_context_to_traceparent(NULL, buffer) == -EINVAL);
    context.trace_id_high = 1;
    CHECK(blkin_context_to_traceparent(&context, NULL) == -EINVAL);
    context.flags = DEBUG;
    CHECK(blkin_context_to_traceparent(&context, buffer) == 55);
    CHECK(strcmp(buffer, "00-00000000000000010000000000000000-0000000000000001-01") == 0);
    free(buffer);
}

int main(void)
{
    test_traceparent_valid();
    test_traceparent_malformed();
    test_traceparent_writer();
    test_each_byte(blkin_context_from_traceparent, PARENT,
                   "hh-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh");
    test_tracestate_valid();
    test_tracestate_malformed();
    test_tracestate_truncation();
    test_b3_valid();
    test_b3_malformed();
    test_each_byte(blkin_context_from_b3, TRACE_128 "-" SPAN "-1-" UP,
                   "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-s-hhhhhhhhhhhhhhhh");
    test_each_byte(blkin_context_from_b3, TRACE_64 "-" SPAN "-d-" UP,
                   "hhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-s-hhhhhhhhhhhhhhhh");
    test_b3_fields();
    test_opencensus();
    test_packed();
    test_environment();
    test_round_trips();
    if (failures)
        fprintf(stderr, "test-context: %d checks failed\n", failures);
    return failures != 0;
}

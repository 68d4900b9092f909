/*
 * W3C trace context: what the specification publishes, its limits, and malformed input.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "context_checks.h"

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
        /* lengths */
        "00-12345678901234567890123456789012-1234567890123456-011",
        "00-12345678901234567890123456789012-1234567890123456-01-",
        "00-12345678901234567890123456789012-1234567890123456-01-what-the-future-will-be-like",
        "00-123456789012345678901234567890123-1234567890123456-01",
        "00-12345678901234567890123456789012-12345678901234567-01",
        /* higher versions */
        "ff-12345678901234567890123456789012-1234567890123456-01",
        "cc-12345678901234567890123456789012-1234567890123456-01.what-the-future-will-be-like",
        "cc-12345678901234567890123456789012-1234567890123456-0x-",
        /* white space is the carrier's */
        " " PARENT,
        PARENT "\n",
        /* ids of zeros */
        "00-00000000000000000000000000000000-1234567890123456-01",
        "00-12345678901234567890123456789012-0000000000000000-01",
    };
    struct blkin_context context = marked();

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        refuses(blkin_context_from_traceparent, "traceparent", table[i]);
    about("traceparent: NULL", "", 0);
    CHECK(blkin_context_from_traceparent(&context, NULL, 55) == -EINVAL);
    CHECK(blkin_context_from_traceparent(NULL, PARENT, 55) == -EINVAL);
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

/* ---------------------------------------------------------------- tracestate */

static int takes_state(const char *text)
{
    struct blkin_context context = with_parent();

    about("tracestate", text, strlen(text));
    return parse(as_tracestate, &context, text, strlen(text)) == 0;
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
    free(large);
    free(larger);
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
    return context_status();
}

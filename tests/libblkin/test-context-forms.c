/*
 * Binary forms of a trace context, the environment, and round trips of all forms.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin_context.h>
#include <zipkin_c.h>

#include "context_checks.h"

/* ---------------------------------------------------------------- binary forms */

static const unsigned char opencensus[] = {
    /* the specification's example */
    0,  0,  75, 249, 47, 53,  119, 179, 77, 166, 163, 206, 146, 157, 0,
    14, 71, 54, 1,   52, 240, 103, 170, 11, 169, 2,   183, 2,   1,
};

static void test_opencensus(void)
{
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

    for (size_t length = 0; length <= 28; length++) {
        about("opencensus cut", opencensus, length);
        CHECK(accepts(from_opencensus, opencensus, length) == (length == 27));
    }
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

int main(void)
{
    test_opencensus();
    test_packed();
    test_environment();
    test_round_trips();
    return context_status();
}

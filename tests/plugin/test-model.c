/*
 * A trace as a tree of spans: hostile trees, and calls between services. fuzz/fuzz-trace-model.c
 * compares the tree with a slow reference, also with impossible times.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/model/statistics.h"
#include "babeltrace-plugin/model/model.h"
#include "check.h"

#define MODEL_MANY 100000

TEST(test_empty)
{
    struct trace_model model = {0};

    CHECK(trace_model_link(&model));
    CHECK(model.first_top == TRACE_NONE && model.longest_self == TRACE_NONE && model.count == 0);
    CHECK(!trace_model_is_whole(&model));
    trace_model_destroy(&model);
}

/* ---- hostile trees: quadratic work would take 10^10 steps, and the test would time out */

static void check_shape(uint64_t id_of(uint64_t), uint64_t parent_of(uint64_t))
{
    struct trace_model model = {0};
    uint32_t seen = 0;

    for (uint64_t i = 0; i < MODEL_MANY; i++) {
        const struct trace_span span = {.id = id_of(i),
                                        .parent_id = parent_of(i),
                                        .start_ns = (int64_t)(1 + (i * 7919) % MODEL_MANY),
                                        .duration_ns = 5,
                                        .service = (uint32_t)(i % 3)};

        CHECK(trace_model_add(&model, &span));
    }
    CHECK(trace_model_link(&model));
    for (uint32_t i = model.first_top; i != TRACE_NONE; i = trace_model_next(&model, i)) {
        struct trace_call calls[TRACE_CALLS_MAX];

        CHECK(trace_calls(&model, i, calls) <= TRACE_CALLS_MAX);
        seen++;
    }
    CHECK(seen == MODEL_MANY);
    trace_model_destroy(&model);
}

static uint64_t count_up(uint64_t i)
{
    return i + 1;
}

static uint64_t of_the_first(uint64_t i)
{
    return i ? 1 : 0;
}

static uint64_t of_the_last(uint64_t i)
{
    return i;
}

static uint64_t in_a_cycle(uint64_t i)
{
    return (i + 1) % MODEL_MANY + 1;
}

static uint64_t always_the_same(uint64_t i)
{
    (void)i;
    return 1;
}

static uint64_t two_by_two(uint64_t i)
{
    return (i ^ 1) + 1;
}

static uint64_t missing(uint64_t i)
{
    return i + MODEL_MANY + 1;
}

TEST(test_hostile)
{
    static const struct {
        uint64_t (*id_of)(uint64_t);
        uint64_t (*parent_of)(uint64_t);
    } shapes[] = {
        {count_up, of_the_first},   {count_up, of_the_last},     {count_up, in_a_cycle},
        {always_the_same, missing}, {always_the_same, count_up}, {count_up, two_by_two},
        {count_up, missing},
    };

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        check_shape(shapes[i].id_of, shapes[i].parent_of);
}

/* ---- calls */

enum service { NOBODY, A, B, C };

static char found[512];

static const char *calls_of(const struct trace_span *spans, size_t count)
{
    static const char names[] = "-ABC";
    struct trace_model model = {0};
    struct trace_call calls[TRACE_CALLS_MAX];

    found[0] = '\0';
    for (size_t i = 0; i < count; i++)
        CHECK(trace_model_add(&model, &spans[i]));
    CHECK(trace_model_link(&model));
    for (uint32_t i = 0; i < model.count; i++) {
        const int calls_count = trace_calls(&model, i, calls);

        for (int j = 0; j < calls_count; j++)
            sprintf(found + strlen(found), "%c>%c%s ", names[calls[j].caller - NAMES_OTHER],
                    names[calls[j].callee - NAMES_OTHER], calls[j].is_error ? "!" : "");
    }
    trace_model_destroy(&model);
    return found;
}

#define S(service) (service ? service + NAMES_OTHER : NAMES_NONE)
#define SPAN(id_, parent_, kind_, service_, ...)                                                 \
    {                                                                                            \
        .id = id_, .parent_id = parent_, .kind = kind_, .service = S(service_), .start_ns = id_, \
        .duration_ns = 1, __VA_ARGS__                                                            \
    }
#define CALLS(expected, ...)                                                       \
    do {                                                                           \
        const struct trace_span spans[] = {__VA_ARGS__};                           \
        CHECK_TEXT(calls_of(spans, sizeof(spans) / sizeof(spans[0])), (expected)); \
    } while (0)

/* The model counts calls like Zipkin's linker, except where the linker is wrong. */
TEST(test_calls)
{
    CALLS("A>B ", SPAN(1, 0, SPAN_SERVER, A), SPAN(2, 1, SPAN_CLIENT, A),
          SPAN(3, 2, SPAN_SERVER, B));
    /* halves of one id, marked as shared or not */
    CALLS("A>B ", SPAN(1, 0, SPAN_CLIENT, A), SPAN(1, 0, SPAN_SERVER, B, .is_shared = true));
    CALLS("A>B ", SPAN(1, 0, SPAN_CLIENT, A), SPAN(1, 0, SPAN_SERVER, B));
    /* local spans between */
    CALLS("A>B ", SPAN(1, 0, SPAN_SERVER, A), SPAN(2, 1, SPAN_LOCAL, A), SPAN(3, 2, SPAN_LOCAL, A),
          SPAN(4, 3, SPAN_SERVER, B));
    /* a service that calls itself */
    CALLS("A>A ", SPAN(1, 0, SPAN_CLIENT, A), SPAN(2, 1, SPAN_SERVER, A));
    /* a service that is not traced */
    CALLS("A>C ", SPAN(1, 0, SPAN_SERVER, A), SPAN(2, 1, SPAN_CLIENT, A, .remote_service = S(C)));
    CALLS("C>A ", SPAN(1, 0, SPAN_SERVER, A, .remote_service = S(C)));
    CALLS("A>C ", SPAN(1, 0, SPAN_LOCAL, A, .remote_service = S(C)));
    CALLS("A>C ", SPAN(1, 0, SPAN_PRODUCER, A, .remote_service = S(C)));
    CALLS("C>A ", SPAN(1, 0, SPAN_CONSUMER, A, .remote_service = S(C)));
    CALLS("", SPAN(1, 0, SPAN_SERVER, A));
    CALLS("", SPAN(1, 0, SPAN_CLIENT, A));
    /* a client whose server is traced counts by its server */
    CALLS("A>B ", SPAN(1, 0, SPAN_CLIENT, A, .remote_service = S(C)), SPAN(2, 1, SPAN_SERVER, B));
    /* a missing hop between a server and a client */
    CALLS("A>B B>C ", SPAN(1, 0, SPAN_SERVER, A),
          SPAN(2, 1, SPAN_CLIENT, B, .remote_service = S(C)));
    /* errors: the server's own, or its client's */
    CALLS("A>B! ", SPAN(1, 0, SPAN_CLIENT, A), SPAN(2, 1, SPAN_SERVER, B, .is_error = true));
    CALLS("A>B! ", SPAN(1, 0, SPAN_CLIENT, A, .is_error = true), SPAN(2, 1, SPAN_SERVER, B));
    CALLS("A>B ", SPAN(1, 0, SPAN_SERVER, A, .is_error = true), SPAN(2, 1, SPAN_SERVER, B));
    /* without kinds: by the change of service */
    CALLS("A>B B>C! ", SPAN(1, 0, SPAN_LOCAL, A), SPAN(2, 1, SPAN_LOCAL, B),
          SPAN(3, 2, SPAN_LOCAL, B), SPAN(4, 3, SPAN_LOCAL, C, .is_error = true));
    /* messages count by the broker that they name, as in Zipkin */
    CALLS("", SPAN(1, 0, SPAN_PRODUCER, A), SPAN(2, 1, SPAN_CONSUMER, B));
    /* a span with a missing parent is not the root */
    CALLS("", SPAN(1, 0, SPAN_SERVER, A), SPAN(2, 9, SPAN_SERVER, B));
    CALLS("", SPAN(1, 0, SPAN_LOCAL, NOBODY), SPAN(2, 1, SPAN_LOCAL, A));
}

CHECK_MAIN

/*
 * Fuzzes the linking of a trace. Spans with small times must be linked as by a slow reference.
 * Spans with times of any size must keep the general requirements. Calls and statistics have every
 * span once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/model/statistics.h"
#include "trace_reference.h"

/* libFuzzer chooses inputs by their coverage of the product, not of this file */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

static struct fuzz source;

static struct trace_span take_span(bool has_any_time)
{
    struct trace_span span;
    uint64_t bits;

    memset(&span, 0, sizeof(span)); /* the padding, too, because it is compared */
    span.id = take(&source, 1) % 16;
    span.parent_id = take(&source, 1) % 16;
    span.start_ns = (int64_t)take(&source, has_any_time ? 8 : 1);
    span.duration_ns = (int64_t)take(&source, has_any_time ? 8 : 1);
    if (!has_any_time) {
        span.start_ns %= REFERENCE_TIME / 2;
        span.duration_ns %= REFERENCE_TIME / 2;
    }
    bits = take(&source, 2);
    span.service = (uint32_t)(bits & 3);
    span.remote_service = (uint32_t)(bits >> 2 & 3);
    span.kind = (uint8_t)((bits >> 4 & 7) % (SPAN_CONSUMER + 1));
    span.is_shared = (bits >> 7 & 7) == 0;
    span.is_error = bits >> 10 & 1;
    span.name = (uint32_t)(bits >> 11 & 3);
    return span;
}

static void check_any(const struct trace_model *model)
{
    uint32_t seen = 0;

    for (uint32_t i = model->first_top; i != TRACE_NONE; i = trace_model_next(model, i)) {
        REQUIRE(model->spans[i].start_ns >= 0 && model->spans[i].duration_ns >= 0);
        REQUIRE(model->nodes[i].self_ns >= 0 &&
                model->nodes[i].self_ns <= model->spans[i].duration_ns);
        REQUIRE(++seen <= model->count);
    }
    REQUIRE(seen == model->count);
    REQUIRE(model->end_ns >= model->start_ns);
    REQUIRE(model->roots + model->orphans > 0);
}

static void check_statistics(const struct trace_model *model, struct names *names)
{
    struct statistics *statistics = statistics_new(names);
    uint64_t spans = 0, calls = 0, found = 0;

    REQUIRE(statistics && statistics_add_trace(statistics, model));
    for (size_t i = 0; i < statistics_size(statistics, STATISTICS_ROWS); i++)
        spans += statistics_at(statistics, STATISTICS_ROWS, i)->spans;
    for (size_t i = 0; i < statistics_size(statistics, STATISTICS_EDGES); i++)
        calls += statistics_at(statistics, STATISTICS_EDGES, i)->calls;
    for (uint32_t i = 0; i < model->count; i++) {
        struct trace_call of_span[TRACE_CALLS_MAX];
        const int count = trace_calls(model, i, of_span);

        REQUIRE(count >= 0 && count <= TRACE_CALLS_MAX);
        for (int j = 0; j < count; j++)
            REQUIRE(of_span[j].caller != NAMES_NONE && of_span[j].callee != NAMES_NONE);
        found += (uint64_t)count;
    }
    REQUIRE(spans == model->count && calls == found);
    statistics_free(statistics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct trace_model model; /* with the memory of earlier traces */
    static struct names *names;
    static struct reference reference;
    bool has_any_time;

    random_number = sum_of(data, size);
    names = names ? names : names_new(10, 100);
    source = (struct fuzz){data, data + size};
    has_any_time = take(&source, 1) % 4 == 0;
    memset(&reference, 0, sizeof(reference));
    trace_model_clear(&model);
    while (source.at < source.end && model.count < REFERENCE_SPANS) {
        struct trace_span span = take_span(has_any_time);

        REQUIRE(trace_model_add(&model, &span));
        if (span.parent_id == span.id && !span.is_shared)
            span.parent_id = 0;
        reference.spans[reference.count++] = span;
    }
    REQUIRE(trace_model_link(&model));
    if (model.count == 0)
        return 0;
    check_any(&model);
    if (!has_any_time)
        REQUIRE(reference_compare(&reference, &model) == NULL);
    if (is_one_in(20, data, size))
        check_statistics(&model, names);
    return 0;
}

#pragma clang attribute pop

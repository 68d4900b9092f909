/*
 * Fuzzes the wanted traces: filters with any ids and times want just their events, and give their
 * reasons. The JSON of found spans with ids that meet has just these spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "tools/agent/only.h"

#include <inttypes.h>
#include <jansson.h>

/* libFuzzer chooses inputs by their coverage of the product, not of this file */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#define FILTERS_MAX      12
#define FUZZED_SPANS_MAX 40

static struct fuzz source;

/* ---- filters ---- */

struct only_id {
    bool is_any;
    uint64_t high, low;
    int64_t from_ns, until_ns;
    char why[32];
};

static struct only_id filters[FILTERS_MAX];
static unsigned filter_count;

/* Returns one of few ids, so that they meet; some have only the lower half. */
static uint64_t take_id(void)
{
    static const uint64_t ids[] = {0, 1, 2, UINT64_C(1) << 63, UINT64_MAX};

    return ids[take(&source, 1) % 5];
}

static struct only_id take_filter(void)
{
    struct only_id filter = {.is_any = take(&source, 1) < 32, .high = take_id(), .low = take_id()};

    if (!(filter.high | filter.low))
        filter.low = 7;
    filter.from_ns = (int64_t)(take(&source, 1) % 16);
    filter.until_ns = (int64_t)(take(&source, 1) % 32);
    if (filter.until_ns && filter.until_ns <= filter.from_ns)
        filter.until_ns = filter.from_ns + 1;
    snprintf(filter.why, sizeof(filter.why), "why %u", filter_count);
    return filter;
}

static bool is_of(const struct only_id *filter, uint64_t high, uint64_t low)
{
    return filter->is_any ||
           (filter->low == low && (filter->high == high || filter->high == 0 || high == 0));
}

static void check_wants(const struct only *only)
{
    const uint64_t high = take_id(), low = take_id();
    const int64_t time_ns = (int64_t)(take(&source, 1) % 40);
    const struct only_id *first = NULL;
    bool is_wanted = false;
    struct text why;

    for (unsigned i = 0; i < filter_count; i++) {
        if (!is_of(&filters[i], high, low))
            continue;
        first = first ? first : &filters[i];
        is_wanted |= time_ns >= filters[i].from_ns &&
                     (!filters[i].until_ns || time_ns < filters[i].until_ns);
    }
    REQUIRE(only_wants(only, high, low, time_ns) == is_wanted);
    why = only_why(only, high, low);
    REQUIRE(first ? text_is(why, first->why) : why.length == 0);
}

static void try_filters(void)
{
    const unsigned count = 1 + (unsigned)(take(&source, 1) % FILTERS_MAX);
    struct only *only = only_new();

    REQUIRE(only);
    for (filter_count = 0; filter_count < count; filter_count++) {
        const struct only_id made = filters[filter_count] = take_filter();
        const struct trace_id id = {made.high, made.low};

        REQUIRE(only_add(only, made.is_any ? NULL : &id, made.from_ns, made.until_ns, made.why));
    }
    while (source.at < source.end)
        check_wants(only);
    only_free(only);
}

/* ---- found spans ---- */

static struct span spans[FUZZED_SPANS_MAX];
static unsigned span_count;

static bool has_id(json_t *list, uint64_t id)
{
    char text[17];
    size_t i, found = 0;
    json_t *element;

    snprintf(text, sizeof(text), "%016" PRIx64, id);
    json_array_foreach(list, i, element) found += strcmp(json_string_value(element), text) == 0;
    REQUIRE(found <= 1);
    return found == 1;
}

/* Compares by lower halves, because the result may have one trace or several with the same one. */
static void check_span(json_t *traces, const struct span *span)
{
    bool is_told = false;
    json_t *trace;
    char low[17];
    size_t i;

    snprintf(low, sizeof(low), "%016" PRIx64, span->trace_id);
    json_array_foreach(traces, i, trace)
    {
        const char *id = json_string_value(json_object_get(trace, "id"));

        is_told |= strcmp(id + 16, low) == 0 && has_id(json_object_get(trace, "have"), span->id) &&
                   (!span->parent_id || has_id(json_object_get(trace, "have"), span->parent_id) ||
                    has_id(json_object_get(trace, "want"), span->parent_id));
    }
    REQUIRE(is_told);
}

/* Requires that a trace beyond that has no span, and is only somebody's parent. */
static void check_wanted(json_t *trace)
{
    json_t *want;
    size_t i;

    json_array_foreach(json_object_get(trace, "want"), i, want)
    {
        const uint64_t id = strtoull(json_string_value(want), NULL, 16);
        bool is_parent = false;

        for (unsigned at = 0; at < span_count; at++)
            is_parent |= spans[at].parent_id == id;
        REQUIRE(is_parent && !has_id(json_object_get(trace, "have"), id));
    }
}

static void check_found(json_t *found)
{
    json_t *trace;
    json_t *traces = json_object_get(found, "traces");
    json_int_t told = 0;
    size_t i;

    REQUIRE(found && json_is_array(traces));
    json_array_foreach(traces, i, trace)
    {
        REQUIRE(strlen(json_string_value(json_object_get(trace, "id"))) == 32);
        told += json_integer_value(json_object_get(trace, "spans"));
        check_wanted(trace);
    }
    REQUIRE(told == (json_int_t)span_count);
    for (unsigned at = 0; at < span_count; at++)
        check_span(traces, &spans[at]);
    json_decref(found);
}

static void try_found(void)
{
    struct only *only = only_new();

    REQUIRE(only);
    for (span_count = 0; span_count < FUZZED_SPANS_MAX && source.at < source.end; span_count++) {
        spans[span_count] = (struct span){.trace_id_high = take_id(), .trace_id = take_id()};
        spans[span_count].id = take(&source, 1) % 8 + 1;
        spans[span_count].parent_id = take(&source, 1) % 12;
        only_note(only, &spans[span_count]);
    }
    check_found(only_found(only));
    only_free(only);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t choice;

    random_number = sum_of(data, size);
    source = (struct fuzz){data, data + size};
    choice = take(&source, 1);
    if (choice < 200)
        try_filters();
    else
        try_found();
    return 0;
}

#pragma clang attribute pop

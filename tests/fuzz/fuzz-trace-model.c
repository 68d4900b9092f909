/*
 * Fuzzes the linking of a trace. Spans with small times must have the parents that a slow search
 * finds, and all that follows from parents and times. Spans with times of any size must keep the
 * general requirements. Calls and statistics have every span once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/model/model.h"
#include "babeltrace-plugin/model/statistics.h"

#include <string.h>

#define MODEL_SPANS 64
#define MODEL_TIME  64 /* starts and durations are below this */
#define MODEL_ALIKE 8  /* the most spans of one id: SAME_ID_MAX of model.c */

static struct fuzz source;
static struct trace_span given[MODEL_SPANS]; /* by the number in the upper bits of the name */

static struct trace_span take_span(bool has_any_time, uint32_t number)
{
    struct trace_span span;
    uint64_t bits;

    memset(&span, 0, sizeof(span)); /* the padding, too, because it is compared */
    span.id = take(&source, 1) % 16;
    span.parent_id = take(&source, 1) % 16;
    span.start_ns = (int64_t)take(&source, has_any_time ? 8 : 1);
    span.duration_ns = (int64_t)take(&source, has_any_time ? 8 : 1);
    if (!has_any_time) {
        span.start_ns %= MODEL_TIME;
        span.duration_ns %= MODEL_TIME;
    }
    bits = take(&source, 2);
    span.service = (uint32_t)(bits & 3);
    span.remote_service = (uint32_t)(bits >> 2 & 3);
    span.kind = (uint8_t)((bits >> 4 & 7) % (SPAN_CONSUMER + 1));
    span.is_shared = (bits >> 7 & 7) == 0;
    span.is_error = bits >> 10 & 1;
    span.name = number << 2 | (uint32_t)(bits >> 11 & 3);
    return span;
}

/* ---- the order of time, and halves of calls ---- */

static const struct trace_span *given_of(const struct trace_span *span)
{
    return &given[span->name >> 2];
}

/* Returns the number of spans before span i that have the id of span i. */
static uint32_t rank_of(const struct trace_model *model, uint32_t i)
{
    uint32_t rank = 0;

    for (uint32_t j = 0; j < i; j++)
        rank += model->spans[j].id == model->spans[i].id;
    return rank;
}

/* Returns true if the span is marked as a server's half, or has the id of a client's span. */
static bool is_servers_half(const struct trace_model *model, uint32_t i)
{
    bool is_half = given_of(&model->spans[i])->is_shared;

    for (uint32_t j = 0; j < model->count; j++)
        is_half |= model->spans[j].id == model->spans[i].id &&
                   model->spans[j].kind == SPAN_CLIENT && !given_of(&model->spans[j])->is_shared &&
                   model->spans[i].kind == SPAN_SERVER && rank_of(model, j) < MODEL_ALIKE;
    return is_half;
}

/* Requires the order of starts; spans without a start are last. Spans with equal starts stay in the
 * order in which they were added. */
static void check_spans(const struct trace_model *model)
{
    for (uint32_t i = 0; i < model->count; i++) {
        struct trace_span expected = *given_of(&model->spans[i]);
        const struct trace_span *before = i ? &model->spans[i - 1] : NULL;
        const int64_t start_ns = model->spans[i].start_ns;

        expected.is_shared = is_servers_half(model, i);
        REQUIRE(memcmp(&expected, &model->spans[i], sizeof(expected)) == 0);
        if (before && before->start_ns == start_ns)
            REQUIRE(before->name >> 2 < expected.name >> 2);
        else if (before)
            REQUIRE(before->start_ns && (before->start_ns < start_ns || !start_ns));
    }
}

/* ---- parents ---- */

static uint32_t find(const struct trace_model *model, uint32_t i, bool own_service, bool is_shared)
{
    const struct trace_span *span = &model->spans[i];
    const uint64_t wanted = span->is_shared ? span->id : span->parent_id;

    for (uint32_t j = 0; j < model->count; j++) {
        const struct trace_span *other = &model->spans[j];

        if (j != i && other->id == wanted && other->is_shared == is_shared &&
            !(span->is_shared && other->is_shared) && rank_of(model, j) < MODEL_ALIKE &&
            (!own_service || other->service == span->service))
            return j;
    }
    return TRACE_NONE;
}

static uint32_t find_parent(const struct trace_model *model, uint32_t i)
{
    /* the order of preference: both halves in the span's own service, then in any service */
    static const struct {
        bool own_service, is_shared;
    } ways[] = {{true, true}, {true, false}, {false, false}, {false, true}};
    const struct trace_span *span = &model->spans[i];
    uint32_t found = TRACE_NONE;

    if (!span->is_shared && !span->parent_id)
        return TRACE_NONE;
    for (int way = 0; way < 4 && found == TRACE_NONE; way++)
        found = find(model, i, ways[way].own_service, ways[way].is_shared);
    if (found == TRACE_NONE && span->is_shared && span->parent_id && span->parent_id != span->id) {
        for (uint32_t j = model->count; j-- > 0;)
            found = model->spans[j].id == span->parent_id ? j : found;
    }
    return found;
}

static void check_parents(const struct trace_model *model)
{
    uint32_t parents[MODEL_SPANS], roots = 0, orphans = 0, above;

    for (uint32_t i = 0; i < model->count; i++)
        parents[i] = find_parent(model, i);
    for (uint32_t i = 0; i < model->count; i++) {
        bool is_orphan =
            parents[i] == TRACE_NONE && model->spans[i].parent_id && !model->spans[i].is_shared;

        above = parents[i];
        for (uint32_t steps = 0; steps < model->count && above != TRACE_NONE && above != i; steps++)
            above = parents[above];
        if (above == i) { /* the first of its cycle */
            parents[i] = TRACE_NONE;
            is_orphan = true;
        }
        REQUIRE(model->nodes[i].parent == parents[i] && model->nodes[i].is_orphan == is_orphan);
        orphans += is_orphan;
        roots += parents[i] == TRACE_NONE && !is_orphan;
    }
    REQUIRE(model->roots == roots && model->orphans == orphans);
}

/* ---- what follows from parents and times ---- */

/* Computes the self time tick by tick. */
static int64_t self_of(const struct trace_model *model, uint32_t i)
{
    const struct trace_span *span = &model->spans[i];
    int64_t self = 0;

    for (int64_t t = span->start_ns; t < span->start_ns + span->duration_ns; t++) {
        bool is_own = true;

        for (uint32_t j = 0; j < model->count && span->start_ns; j++) {
            const struct trace_span *child = &model->spans[j];

            is_own &= !(model->nodes[j].parent == i && child->start_ns && child->start_ns <= t &&
                        t < child->start_ns + child->duration_ns);
        }
        self += is_own;
    }
    return self;
}

/* Requires each span once, after its parent, and siblings in the order of time; orphans last. */
static void check_tree(const struct trace_model *model)
{
    bool is_seen[MODEL_SPANS] = {false};
    uint32_t before = TRACE_NONE;

    for (uint32_t i = model->first_top; i != TRACE_NONE; i = trace_model_next(model, i)) {
        const struct trace_node *node = &model->nodes[i];
        const struct trace_node *above =
            node->parent == TRACE_NONE ? NULL : &model->nodes[node->parent];

        REQUIRE(!is_seen[i] && (!above || is_seen[node->parent]));
        is_seen[i] = true;
        REQUIRE(node->depth == (above ? above->depth + 1 : 0));
        REQUIRE(node->ancestor_with_kind == (!above || model->spans[node->parent].kind != SPAN_LOCAL
                                                 ? node->parent
                                                 : above->ancestor_with_kind));
        REQUIRE(node->self_ns == self_of(model, i));
        REQUIRE(!above || node->next == TRACE_NONE || node->next > i);
        if (!above && before != TRACE_NONE)
            REQUIRE(model->nodes[before].is_orphan == node->is_orphan ? before < i
                                                                      : node->is_orphan);
        before = above ? before : i;
    }
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
    bool has_any_time;

    random_number = hash_of(data, size);
    names = names ? names : names_new(10, 100);
    source = (struct fuzz){data, data + size};
    has_any_time = take(&source, 1) % 4 == 0;
    trace_model_clear(&model);
    while (source.at < source.end && model.count < MODEL_SPANS) {
        struct trace_span span = take_span(has_any_time, model.count);

        given[model.count] = span;
        if (span.parent_id == span.id && !span.is_shared)
            given[model.count].parent_id = 0;
        REQUIRE(trace_model_add(&model, &span));
    }
    REQUIRE(trace_model_link(&model));
    if (model.count == 0)
        return 0;
    check_any(&model);
    if (!has_any_time) {
        check_spans(&model);
        check_parents(&model);
        check_tree(&model);
    }
    if (is_one_in(20, data, size))
        check_statistics(&model, names);
    return 0;
}

/*
 * A second, slow implementation of trace_model_link(). The fuzzer compares both.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_FUZZ_TRACE_REFERENCE_H
#define TESTS_FUZZ_TRACE_REFERENCE_H

#include "babeltrace-plugin/model/model.h"

#include <stdlib.h>
#include <string.h>

#define REFERENCE_SPANS 64
#define REFERENCE_TIME  128 /* starts and ends are below this */
#define REFERENCE_ALIKE 8   /* the most spans of one id: SAME_ID_MAX of model.c */

struct reference {
    struct trace_span spans[REFERENCE_SPANS];
    uint32_t parents[REFERENCE_SPANS];
    bool orphans[REFERENCE_SPANS];
    uint32_t count;
};

/* Sorts by start, stable. Spans without a start are last. */
static void reference_sort(struct reference *r)
{
    for (uint32_t i = 1; i < r->count; i++) {
        for (uint32_t j = i; j > 0; j--) {
            const struct trace_span *a = &r->spans[j - 1], *b = &r->spans[j];
            const bool wrong = b->start_ns && (!a->start_ns || a->start_ns > b->start_ns);
            const struct trace_span moved = *a;

            if (!wrong)
                break;
            r->spans[j - 1] = *b;
            r->spans[j] = moved;
        }
    }
}

/* Returns the number of spans before span i that have the id of span i. */
static uint32_t reference_rank(const struct reference *r, uint32_t i)
{
    uint32_t rank = 0;

    for (uint32_t j = 0; j < i; j++)
        rank += r->spans[j].id == r->spans[i].id;
    return rank;
}

/* Marks the servers' halves of calls: a server's span with the id of a client's span. */
static void reference_mark_shared(struct reference *r)
{
    bool shared[REFERENCE_SPANS];

    for (uint32_t i = 0; i < r->count; i++) {
        shared[i] = r->spans[i].is_shared;
        for (uint32_t j = 0; j < r->count; j++) {
            if (r->spans[j].id == r->spans[i].id && r->spans[j].kind == SPAN_CLIENT &&
                !r->spans[j].is_shared && r->spans[i].kind == SPAN_SERVER &&
                reference_rank(r, j) < REFERENCE_ALIKE)
                shared[i] = true;
        }
    }
    for (uint32_t i = 0; i < r->count; i++)
        r->spans[i].is_shared = shared[i];
}

static uint32_t reference_find(const struct reference *r, uint32_t i, bool own_service,
                               bool is_shared)
{
    const struct trace_span *span = &r->spans[i];
    const uint64_t wanted = span->is_shared ? span->id : span->parent_id;

    for (uint32_t j = 0; j < r->count; j++) {
        const struct trace_span *other = &r->spans[j];

        if (j != i && other->id == wanted && other->is_shared == is_shared &&
            !(span->is_shared && other->is_shared) && reference_rank(r, j) < REFERENCE_ALIKE &&
            (!own_service || other->service == span->service))
            return j;
    }
    return TRACE_NONE;
}

static uint32_t reference_parent(const struct reference *r, uint32_t i)
{
    /* the order of preference: both halves in the span's own service, then in any service */
    static const struct {
        bool own_service, is_shared;
    } ways[] = {{true, true}, {true, false}, {false, false}, {false, true}};
    const struct trace_span *span = &r->spans[i];
    uint32_t found = TRACE_NONE;

    if (!span->is_shared && !span->parent_id)
        return TRACE_NONE;
    for (int way = 0; way < 4 && found == TRACE_NONE; way++)
        found = reference_find(r, i, ways[way].own_service, ways[way].is_shared);
    if (found == TRACE_NONE && span->is_shared && span->parent_id && span->parent_id != span->id) {
        for (uint32_t j = r->count; j-- > 0;)
            found = r->spans[j].id == span->parent_id ? j : found;
    }
    return found;
}

static bool reference_is_above(const struct reference *r, uint32_t above, uint32_t i)
{
    for (uint32_t steps = 0; steps <= r->count && i != TRACE_NONE; steps++) {
        i = r->parents[i];
        if (i == above)
            return true;
    }
    return false;
}

static void reference_link(struct reference *r)
{
    reference_sort(r);
    reference_mark_shared(r);
    for (uint32_t i = 0; i < r->count; i++) {
        r->parents[i] = reference_parent(r, i);
        r->orphans[i] =
            r->parents[i] == TRACE_NONE && r->spans[i].parent_id && !r->spans[i].is_shared;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        if (reference_is_above(r, i, i)) { /* the first of its circle */
            r->parents[i] = TRACE_NONE;
            r->orphans[i] = true;
        }
    }
}

/* Computes the self time tick by tick. */
static int64_t reference_self(const struct reference *r, uint32_t i)
{
    const struct trace_span *span = &r->spans[i];
    int64_t self = 0;

    for (int64_t t = span->start_ns; t < span->start_ns + span->duration_ns; t++) {
        bool is_own = true;

        for (uint32_t j = 0; j < r->count && span->start_ns; j++) {
            const struct trace_span *child = &r->spans[j];

            if (r->parents[j] == i && child->start_ns && child->start_ns <= t &&
                t < child->start_ns + child->duration_ns)
                is_own = false;
        }
        self += is_own;
    }
    return self;
}

static uint32_t reference_depth(const struct reference *r, uint32_t i)
{
    return r->parents[i] == TRACE_NONE ? 0 : 1 + reference_depth(r, r->parents[i]);
}

static uint32_t reference_remote(const struct reference *r, uint32_t i)
{
    do
        i = r->parents[i];
    while (i != TRACE_NONE && r->spans[i].kind == SPAN_LOCAL);
    return i;
}

/* Returns the first difference to the linked trace; NULL: none. */
static const char *reference_compare(struct reference *r, const struct trace_model *model)
{
    uint32_t seen = 0, roots = 0, orphans = 0, before = TRACE_NONE;
    bool is_seen[REFERENCE_SPANS] = {false};

    reference_link(r);
    if (model->count != r->count)
        return "the number of spans";
    for (uint32_t i = 0; i < r->count; i++) {
        const struct trace_node *node = &model->nodes[i];

        if (memcmp(&model->spans[i], &r->spans[i], sizeof(r->spans[i])) != 0)
            return "order of time";
        if (node->parent != r->parents[i])
            return "a parent";
        if (node->is_orphan != r->orphans[i])
            return "an orphan";
        if (node->depth != reference_depth(r, i))
            return "a depth";
        if (node->remote != reference_remote(r, i))
            return "a remote ancestor";
        if (node->self_ns != reference_self(r, i))
            return "a self time";
        orphans += r->orphans[i];
        roots += r->parents[i] == TRACE_NONE && !r->orphans[i];
    }
    if (model->roots != roots || model->orphans != orphans)
        return "the number of roots or orphans";
    for (uint32_t i = model->first_top; i != TRACE_NONE && seen <= r->count;
         i = trace_model_next(model, i)) {
        const uint32_t parent = model->nodes[i].parent;

        if (is_seen[i])
            return "a span that is in the tree twice";
        is_seen[i] = true;
        seen++;
        if (parent != TRACE_NONE && !is_seen[parent])
            return "a child before its parent";
        if (parent == TRACE_NONE && before != TRACE_NONE &&
            (r->orphans[before] > r->orphans[i] ||
             (r->orphans[before] == r->orphans[i] && before > i)))
            return "the order at the top";
        before = parent == TRACE_NONE ? i : before;
        if (model->nodes[i].next != TRACE_NONE && parent != TRACE_NONE && model->nodes[i].next < i)
            return "the order of siblings";
    }
    return seen == r->count ? NULL : "a span that is not in the tree";
}

#endif

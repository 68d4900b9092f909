/*
 * Calls from one service to another, and whole traces in statistics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "calls.h"

#include "names.h"

static int add_call(struct trace_call *calls, int count, uint32_t caller, uint32_t callee,
                    const struct trace_span *span, bool is_error)
{
    if (caller == NAMES_NONE || callee == NAMES_NONE)
        return count;
    calls[count] = (struct trace_call){caller, callee, span->duration_ns, is_error};
    return count + 1;
}

/* A client without a child calls a service that is not traced. */
static int client_calls(const struct trace_span *span, const struct trace_span *above,
                        bool is_error, struct trace_call *calls)
{
    const uint32_t caller = span->service == NAMES_NONE && above ? above->service : span->service;
    int count = 0;

    if (above && above->service != span->service)
        count = add_call(calls, count, above->service, span->service, span, false);
    return add_call(calls, count, caller, span->remote_service, span, is_error);
}

static int server_calls(const struct trace_span *span, const struct trace_span *above,
                        bool is_error, struct trace_call *calls)
{
    const uint32_t caller =
        above && above->service != NAMES_NONE ? above->service : span->remote_service;

    return add_call(calls, 0, caller, span->service, span, is_error);
}

/* The calls that Zipkin's linker finds. */
static int known_calls(const struct trace_model *trace, uint32_t i, struct trace_call *calls)
{
    const struct trace_span *span = &trace->spans[i];
    const struct trace_node *node = &trace->nodes[i];
    const struct trace_span *above =
        node->remote == TRACE_NONE ? NULL : &trace->spans[node->remote];
    /* the caller may see an error that the server does not see */
    const bool is_error =
        span->is_error || (above && above->is_error && above->kind == SPAN_CLIENT &&
                           above->service != NAMES_NONE && span->parent_id == above->id);

    switch (span->kind) {
    case SPAN_SERVER:
        return server_calls(span, above, is_error, calls);
    case SPAN_CLIENT:
        return node->first_child == TRACE_NONE ? client_calls(span, above, is_error, calls) : 0;
    case SPAN_PRODUCER:
        return add_call(calls, 0, span->service, span->remote_service, span, span->is_error);
    case SPAN_CONSUMER:
        return add_call(calls, 0, span->remote_service, span->service, span, span->is_error);
    default:
        return span->service != NAMES_NONE && span->remote_service != NAMES_NONE
                   ? client_calls(span, above, is_error, calls)
                   : 0;
    }
}

int trace_calls(const struct trace_model *linked, uint32_t span,
                struct trace_call calls[TRACE_CALLS_MAX])
{
    const struct trace_span *self = &linked->spans[span];
    const uint32_t parent = linked->nodes[span].parent;
    int count = 0;

    if (self->kind != SPAN_LOCAL || self->remote_service != NAMES_NONE)
        count = known_calls(linked, span, calls);
    if (count || self->kind == SPAN_PRODUCER || self->kind == SPAN_CONSUMER ||
        parent == TRACE_NONE || linked->spans[parent].service == self->service)
        return count;
    return add_call(calls, 0, linked->spans[parent].service, self->service, self, self->is_error);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static bool add_calls_of(struct statistics *statistics, const struct trace_model *linked,
                         uint32_t span)
{
    struct trace_call calls[TRACE_CALLS_MAX];
    const int count = trace_calls(linked, span, calls);

    for (int i = 0; i < count; i++) {
        struct statistics_row *edge =
            statistics_add(statistics, STATISTICS_EDGES, calls[i].caller, calls[i].callee);

        if (!edge ||
            (calls[i].duration_ns && !histogram_add(&edge->duration, calls[i].duration_ns)))
            return false;
        edge->calls++;
        edge->errors += calls[i].is_error;
    }
    return true;
}

static bool add_rest_of(struct statistics *statistics, struct statistics_row *row,
                        const struct trace_model *linked, uint32_t i)
{
    return row &&
           (!linked->spans[i].duration_ns || histogram_add(&row->self, linked->nodes[i].self_ns)) &&
           add_calls_of(statistics, linked, i);
}

bool statistics_add_rest(struct statistics *statistics, const struct trace_model *linked)
{
    for (uint32_t i = 0; i < linked->count; i++) {
        const struct trace_span *span = &linked->spans[i];

        if (!add_rest_of(statistics,
                         statistics_add(statistics, STATISTICS_ROWS, span->service, span->name),
                         linked, i))
            return false;
    }
    return true;
}

/* Rows that are found before the first of them is changed: the lookups bring all of them into the
 * cache. */
#define ROWS_AHEAD 16U

bool statistics_add_trace(struct statistics *statistics, const struct trace_model *linked)
{
    struct statistics_row *rows[ROWS_AHEAD];

    for (uint32_t first = 0; first < linked->count; first += ROWS_AHEAD) {
        const uint32_t left = linked->count - first;
        const uint32_t count = left < ROWS_AHEAD ? left : ROWS_AHEAD;

        for (uint32_t i = 0; i < count; i++) {
            const struct trace_span *span = &linked->spans[first + i];

            rows[i] = statistics_add(statistics, STATISTICS_ROWS, span->service, span->name);
            if (!rows[i])
                return false;
            histogram_fetch(&rows[i]->duration, span->duration_ns);
            histogram_fetch(&rows[i]->self, linked->nodes[first + i].self_ns);
        }
        for (uint32_t i = 0; i < count; i++) {
            if (!statistics_count(rows[i], &linked->spans[first + i]) ||
                !add_rest_of(statistics, rows[i], linked, first + i))
                return false;
        }
    }
    return true;
}

/*
 * The traces that joins know, and their halves.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "joins_parts.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <stdio.h>
#include <stdlib.h>

#define JOINS_TOLD_MAX 1024 /* the most halves of one trace: one message has all of them */
#define JOINS_LATE_MS  5000 /* a process on a busy host may record a half this late */

/* ---- traces ---------------------------------------------------------------------------------- */

struct joins_trace *joins_trace(const struct joins *joins, struct trace_id id)
{
    struct joins_trace *trace;

    table_find(trace, &joins->traces, hash_number(joins->traces.seed, id.low), in_table,
               trace_id_equal(trace->id, id));
    return trace;
}

struct joins_trace *joins_get(struct joins *joins, struct trace_id id, const char *why, size_t room)
{
    struct joins_trace *trace = joins_trace(joins, id);

    if (trace)
        return trace;
    trace = joins->traces.count < room ? calloc(1, sizeof(*trace)) : NULL;
    if (!trace)
        return NULL;
    trace->id = id;
    trace->until_ms = clock_ms() + JOINS_KEEP_MS;
    trace->again_ms =
        (clock_ms() / JOINS_LATE_MS + 2) * JOINS_LATE_MS; /* one look serves many traces */
    (void)snprintf(trace->why, sizeof(trace->why), "%s", why);
    table_add(&joins->traces, &trace->in_table, hash_number(joins->traces.seed, id.low));
    return trace;
}

void joins_forget(struct joins *joins, struct joins_trace *trace)
{
    struct known_half *next;

    for (; trace->halves; trace->halves = next) {
        next = trace->halves->next;
        table_remove(&joins->halves, &trace->halves->half.in_table);
        free(trace->halves);
    }
    table_remove(&joins->traces, &trace->in_table);
    requests_free(trace->request);
    free(trace);
}

/* ---- halves ---------------------------------------------------------------------------------- */

const struct known_half *joins_root(const struct joins_trace *trace)
{
    const struct known_half *known = trace->halves;

    while (known && known->half.is_client)
        known = known->next;
    return known;
}

bool joins_has(const struct joins *joins, const struct joins_trace *trace,
               const struct join_half *half)
{
    const struct known_half *known;

    table_find(known, &joins->halves, hash_number(joins->halves.seed, half->key), half.in_table,
               known->trace == trace && known->half.span_id == half->span_id &&
                   known->half.is_client == half->is_client);
    return known != NULL;
}

const struct joins_trace *joins_other(const struct joins *joins, const struct join_half *half)
{
    const struct known_half *known;

    JOINS_FOR_EACH_OF_KEY(known, joins, half)
    {
        if (joins_fits(joins, &known->half, half) && !half_is_of(half, known->trace->id))
            return known->trace;
    }
    return NULL;
}

static void joins_mark(const struct joins *joins, const struct known_half *known, const char *why)
{
    const struct join_place *place = &known->trace->place;

    joins->on.mark(joins->on.context, (struct trace_id){place->trace_id_high, place->trace_id},
                   known->half.start_ns, why);
}

/* If a server's trace of this host is settled elsewhere than under a client that fits, both traces
 * are incomplete. */
static void joins_check(const struct joins *joins, const struct known_half *half)
{
    const struct known_half *other;

    JOINS_FOR_EACH_OF_KEY(other, joins, &half->half)
    {
        const struct known_half *client = half->half.is_client ? half : other,
                                *server = half->half.is_client ? other : half;
        const struct joins_trace *callee = server->trace;

        if (!joins_fits(joins, &other->half, &half->half) || callee == client->trace ||
            callee->state == JOINS_ELSEWHERE || callee->id.high != JOIN_TRACE_HIGH ||
            !callee->is_settled || !client->trace->is_settled ||
            (callee->place.verdict == JOIN_PAIR && callee->place.parent_id == client->half.span_id))
            continue;
        joins_mark(joins, client, callee->why);
        joins_mark(joins, server, callee->why);
    }
}

void joins_settle(struct joins *joins, struct joins_trace *trace)
{
    trace->is_settled = true;
    for (const struct known_half *known = trace->halves; known; known = known->next)
        joins_check(joins, known);
}

bool joins_know(struct joins *joins, struct joins_trace *trace, const struct join_half *half,
                size_t room)
{
    /* the last slot is for the server's half */
    const bool has_room =
        joins->halves.count < room && trace->half_count + half->is_client < JOINS_TOLD_MAX;
    struct known_half *known;

    if (joins_has(joins, trace, half))
        return false;
    known = has_room ? malloc(sizeof(*known)) : NULL;
    if (!known) {
        joins->agent->totals.halves_dropped++;
        trace->is_cut = true;
        return false;
    }
    *known = (struct known_half){*half, trace, trace->halves};
    trace->halves = known;
    trace->half_count++;
    table_add(&joins->halves, &known->half.in_table, hash_number(joins->halves.seed, half->key));
    if (trace->is_settled)
        joins_check(joins, known);
    return true;
}

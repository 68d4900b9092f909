/*
 * Joins: the traces of this host that may be parts of other hosts' traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "joins.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/json.h"

#include <stdio.h>
#include <stdlib.h>

#define JOINS_TRACES_MAX 16384
#define JOINS_TOLD_MAX   1024 /* halves of one trace that other hosts are told of */
#define JOINS_DEPTH_MAX  32   /* calls below each other that one look follows */
#define JOINS_LOOKS_MAX  8    /* of one trace */
#define JOINS_AGAIN_MS   300
#define JOINS_KEEP_MS    120000
#define JOINS_WAIT_MAX   60000              /* the longest look back, in ms */
#define JOINS_MARGIN_NS  INT64_C(100000000) /* a record may have a time before its span's end */
#define JOINS_BACK_NS    INT64_C(10000000000)

enum joins_state {
    JOINS_ELSEWHERE, /* a trace of another host */
    JOINS_LOOK,      /* its halves are not all known */
    JOINS_ASKED,     /* its place is not known */
    JOINS_DONE       /* to be fetched now, or fetched */
};

struct joins_trace {
    struct table_link in_table; /* by the lower half of the id */
    struct trace_id id;
    enum joins_state state;
    struct request *request; /* in JOINS_LOOK and JOINS_ASKED */
    char why[WHY_MAX + 1];
    bool is_looked_for; /* the running look searches its halves */
    bool
        is_awaited; /* JOINS_ELSEWHERE: one of its halves fits a trace of this host in JOINS_LOOK */
    bool is_settled; /* no host has its caller */
    bool has_place;
    unsigned looks;
    int64_t due_ms, deadline_ms, until_ms;
    int64_t from_ns; /* since 1970: its first half known begins then */
    struct join_place place;
};

struct joins {
    struct agent *agent;
    struct joins_calls on;
    struct table traces;
    struct half_set known;               /* halves that a host has told, or that were found here */
    struct request *heard, **last_heard; /* wants of other hosts that wait for a look */
    struct request *looked;              /* the requests that wait for the running look */
    bool is_looking;
    int64_t looked_from_ns; /* since 1970 */
};

/* ---- traces ---------------------------------------------------------------------------------- */

static struct joins_trace *joins_trace(const struct joins *joins, struct trace_id id)
{
    struct joins_trace *trace;

    table_find(trace, &joins->traces, hash_number(joins->traces.seed, id.low), in_table,
               trace_id_equal(trace->id, id));
    return trace;
}

static struct joins_trace *joins_add(struct joins *joins, struct trace_id id, const char *why)
{
    struct joins_trace *trace =
        joins->traces.count < JOINS_TRACES_MAX ? calloc(1, sizeof(*trace)) : NULL;

    if (!trace)
        return NULL;
    trace->id = id;
    trace->until_ms = clock_ms() + JOINS_KEEP_MS;
    (void)snprintf(trace->why, sizeof(trace->why), "%s", why);
    table_add(&joins->traces, &trace->in_table, hash_number(joins->traces.seed, id.low));
    return trace;
}

/* A trace of this host. begin_ns: as of struct wanted. Returns NULL when out of memory. */
static struct joins_trace *joins_want(struct joins *joins, struct trace_id id, const char *why,
                                      int64_t begin_ns)
{
    struct request *request = request_new("", joins->agent->host);
    struct joins_trace *trace = NULL;

    if (request && request_add(request, id, begin_ns, why))
        trace = joins_add(joins, id, why);
    if (!trace) {
        requests_free(request);
        return NULL;
    }
    trace->request = request;
    trace->state = JOINS_LOOK;
    trace->from_ns = begin_ns ? begin_ns : wall_clock_ns() - JOINS_BACK_NS;
    trace->deadline_ms = clock_ms() + config_integer(joins->agent->config, "answer-timeout-ms");
    return trace;
}

void joins_take(struct joins *joins, struct request *request, int64_t due_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < request->count; i++) {
        const struct wanted *wanted = &request->traces[i];
        struct joins_trace *trace = joins_trace(joins, wanted->id);
        const bool is_new = wanted->id.high == JOIN_TRACE_HIGH && !trace;

        if (is_new)
            trace = joins_want(joins, wanted->id, wanted->why, wanted->begin_ns);
        if (trace && trace->state == JOINS_LOOK && is_new)
            trace->due_ms = due_ms;
        else if (trace && (trace->state == JOINS_LOOK || trace->state == JOINS_ASKED))
            joins->agent->totals.traces_asked_again++;
        else
            request->traces[kept++] = *wanted;
    }
    request->count = kept;
}

/* ---- halves ---------------------------------------------------------------------------------- */

/* Returns false if it is known already. */
static bool joins_know(struct joins *joins, const struct join_half *half)
{
    return half_set_add(&joins->known, half, clock_ms() + JOINS_KEEP_MS);
}

static int64_t joins_skew_ns(const struct joins *joins)
{
    return config_integer(joins->agent->config, "join-skew-us") * 1000;
}

/* Returns the trace of a known half that fits; NULL: none fits. */
static const struct joins_trace *joins_caller(const struct joins *joins,
                                              const struct join_half *half)
{
    const uint64_t hash = hash_number(joins->known.halves.seed, half->key);
    const int64_t skew_ns = joins_skew_ns(joins);
    const struct known_half *known;

    table_find(known, &joins->known.halves, hash, half.in_table,
               known->half.key == half->key && join_half_fits(&known->half, half, skew_ns));
    return known ? joins_trace(joins,
                               (struct trace_id){known->half.trace_id_high, known->half.trace_id})
                 : NULL;
}

/* Adds a half of this host. Returns true if the half is new and of a wanted trace. */
static bool joins_weigh(struct joins *joins, const struct join_half *half)
{
    const struct trace_id id = {half->trace_id_high, half->trace_id};
    struct joins_trace *trace = joins_trace(joins, id);
    const struct joins_trace *other;

    if (trace)
        return trace->state == JOINS_LOOK && joins_know(joins, half);
    other = joins_caller(joins, half);
    if (!other || !joins_know(joins, half))
        return false;
    trace = joins_want(joins, id, other->why, half->start_ns);
    if (!trace)
        return false;
    joins->agent->totals.traces_asked++;
    trace->is_looked_for = true;
    return true;
}

/* ---- other hosts ----------------------------------------------------------------------------- */

static void joins_hear_half(struct joins *joins, struct joins_trace *trace, const json_t *text)
{
    const int64_t skew_ns = joins_skew_ns(joins);
    struct join_half half;

    if (!half_read(text, &half) || !half_is_of(&half, trace->id))
        return;
    (void)joins_know(joins, &half);
    if (!trace->from_ns || half.start_ns - skew_ns < trace->from_ns)
        trace->from_ns = half.start_ns - skew_ns;
}

/* Appends the want to the list. */
static void joins_put(struct joins *joins, struct request *request)
{
    request->next = NULL;
    *joins->last_heard = request;
    joins->last_heard = &request->next;
}

void joins_hear(struct joins *joins, struct request *request, const json_t *message)
{
    const json_t *wanted, *text;
    size_t i, k;

    json_array_foreach(json_object_get(message, "traces"), i, wanted)
    {
        struct joins_trace *trace;
        struct trace_id id;

        if (!trace_id_read(text_in(wanted, "id"), &id))
            continue;
        trace = joins_trace(joins, id);
        if (!trace)
            trace = joins_add(joins, id, text_in(wanted, "why"));
        if (!trace || trace->state != JOINS_ELSEWHERE)
            continue;
        json_array_foreach(json_object_get(wanted, "halves"), k, text)
            joins_hear_half(joins, trace, text);
    }
    joins_put(joins, request);
}

void joins_hear_settled(struct joins *joins, const json_t *message)
{
    const json_t *text;
    size_t i;

    json_array_foreach(json_object_get(message, "settled"), i, text)
    {
        struct joins_trace *trace;
        struct trace_id id;

        if (!trace_id_read(json_string_value(text), &id))
            continue;
        trace = joins_trace(joins, id);
        if (!trace)
            trace = joins_add(joins, id, "");
        if (trace && trace->state == JOINS_ELSEWHERE)
            trace->is_settled = true;
    }
}

/* ---- looking --------------------------------------------------------------------------------- */

static int64_t joins_look_from(struct joins *joins, int64_t now_ms)
{
    int64_t from_ns = INT64_MAX;
    struct joins_trace *trace;

    table_for_each(trace, &joins->traces, in_table)
    {
        trace->is_looked_for = trace->state == JOINS_LOOK && trace->due_ms <= now_ms;
        if (trace->is_looked_for && trace->from_ns < from_ns)
            from_ns = trace->from_ns;
    }
    for (const struct request *request = joins->heard; request; request = request->next) {
        for (size_t i = 0; i < request->count; i++) {
            trace = joins_trace(joins, request->traces[i].id);
            if (trace && trace->from_ns && trace->from_ns < from_ns)
                from_ns = trace->from_ns;
        }
    }
    return from_ns == INT64_MAX ? from_ns : from_ns - JOINS_MARGIN_NS;
}

static void joins_start_look(struct joins *joins, int64_t now_ms)
{
    const int64_t now_ns = wall_clock_ns();
    int64_t from_ns = joins_look_from(joins, now_ms);
    struct request *look;

    if (from_ns == INT64_MAX && !joins->heard)
        return;
    if (from_ns > now_ns)
        from_ns = now_ns;
    if (from_ns < now_ns - JOINS_WAIT_MAX * INT64_C(1000000))
        from_ns = now_ns - JOINS_WAIT_MAX * INT64_C(1000000);
    joins->looked = joins->heard;
    joins->heard = NULL;
    joins->last_heard = &joins->heard;
    look = request_new("", joins->agent->host);
    joins->is_looking = true;
    if (!look) {
        joins_looked(joins, &(struct halves){.count = 0}, 0, "has no memory");
        return;
    }
    look->is_look = true;
    look->came_mono_ns = clock_ns();
    look->last_ms = (now_ns - from_ns) / 1000000 + 1;
    joins->looked_from_ns = from_ns;
    joins->on.look(joins->on.context, look);
}

/* Sends the want of a trace whose halves are known. */
static void joins_ask(struct joins *joins, struct joins_trace *trace)
{
    json_t *list = json_array();
    const struct known_half *known;

    table_for_each(known, &joins->known.halves, half.in_table)
    {
        if (half_is_of(&known->half, trace->id) && json_array_size(list) < JOINS_TOLD_MAX)
            (void)json_array_append_new(list, half_json(&known->half));
    }
    trace->state = JOINS_ASKED;
    trace->deadline_ms = clock_ms() + config_integer(joins->agent->config, "answer-timeout-ms");
    joins->on.want(joins->on.context, trace->request, list);
}

/* Looks again, if the trace began before the look, or its root has not ended. */
static void joins_after_look(struct joins *joins, struct joins_trace *trace, int64_t now_ms)
{
    bool has_root = trace->id.high != JOIN_TRACE_HIGH;
    int64_t from_ns = trace->from_ns;
    const struct known_half *known;

    table_for_each(known, &joins->known.halves, half.in_table)
    {
        if (!half_is_of(&known->half, trace->id))
            continue;
        has_root |= !known->half.is_client;
        from_ns = known->half.start_ns < from_ns ? known->half.start_ns : from_ns;
    }
    trace->is_looked_for = false;
    trace->from_ns = from_ns;
    if (++trace->looks < JOINS_LOOKS_MAX && from_ns < joins->looked_from_ns)
        trace->due_ms = now_ms;
    else if (!has_root && now_ms < trace->deadline_ms)
        trace->due_ms = now_ms + JOINS_AGAIN_MS;
    else
        joins_ask(joins, trace);
}

/* Marks the traces of other hosts that may call, or be called by, a trace of this host in
 * JOINS_LOOK. Their requests are answered after that trace's halves are known. */
static void joins_note_awaited(struct joins *joins)
{
    const int64_t skew_ns = joins_skew_ns(joins);
    const struct known_half *known, *other;
    struct joins_trace *trace;

    table_for_each(trace, &joins->traces, in_table) trace->is_awaited = false;
    table_for_each(known, &joins->known.halves, half.in_table)
    {
        const struct join_half *half = &known->half;

        trace = joins_trace(joins, (struct trace_id){half->trace_id_high, half->trace_id});
        if (!trace || trace->state != JOINS_LOOK)
            continue;
        table_for_each_of(other, &joins->known.halves, half->in_table.hash, half.in_table)
        {
            if (other->half.key != half->key || !join_half_fits(&other->half, half, skew_ns))
                continue;
            trace = joins_trace(joins,
                                (struct trace_id){other->half.trace_id_high, other->half.trace_id});
            if (trace)
                trace->is_awaited = true;
        }
    }
}

/* Answers after the wants were sent, so that the other host knows the traces of this host first. */
static void joins_answer(struct joins *joins, int64_t held_from_ns, const char *problem)
{
    struct request *request;

    joins_note_awaited(joins);
    while ((request = joins->looked) != NULL) {
        bool is_awaited = false;

        joins->looked = request->next;
        request->next = NULL;
        for (size_t i = 0; i < request->count && !problem; i++) {
            const struct joins_trace *trace = joins_trace(joins, request->traces[i].id);

            is_awaited |= trace && trace->is_awaited;
        }
        if (is_awaited) {
            joins_put(joins, request);
            continue;
        }
        joins->on.answer(joins->on.context, request, held_from_ns, problem);
        requests_free(request);
    }
}

void joins_looked(struct joins *joins, const struct halves *found, int64_t held_from_ns,
                  const char *problem)
{
    const int64_t now_ms = clock_ms();
    struct joins_trace *trace;
    bool has_more = true;

    joins->is_looking = false;
    for (unsigned depth = 0; has_more && depth < JOINS_DEPTH_MAX; depth++) {
        has_more = false;
        for (size_t i = 0; i < found->count; i++)
            has_more |= joins_weigh(joins, &found->list[i]);
    }
    table_for_each(trace, &joins->traces, in_table)
    {
        if (trace->state == JOINS_LOOK && trace->is_looked_for)
            joins_after_look(joins, trace, now_ms);
    }
    joins_answer(joins, held_from_ns, problem);
}

/* ---- the place of a trace -------------------------------------------------------------------- */

static void joins_finish(struct joins *joins, struct joins_trace *trace, const char *doubt)
{
    struct request *request = trace->request;

    trace->request = NULL;
    trace->state = JOINS_DONE;
    trace->until_ms = clock_ms() + JOINS_KEEP_MS;
    joins->on.fetch(joins->on.context, request, doubt);
}

/* True if the trace at the top of that place is settled. */
static bool joins_is_settled(const struct joins *joins, const struct join_place *place)
{
    const struct trace_id id = {place->trace_id_high, place->trace_id};
    const struct joins_trace *top = joins_trace(joins, id);

    return id.high != JOIN_TRACE_HIGH || (top && top->is_settled);
}

static void joins_place(struct joins *joins, const struct stage *stage, struct joins_trace *trace,
                        int64_t now_ms)
{
    const bool is_late = now_ms >= trace->deadline_ms;
    const bool is_marked = trace->id.high == JOIN_TRACE_HIGH;

    trace->has_place = is_marked && join_stage_place(stage, trace->id.low, &trace->place);
    if (!is_marked) {
        joins_finish(joins, trace, NULL);
    } else if (trace->has_place && trace->place.trace_id == trace->id.low) {
        if (!is_late && !joins->on.is_answered(joins->on.context, trace->request))
            return;
        trace->is_settled = true;
        joins->on.settle(joins->on.context, trace->id);
        joins_finish(joins, trace,
                     trace->place.verdict == JOIN_UNSURE
                         ? "two callers fit this request: it stays a trace of its own"
                         : NULL);
    } else if (trace->has_place && joins_is_settled(joins, &trace->place)) {
        joins_finish(joins, trace, NULL);
    } else if (is_late) {
        joins_finish(joins, trace,
                     trace->has_place ? "the host of its caller has not told whose request it is"
                                      : "its first span was not found: its caller is not known");
    }
}

static void joins_place_all(struct joins *joins, int64_t now_ms)
{
    struct stage *stage = NULL;
    struct joins_trace *trace;

    table_for_each(trace, &joins->traces, in_table)
    {
        if (trace->state != JOINS_ASKED)
            continue;
        if (!stage && !(stage = half_set_decide(&joins->known, joins_skew_ns(joins))))
            return;
        joins_place(joins, stage, trace, now_ms);
    }
    if (stage)
        stage->kind->free(stage);
}

/* ---- interface ------------------------------------------------------------------------------- */

static void joins_forget(struct joins *joins, int64_t now_ms)
{
    struct joins_trace *trace;

    table_for_each(trace, &joins->traces, in_table)
    {
        if (trace->request || trace->until_ms >= now_ms)
            continue;
        table_remove(&joins->traces, &trace->in_table);
        free(trace);
    }
    half_set_forget(&joins->known, now_ms);
}

int64_t joins_step(struct joins *joins)
{
    const int64_t now_ms = clock_ms();
    int64_t next_ms = INT64_MAX;
    const struct joins_trace *trace;

    joins_forget(joins, now_ms);
    if (!joins->is_looking)
        joins_start_look(joins, now_ms);
    joins_place_all(joins, now_ms);
    table_for_each(trace, &joins->traces, in_table)
    {
        const int64_t due_ms = trace->state == JOINS_LOOK && !joins->is_looking ? trace->due_ms
                               : trace->state == JOINS_ASKED                    ? trace->deadline_ms
                                                                                : INT64_MAX;

        next_ms = due_ms < next_ms ? due_ms : next_ms;
    }
    return next_ms;
}

bool joins_find(const struct joins *joins, struct trace_id id, struct join_place *place)
{
    const struct joins_trace *trace =
        id.high == JOIN_TRACE_HIGH && joins->traces.count ? joins_trace(joins, id) : NULL;

    if (!trace || !trace->has_place)
        return false;
    *place = trace->place;
    return true;
}

size_t joins_open(const struct joins *joins)
{
    const struct joins_trace *trace;
    size_t open = 0;

    table_for_each(trace, &joins->traces, in_table) open += trace->state == JOINS_LOOK;
    return open;
}

void joins_end(struct joins *joins)
{
    struct joins_trace *trace;

    table_for_each(trace, &joins->traces, in_table)
    {
        if (trace->state == JOINS_LOOK)
            joins_ask(joins, trace);
        if (trace->state == JOINS_ASKED)
            trace->deadline_ms = 0;
    }
    joins_place_all(joins, clock_ms());
}

struct joins *joins_new(struct agent *agent, const struct joins_calls *calls)
{
    struct joins *joins = calloc(1, sizeof(*joins));

    if (!joins)
        return NULL;
    *joins = (struct joins){.agent = agent, .on = *calls};
    joins->last_heard = &joins->heard;
    if (table_init(&joins->traces) && half_set_init(&joins->known))
        return joins;
    joins_free(joins);
    return NULL;
}

static void joins_free_trace(struct table_link *link)
{
    struct joins_trace *trace = caa_container_of(link, struct joins_trace, in_table);

    requests_free(trace->request);
    free(trace);
}

void joins_free(struct joins *joins)
{
    if (!joins)
        return;
    if (joins->traces.buckets)
        table_destroy(&joins->traces, joins_free_trace);
    half_set_free(&joins->known);
    requests_free(joins->heard);
    requests_free(joins->looked);
    free(joins);
}

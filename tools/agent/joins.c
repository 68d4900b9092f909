/* SPDX-License-Identifier: BSD-2-Clause */
#include "joins_parts.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/json.h"

#include <stdio.h>
#include <stdlib.h>

#define JOINS_DEPTH_MAX   32                   /* calls below each other that one look follows */
#define JOINS_LOOKS_MAX   8                    /* looks for one trace */
#define JOINS_AGAIN_MS    300                  /* until the next look for a root */
#define JOINS_BACK_MAX_NS INT64_C(60000000000) /* the most by which a look goes back */
#define JOINS_MARGIN_NS   INT64_C(100000000)   /* a record may have a time before its span's end */
#define JOINS_BACK_NS     INT64_C(10000000000) /* the assumed age of a trace with unknown begin */

#define JOINS_CUT "not all calls between servers were found"

/* ---- traces ---------------------------------------------------------------------------------- */

static int64_t joins_timeout_ms(const struct joins *joins)
{
    return config_integer(joins->agent->config, "answer-timeout-ms");
}

/* Adds the trace to the traces that joins look for. If the trace was there before, joins look for
 * it again. begin_ns: see struct wanted. Returns NULL when out of memory. */
static struct joins_trace *joins_want(struct joins *joins, struct trace_id id, const char *why,
                                      int64_t begin_ns)
{
    struct request *request = request_new("", joins->agent->host);
    struct joins_trace *trace = joins_get(joins, id, why, JOINS_TRACES_MAX);

    if (!trace || !request || !request_add(request, id, begin_ns, why)) {
        requests_free(request);
        return NULL;
    }
    requests_free(trace->request);
    trace->request = request;
    trace->state = JOINS_LOOK;
    trace->looks = 0;
    trace->due_ms = 0;
    if (!begin_ns)
        begin_ns = wall_clock_ns() - JOINS_BACK_NS;
    if (!trace->from_ns || begin_ns < trace->from_ns)
        trace->from_ns = begin_ns;
    trace->deadline_ms = clock_ms() + joins_timeout_ms(joins);
    return trace;
}

void joins_take(struct joins *joins, struct request *request, int64_t due_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < request->count; i++) {
        const struct wanted *wanted = &request->traces[i];
        struct joins_trace *trace = joins_trace(joins, wanted->id);

        if (trace && trace->request) {
            joins->agent->totals.traces_asked_again++;
            continue;
        }
        if (!trace && wanted->id.high == JOIN_TRACE_HIGH) {
            trace = joins_want(joins, wanted->id, wanted->why, wanted->begin_ns);
            if (trace) {
                trace->due_ms = due_ms;
                continue;
            }
            joins->on.mark(joins->on.context, wanted->id,
                           wanted->begin_ns ? wanted->begin_ns : wall_clock_ns(), wanted->why);
        }
        request->traces[kept++] = *wanted;
    }
    request->count = kept;
}

/* Adds a half of this host. Returns true if the half is new and of a wanted trace. */
static bool joins_weigh(struct joins *joins, const struct join_half *half)
{
    const struct trace_id id = {half->trace_id_high, half->trace_id};
    struct joins_trace *trace = joins_trace(joins, id);
    const struct joins_trace *other;

    if (trace && joins_has(joins, trace, half))
        return false;
    if (!trace || trace->state != JOINS_LOOK) {
        /* a half of a trace of this host was recorded late, or it fits a wanted trace */
        other = !trace || trace->state == JOINS_ELSEWHERE ? joins_other(joins, half)
                : trace->is_cut                           ? NULL
                                                          : trace;
        if (!other)
            return false;
        trace = joins_want(joins, id, other->why, half->start_ns);
        joins->is_cut |= !trace;
        if (!trace)
            return false;
        joins->agent->totals.traces_asked++;
    }
    return joins_know(joins, trace, half, JOINS_HALVES_MAX);
}

/* ---- other hosts ----------------------------------------------------------------------------- */

void joins_note(struct joins *joins, const json_t *message, bool is_refused)
{
    const unsigned share = is_refused ? 2 : 1;
    const json_t *wanted, *text;
    size_t i, k;

    json_array_foreach(json_object_get(message, "traces"), i, wanted)
    {
        struct joins_trace *trace;
        struct join_half half;
        struct trace_id id;

        if (!trace_id_read(text_in(wanted, "id"), &id))
            continue;
        trace = joins_get(joins, id, text_in(wanted, "why"), JOINS_TRACES_MAX / share);
        if (!trace) {
            joins->agent->totals.halves_dropped +=
                json_array_size(json_object_get(wanted, "halves"));
            continue;
        }
        json_array_foreach(json_object_get(wanted, "halves"), k, text)
        {
            if (!half_read(text, &half) || !half_is_of(&half, id))
                continue;
            (void)joins_know(joins, trace, &half, JOINS_HALVES_MAX / share);
            if (!trace->from_ns || half.start_ns - joins->skew_ns < trace->from_ns)
                trace->from_ns = half.start_ns - joins->skew_ns;
        }
    }
}

void joins_queue_want(struct joins *joins, struct request *request)
{
    request->next = NULL;
    *joins->last_other = request;
    joins->last_other = &request->next;
}

void joins_take_settled(struct joins *joins, const json_t *message)
{
    const json_t *value;
    size_t i;

    json_array_foreach(json_object_get(message, "settled"), i, value)
    {
        const char *text = json_string_value(value);
        char first[TRACE_ID_TEXT];
        struct joins_trace *trace;
        struct trace_id id, place;

        (void)snprintf(first, sizeof(first), "%.32s", text ? text : "");
        if (!trace_id_read(first, &id) || !trace_id_read(text + 32, &place))
            continue;
        trace = joins_trace(joins, id);
        if (!trace || trace->state != JOINS_ELSEWHERE || trace->is_settled)
            continue;
        trace->place.trace_id_high = place.high;
        trace->place.trace_id = place.low;
        joins_settle(joins, trace);
    }
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Returns the time from which a look that is due searches for halves, since 1970; INT64_MAX: no
 * look is due. */
static int64_t joins_look_from(struct joins *joins, int64_t now_ms)
{
    int64_t from_ns = INT64_MAX;
    struct joins_trace *trace;

    table_for_each(trace, &joins->traces, in_table)
    {
        const bool is_again = trace->again_ms <= now_ms,
                   is_due = is_again || (trace->state == JOINS_LOOK && trace->due_ms <= now_ms);

        if (is_again)
            trace->again_ms = INT64_MAX;
        if (is_due && trace->from_ns && trace->from_ns < from_ns)
            from_ns = trace->from_ns;
    }
    for (const struct request *request = joins->others; request; request = request->next) {
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

    if (from_ns == INT64_MAX && !joins->others)
        return;
    if (from_ns > now_ns)
        from_ns = now_ns;
    if (from_ns < now_ns - JOINS_BACK_MAX_NS)
        from_ns = now_ns - JOINS_BACK_MAX_NS;
    joins->looked = joins->others;
    joins->others = NULL;
    joins->last_other = &joins->others;
    look = request_new("", joins->agent->host);
    joins->is_looking = true;
    joins->is_cut = false;
    joins->looked_ms = now_ms;
    joins->looked_from_ns = from_ns;
    if (!look) {
        joins_looked(joins, &(struct halves){.count = 0}, 0, "has no memory");
        return;
    }
    look->is_look = true;
    look->came_mono_ns = clock_ns();
    look->last_ms = (now_ns - from_ns) / 1000000 + 1;
    joins->on.look(joins->on.context, look);
}

/* Sends the want of a trace whose halves are known. */
static void joins_ask(struct joins *joins, struct joins_trace *trace)
{
    json_t *list = json_array();

    for (const struct known_half *known = trace->halves; known; known = known->next)
        (void)json_array_append_new(list, half_json(&known->half));
    trace->state = JOINS_ASKED;
    trace->is_answered = false;
    trace->deadline_ms = clock_ms() + joins_timeout_ms(joins);
    joins->on.want(joins->on.context, trace->request, list);
}

/* Looks again, if the trace began before the look, or its root has not ended. */
static void joins_after_look(struct joins *joins, struct joins_trace *trace, int64_t now_ms)
{
    const bool has_root = trace->id.high != JOIN_TRACE_HIGH || joins_root(trace);

    for (const struct known_half *known = trace->halves; known; known = known->next)
        if (known->half.start_ns < trace->from_ns)
            trace->from_ns = known->half.start_ns;
    if (++trace->looks < JOINS_LOOKS_MAX && trace->from_ns < joins->looked_from_ns)
        trace->due_ms = now_ms;
    else if (!has_root && now_ms < trace->deadline_ms)
        trace->due_ms = now_ms + JOINS_AGAIN_MS;
    else
        joins_ask(joins, trace);
}

/* Returns true if a trace of this host in JOINS_LOOK may be the caller or a callee of that trace.
 */
static bool joins_is_awaited(const struct joins *joins, const struct joins_trace *trace)
{
    const struct known_half *other;

    for (const struct known_half *known = trace->halves; known; known = known->next) {
        JOINS_FOR_EACH_OF_KEY(other, joins, &known->half)
        {
            if (other->trace->state == JOINS_LOOK && joins_fits(joins, &other->half, &known->half))
                return true;
        }
    }
    return false;
}

/* Answers requests of other hosts. The agent has sent its own wants before, so the asking host
 * knows the traces of this host first. */
static void joins_answer(struct joins *joins, int64_t held_from_ns, const char *problem)
{
    struct request *request;

    while ((request = joins->looked) != NULL) {
        bool is_awaited = false, is_cut = joins->is_cut;

        joins->looked = request->next;
        request->next = NULL;
        for (size_t i = 0; i < request->count && !problem; i++) {
            const struct joins_trace *trace = joins_trace(joins, request->traces[i].id);

            is_awaited |= trace && joins_is_awaited(joins, trace);
            is_cut |= !trace || trace->is_cut;
        }
        if (is_awaited) {
            joins_queue_want(joins, request);
        } else if (!problem && !is_cut && request->count &&
                   request->traces[0].id.high != JOIN_TRACE_HIGH) {
            /* a propagated id may have spans here: the answer lists the spans */
            joins->on.fetch(joins->on.context, request, NULL);
        } else {
            joins->on.answer(joins->on.context, request, held_from_ns,
                             is_cut && !problem ? JOINS_CUT : problem);
            requests_free(request);
        }
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
        if (trace->state != JOINS_LOOK || trace->due_ms > joins->looked_ms)
            continue;
        trace->is_cut |= problem != NULL;
        joins_after_look(joins, trace, now_ms);
    }
    joins_answer(joins, held_from_ns, problem);
}

/* ---- the place of a trace -------------------------------------------------------------------- */

/* Sets the place, and the reason why it is in doubt. Returns false if the host of the caller has
 * yet to tell the caller's place. */
static bool joins_decide(const struct joins *joins, struct joins_trace *trace, bool is_late)
{
    const struct known_half *root = joins_root(trace);
    const struct joins_trace *caller;
    struct join_half *client;

    trace->place = (struct join_place){JOIN_ALONE, trace->id.high, trace->id.low, 0};
    trace->doubt = trace->is_cut ? JOINS_CUT : NULL;
    if (trace->id.high != JOIN_TRACE_HIGH)
        return true;
    if (!root) {
        trace->doubt = "its first span was not found: its caller is not known";
        return true;
    }
    trace->place.verdict = join_find_client(&joins->halves, joins->skew_ns, &root->half, &client);
    if (trace->place.verdict == JOIN_UNSURE)
        trace->doubt = "two callers fit this request: it stays a trace of its own";
    if (trace->place.verdict != JOIN_PAIR)
        return true;
    caller = caa_container_of(client, struct known_half, half)->trace;
    if (caller->is_settled) {
        trace->place = (struct join_place){JOIN_PAIR, caller->place.trace_id_high,
                                           caller->place.trace_id, client->span_id};
        return true;
    }
    trace->doubt = "the host of its caller has not told whose request it is";
    trace->place.verdict = JOIN_ALONE;
    return is_late;
}

static void joins_tell_settled(struct joins *joins, const struct joins_trace *trace)
{
    char text[2 * TRACE_ID_TEXT];

    trace_id_text(trace->id, text);
    trace_id_text((struct trace_id){trace->place.trace_id_high, trace->place.trace_id}, text + 32);
    if (!joins->settled)
        joins->settled = json_array();
    (void)json_array_append_new(joins->settled, json_string(text));
}

/* Returns true if the trace is to be collected now. */
static bool joins_place(struct joins *joins, struct joins_trace *trace, int64_t now_ms)
{
    struct request *request = trace->request;

    if (!trace->is_answered) {
        if (now_ms < trace->deadline_ms && !joins->on.is_answered(joins->on.context, request))
            return false;
        trace->is_answered = true;
        trace->deadline_ms = now_ms + joins_timeout_ms(joins); /* of the caller's host */
    }
    if (!trace->is_settled) {
        if (!joins_decide(joins, trace, now_ms >= trace->deadline_ms))
            return false;
        joins_tell_settled(joins, trace);
        joins_settle(joins, trace);
    }
    if (!scan_queue_room(&joins->agent->scan_queue, request->asker))
        return false; /* until the next scan */
    trace->request = NULL;
    trace->state = JOINS_DONE;
    trace->until_ms = clock_ms() + JOINS_KEEP_MS;
    joins->on.fetch(joins->on.context, request, trace->doubt);
    return true;
}

/* Places all traces that can be placed. A settled trace may settle the traces of its callees. */
static void joins_place_all(struct joins *joins, int64_t now_ms)
{
    struct joins_trace *trace;
    bool has_more = true;

    while (has_more) {
        has_more = false;
        table_for_each(trace, &joins->traces, in_table)
        {
            if (trace->state == JOINS_ASKED)
                has_more |= joins_place(joins, trace, now_ms);
        }
    }
    if (joins->settled)
        joins->on.settle(joins->on.context, joins->settled);
    joins->settled = NULL;
}

/* ---- interface ------------------------------------------------------------------------------- */

int64_t joins_step(struct joins *joins)
{
    const int64_t now_ms = clock_ms();
    int64_t next_ms = INT64_MAX;
    struct joins_trace *trace;

    joins->skew_ns = config_integer(joins->agent->config, "join-skew-us") * 1000;
    table_for_each(trace, &joins->traces, in_table)
    {
        if (!trace->request && trace->until_ms < now_ms)
            joins_forget(joins, trace);
    }
    if (!joins->is_looking)
        joins_start_look(joins, now_ms);
    joins_place_all(joins, now_ms);
    table_for_each(trace, &joins->traces, in_table)
    {
        const bool has_to_look = trace->state == JOINS_LOOK && !joins->is_looking,
                   waits =
                       trace->state == JOINS_ASKED && !(trace->is_answered && trace->is_settled);
        const int64_t due_ms = has_to_look ? trace->due_ms : waits ? trace->deadline_ms : INT64_MAX;

        next_ms = due_ms < next_ms ? due_ms : next_ms;
    }
    return next_ms;
}

bool joins_find(const struct joins *joins, struct trace_id id, struct join_place *place)
{
    const struct joins_trace *trace =
        id.high == JOIN_TRACE_HIGH && joins->traces.count ? joins_trace(joins, id) : NULL;

    if (!trace || !trace->is_settled)
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

    /* the first time ends the wait for answers, the second time the wait for callers */
    for (unsigned i = 0; i < 2; i++) {
        table_for_each(trace, &joins->traces, in_table)
        {
            if (trace->state == JOINS_LOOK)
                joins_ask(joins, trace);
            if (trace->state == JOINS_ASKED)
                trace->deadline_ms = 0;
        }
        joins_place_all(joins, clock_ms());
    }
}

struct joins *joins_new(struct agent *agent, const struct joins_calls *calls)
{
    struct joins *joins = calloc(1, sizeof(*joins));

    if (!joins)
        return NULL;
    *joins = (struct joins){.agent = agent, .on = *calls};
    joins->last_other = &joins->others;
    if (table_init(&joins->traces) && table_init(&joins->halves))
        return joins;
    joins_free(joins);
    return NULL;
}

void joins_free(struct joins *joins)
{
    struct joins_trace *trace;

    if (!joins)
        return;
    table_for_each(trace, &joins->traces, in_table) joins_forget(joins, trace);
    table_destroy(&joins->halves, NULL);
    table_destroy(&joins->traces, NULL);
    requests_free(joins->others);
    requests_free(joins->looked);
    json_decref(joins->settled);
    free(joins);
}

/*
 * Fetches the spans of OpenTelemetry's SDKs, and watches for late ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "later.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/otlp/otlp_write.h"
#include "tools/rings/ring_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATER_MAX       4096  /* watched traces; a further one replaces the oldest */
#define LATER_MS        15000 /* a watch; SDKs send after 5 s, or later with retries */
#define LATER_LOOK_MS   500
#define LATER_BYTES_MAX (UINT64_C(256) << 20) /* the largest message of one fetch */

struct later_trace {
    struct sdk_wanted wanted;
    int64_t until_ms;        /* the end of the watch; 0: a free slot */
    bool is_over;            /* the watch has ended, but `wanted` is still valid */
    uint64_t take;           /* the number of the last later_take() with this trace */
    uint64_t after;          /* wanted.after before that take, for later_take_back() */
    char id[192], host[256]; /* the last request and its host */
    char why[WHY_MAX + 1];
};

struct later {
    struct agent *agent;
    const struct otlp_in *otlp;
    void (*add)(void *context, struct request *request);
    void *context;
    int64_t begun_ns; /* since 1970: the start of this process; spans that came before are lost */
    int64_t next_ms;  /* the time of the next look */
    uint64_t takes;   /* the number of later_take() calls */
    uint64_t fetched; /* totals.foreign_fetched before the last of them */
    struct later_trace traces[LATER_MAX];
};

struct later *later_new(struct agent *agent, const struct otlp_in *otlp,
                        void (*add)(void *context, struct request *request), void *context)
{
    struct later *later = calloc(1, sizeof(*later));

    if (!later)
        return NULL;
    later->agent = agent;
    later->otlp = otlp;
    later->add = add;
    later->context = context;
    later->begun_ns = clock_ns() + ring_clock_offset();
    return later;
}

void later_free(struct later *later)
{
    free(later);
}

/* ---- the message ----------------------------------------------------------------------------- */

struct later_message {
    struct later *later;
    struct buffer *buffer;
    uint64_t resource, scope; /* numbers of the last resource and scope; 0: none yet */
    struct otlp_origin_at places;
};

static char *later_put_origin(struct later_message *message, const struct otlp_origin *origin)
{
    const bool is_new = origin->number != message->resource;
    char *end = message->buffer->data + message->buffer->length;

    if (is_new)
        end = otlp_resource_begin(message->buffer, origin->resource, origin->schema,
                                  &message->places);
    if (is_new || origin->scope_number != message->scope)
        end = otlp_scope_begin(message->buffer, end, origin->scope, origin->scope_schema,
                               &message->places);
    message->resource = origin->number;
    message->scope = origin->scope_number;
    return end;
}

/* Appends the span. Consecutive spans share an equal resource or scope in the message. */
static void later_put_span(void *context, const struct otlp_origin *origin,
                           const struct otlp_span *span)
{
    struct later_message *message = context;
    const bool is_new = origin->number != message->resource;
    const size_t all = OTLP_ORIGIN_MAX +
                       (is_new ? origin->resource.length + origin->schema.length : 0) +
                       origin->scope.length + origin->scope_schema.length + span->raw.length;
    char *at;

    if (message->buffer->length + all > LATER_BYTES_MAX || !buffer_reserve(message->buffer, all)) {
        message->later->agent->totals.foreign_dropped++;
        return;
    }
    at = otlp_put_raw(later_put_origin(message, origin), PB_BYTES(2), span->raw);
    otlp_origin_end(message->buffer, &message->places, at);
    message->later->agent->totals.foreign_fetched++;
}

/* ---- traces ---------------------------------------------------------------------------------- */

int64_t later_held_from(const struct later *later)
{
    const int64_t overwritten_ns = otlp_in_held(later->otlp).ended_ns;

    return overwritten_ns > later->begun_ns ? overwritten_ns : later->begun_ns;
}

/* Returns the slot of the trace. A new trace gets a free slot, or the slot of the oldest. */
static struct later_trace *later_find(struct later *later, struct trace_id id)
{
    struct later_trace *oldest = &later->traces[0];

    for (size_t i = 0; i < LATER_MAX; i++) {
        struct later_trace *trace = &later->traces[i];

        if (trace->until_ms && trace->wanted.trace_id == id.low &&
            trace->wanted.trace_id_high == id.high)
            return trace;
        if (trace->until_ms < oldest->until_ms)
            oldest = trace;
    }
    *oldest = (struct later_trace){.wanted = {.trace_id_high = id.high, .trace_id = id.low}};
    return oldest;
}

/* Notes the time from which on this host has the trace's spans of SDKs. Called only if the trace
 * has such spans. overwritten_ns: the latest end of the senders' overwritten spans. */
static void later_note(const struct later *later, struct trace_id id, int64_t overwritten_ns)
{
    fetched_note_otlp_held(later->agent->fetched, id,
                           overwritten_ns > later->begun_ns ? overwritten_ns : later->begun_ns);
}

static void later_take_traces(struct later *later, const struct request *request,
                              struct later_message *message)
{
    for (size_t i = 0; i < request->count; i++) {
        struct later_trace *trace = later_find(later, request->traces[i].id);

        if (!request->is_late || !trace->until_ms) {
            trace->until_ms = clock_ms() + LATER_MS;
            trace->is_over = false;
        }
        (void)snprintf(trace->id, sizeof(trace->id), "%s", request->id);
        (void)snprintf(trace->host, sizeof(trace->host), "%s", request->host);
        (void)snprintf(trace->why, sizeof(trace->why), "%s", request->traces[i].why);
        if (trace->take != later->takes)
            trace->after = trace->wanted.after;
        trace->take = later->takes;
        otlp_in_take(later->otlp, &trace->wanted, later_put_span, message);
        if (trace->wanted.spans)
            later_note(later, request->traces[i].id, trace->wanted.ended_ns);
    }
}

void later_take(struct later *later, const struct request *requests, int64_t offset_ns,
                struct buffer *buffer)
{
    struct later_message message = {.later = later, .buffer = buffer};

    later->takes++;
    later->fetched = later->agent->totals.foreign_fetched;
    if (requests->last_ms > 0) {
        const struct request_window window = requests_window(requests);

        otlp_in_copy(later->otlp, window.from_ns + offset_ns, window.until_ns + offset_ns,
                     later_put_span, &message);
    } else {
        for (; requests; requests = requests->next)
            later_take_traces(later, requests, &message);
    }
    later->next_ms = clock_ms() + LATER_LOOK_MS;
}

void later_take_back(struct later *later, const struct request *requests)
{
    later->agent->totals.foreign_fetched = later->fetched;
    for (; requests; requests = requests->next)
        for (size_t i = 0; i < requests->count; i++) {
            struct later_trace *trace = later_find(later, requests->traces[i].id);

            if (trace->take == later->takes)
                trace->wanted.after = trace->after;
        }
}

/* ---- late spans ----------------------------------------------------------------------------- */

static void later_count(void *context, const struct otlp_origin *origin,
                        const struct otlp_span *span)
{
    (void)context;
    (void)origin;
    (void)span;
}

static bool later_has_come(const struct later *later, const struct later_trace *trace)
{
    struct sdk_wanted wanted = trace->wanted;

    otlp_in_take(later->otlp, &wanted, later_count, NULL);
    return wanted.spans > 0;
}

static void later_ask(struct later *later, const struct later_trace *trace)
{
    const struct trace_id id = {trace->wanted.trace_id_high, trace->wanted.trace_id};
    struct request *request;

    if (pending_room(&later->agent->pending) == 0 || pending_has(&later->agent->pending, id, NULL))
        return; /* the next look tries again, or the pending request fetches the spans */
    request = request_new(trace->id, trace->host);
    if (!request)
        return;
    request->is_late = true;
    request->came_mono_ns = clock_ns();
    request->at_ns = wall_clock_ns();
    /* the scan reads only the records of the last LATER_MS from the rings */
    if (request_add(request, id, request->at_ns - LATER_MS * INT64_C(1000000), trace->why))
        later->add(later->context, request);
    else
        requests_free(request);
}

int64_t later_look(struct later *later)
{
    const int64_t now_ms = clock_ms();
    bool has_any = false;

    if (now_ms < later->next_ms)
        return later->next_ms;
    for (size_t i = 0; i < LATER_MAX; i++) {
        struct later_trace *trace = &later->traces[i];

        if (!trace->until_ms || trace->is_over)
            continue;
        has_any = true;
        if (later_has_come(later, trace))
            later_ask(later, trace);
        else
            trace->is_over = now_ms >= trace->until_ms;
    }
    later->next_ms = has_any ? now_ms + LATER_LOOK_MS : INT64_MAX;
    return later->next_ms;
}

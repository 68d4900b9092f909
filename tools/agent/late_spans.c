/* SPDX-License-Identifier: BSD-2-Clause */
#include "late_spans.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/otlp/otlp_write.h"

#include <stdio.h>
#include <stdlib.h>

#define LATE_SPANS_MAX       4096 /* watched traces; a further one replaces the oldest */
#define LATE_SPANS_MS        15000 /* length of a watch; SDKs send after 5 s, or later with retries */
#define LATE_SPANS_LOOK_MS   500
#define LATE_SPANS_BYTES_MAX (UINT64_C(256) << 20) /* the largest message of one fetch */

struct late_spans_trace {
    struct sdk_wanted wanted;
    int64_t until_ms;        /* the end of the watch; 0: a free slot */
    bool is_over;            /* the watch has ended, but `wanted` is still valid */
    uint64_t take;           /* the number of the last late_spans_take() with this trace */
    uint64_t after;          /* wanted.after before that take, for late_spans_take_back() */
    char id[192], host[256]; /* the last request and its host */
    char why[WHY_MAX + 1];
};

struct late_spans {
    struct agent *agent;
    const struct otlp_in *otlp;
    void (*add)(void *context, struct request *request);
    void *context;
    int64_t begun_ns;   /* the start of this process; spans that arrived before are lost */
    int64_t next_ms;    /* the time of the next look */
    uint64_t takes;     /* the number of late_spans_take() calls */
    uint64_t collected; /* totals.foreign_fetched before the last call */
    struct late_spans_trace traces[LATE_SPANS_MAX];
};

struct late_spans *late_spans_new(struct agent *agent, const struct otlp_in *otlp,
                                  void (*add)(void *context, struct request *request),
                                  void *context)
{
    struct late_spans *late_spans = calloc(1, sizeof(*late_spans));

    if (!late_spans)
        return NULL;
    late_spans->agent = agent;
    late_spans->otlp = otlp;
    late_spans->add = add;
    late_spans->context = context;
    late_spans->begun_ns = clock_ns();
    return late_spans;
}

void late_spans_free(struct late_spans *late_spans)
{
    free(late_spans);
}

/* ---- the message ----------------------------------------------------------------------------- */

struct late_spans_message {
    struct late_spans *late_spans;
    struct buffer *buffer;
    uint64_t resource, scope; /* numbers of the last resource and scope; 0: none yet */
    struct otlp_origin_at lengths;
};

static char *late_spans_put_origin(struct late_spans_message *message,
                                   const struct otlp_origin *origin)
{
    const bool is_new = origin->number != message->resource;
    char *end = message->buffer->data + message->buffer->length;

    if (is_new)
        end = otlp_resource_begin(message->buffer, origin->resource, origin->schema,
                                  &message->lengths);
    if (is_new || origin->scope_number != message->scope)
        end = otlp_scope_begin(message->buffer, end, origin->scope, origin->scope_schema,
                               &message->lengths);
    message->resource = origin->number;
    message->scope = origin->scope_number;
    return end;
}

/* Appends the span. Consecutive spans share an equal resource or scope in the message. */
static void late_spans_put_span(void *context, const struct otlp_origin *origin,
                                const struct otlp_span *span)
{
    struct late_spans_message *message = context;
    const bool is_new = origin->number != message->resource;
    const size_t all = OTLP_ORIGIN_MAX +
                       (is_new ? origin->resource.length + origin->schema.length : 0) +
                       origin->scope.length + origin->scope_schema.length + span->raw.length;
    char *at;

    if (message->buffer->length + all > LATE_SPANS_BYTES_MAX ||
        !buffer_reserve(message->buffer, all)) {
        message->late_spans->agent->totals.foreign_dropped++;
        return;
    }
    at = otlp_put_raw(late_spans_put_origin(message, origin), PB_BYTES(2), span->raw);
    otlp_origin_end(message->buffer, &message->lengths, at);
    message->late_spans->agent->totals.foreign_fetched++;
}

/* ---- traces ---------------------------------------------------------------------------------- */

int64_t late_spans_held_from(const struct late_spans *late_spans)
{
    const int64_t overwritten_ns = sdk_memory_held(otlp_in_memory(late_spans->otlp)).ended_ns;

    return overwritten_ns > late_spans->begun_ns ? overwritten_ns : late_spans->begun_ns;
}

/* Returns the slot of the trace. A new trace gets a free slot, or the slot of the oldest. */
static struct late_spans_trace *late_spans_find(struct late_spans *late_spans, struct trace_id id)
{
    struct late_spans_trace *oldest = &late_spans->traces[0];

    for (size_t i = 0; i < LATE_SPANS_MAX; i++) {
        struct late_spans_trace *trace = &late_spans->traces[i];

        if (trace->until_ms && trace->wanted.trace_id == id.low &&
            trace->wanted.trace_id_high == id.high)
            return trace;
        if (trace->until_ms < oldest->until_ms)
            oldest = trace;
    }
    *oldest = (struct late_spans_trace){.wanted = {.trace_id_high = id.high, .trace_id = id.low}};
    return oldest;
}

/* Notes the time from which on this host has the trace's spans of SDKs. Called only if the trace
 * has such spans. overwritten_ns: the latest end of the senders' overwritten spans. */
static void late_spans_note(const struct late_spans *late_spans, struct trace_id id,
                            int64_t overwritten_ns)
{
    collected_note_otlp_held(late_spans->agent->collected, id,
                             overwritten_ns > late_spans->begun_ns ? overwritten_ns
                                                                   : late_spans->begun_ns);
}

static void late_spans_take_traces(struct late_spans *late_spans, const struct request *request,
                                   struct late_spans_message *message)
{
    for (size_t i = 0; i < request->count; i++) {
        struct late_spans_trace *trace = late_spans_find(late_spans, request->traces[i].id);

        if (!request->is_late || !trace->until_ms) {
            trace->until_ms = clock_ms() + LATE_SPANS_MS;
            trace->is_over = false;
        }
        (void)snprintf(trace->id, sizeof(trace->id), "%s", request->id);
        (void)snprintf(trace->host, sizeof(trace->host), "%s", request->host);
        (void)snprintf(trace->why, sizeof(trace->why), "%s", request->traces[i].why);
        if (trace->take != late_spans->takes)
            trace->after = trace->wanted.after;
        trace->take = late_spans->takes;
        sdk_memory_take(otlp_in_memory(late_spans->otlp), &trace->wanted, late_spans_put_span,
                        message);
        if (trace->wanted.spans)
            late_spans_note(late_spans, request->traces[i].id, trace->wanted.ended_ns);
    }
}

void late_spans_take(struct late_spans *late_spans, const struct request *requests,
                     int64_t offset_ns, struct buffer *buffer)
{
    struct late_spans_message message = {.late_spans = late_spans, .buffer = buffer};

    late_spans->takes++;
    late_spans->collected = late_spans->agent->totals.foreign_fetched;
    if (requests->last_ms > 0) {
        const struct request_window window = requests_window(requests);

        sdk_memory_copy(otlp_in_memory(late_spans->otlp), window.from_ns + offset_ns,
                        window.until_ns + offset_ns, late_spans_put_span, &message);
    } else {
        for (; requests; requests = requests->next)
            late_spans_take_traces(late_spans, requests, &message);
    }
    late_spans->next_ms = clock_ms() + LATE_SPANS_LOOK_MS;
}

void late_spans_take_back(struct late_spans *late_spans, const struct request *requests)
{
    late_spans->agent->totals.foreign_fetched = late_spans->collected;
    for (; requests; requests = requests->next)
        for (size_t i = 0; i < requests->count; i++) {
            struct late_spans_trace *trace = late_spans_find(late_spans, requests->traces[i].id);

            if (trace->take == late_spans->takes)
                trace->wanted.after = trace->after;
        }
}

/* ---- late spans ------------------------------------------------------------------------------ */

static bool late_spans_has_come(const struct late_spans *late_spans,
                                const struct late_spans_trace *trace)
{
    struct sdk_wanted wanted = trace->wanted;

    sdk_memory_take(otlp_in_memory(late_spans->otlp), &wanted, NULL, NULL);
    return wanted.spans > 0;
}

static void late_spans_ask(struct late_spans *late_spans, const struct late_spans_trace *trace)
{
    const struct trace_id id = {trace->wanted.trace_id_high, trace->wanted.trace_id};
    struct request *request;

    if (scan_queue_room(&late_spans->agent->scan_queue, NULL) == 0 ||
        scan_queue_has(&late_spans->agent->scan_queue, id))
        return; /* the next look tries again, or the waiting request fetches the spans */
    request = request_new(trace->id, trace->host);
    if (!request)
        return;
    request->is_late = true;
    request->came_mono_ns = clock_ns();
    request->at_ns = wall_clock_ns();
    /* the scan reads only the records of the last LATE_SPANS_MS from the rings */
    if (request_add(request, id, request->at_ns - LATE_SPANS_MS * INT64_C(1000000), trace->why))
        late_spans->add(late_spans->context, request);
    else
        requests_free(request);
}

int64_t late_spans_look(struct late_spans *late_spans)
{
    const int64_t now_ms = clock_ms();
    bool has_any = false;

    if (now_ms < late_spans->next_ms)
        return late_spans->next_ms;
    for (size_t i = 0; i < LATE_SPANS_MAX; i++) {
        struct late_spans_trace *trace = &late_spans->traces[i];

        if (!trace->until_ms || trace->is_over)
            continue;
        has_any = true;
        if (late_spans_has_come(late_spans, trace))
            late_spans_ask(late_spans, trace);
        else
            trace->is_over = now_ms >= trace->until_ms;
    }
    late_spans->next_ms = has_any ? now_ms + LATE_SPANS_LOOK_MS : INT64_MAX;
    return late_spans->next_ms;
}

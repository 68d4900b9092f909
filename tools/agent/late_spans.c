/* SPDX-License-Identifier: BSD-2-Clause */
#include "late_spans.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/otlp/otlp_write.h"

#include <stdio.h>
#include <stdlib.h>

#define LATE_SPANS_LOOK_MS   500
#define LATE_SPANS_BYTES_MAX (UINT64_C(256) << 20) /* the largest message of one fetch */

/* The times after a fetch at which the rings are read again. The last one is the length of a watch:
 * SDKs send after 5 s, or later with retries. */
static const int64_t late_spans_reads_ms[] = {3000, 15000};

#define LATE_SPANS_READS (sizeof(late_spans_reads_ms) / sizeof(late_spans_reads_ms[0]))
#define LATE_SPANS_MS    late_spans_reads_ms[LATE_SPANS_READS - 1]

struct late_spans {
    struct agent *agent;
    int64_t begun_ns;   /* the start of this process; spans that arrived before are lost */
    int64_t next_ms;    /* the time of the next look */
    uint64_t takes;     /* the number of late_spans_take() calls */
    uint64_t collected; /* totals.foreign_fetched before the last call */
};

static void late_spans_watch(struct collected_trace *trace, const char *request, const char *host)
{
    trace->watched_ms = clock_ms();
    trace->reads = 0;
    (void)snprintf(trace->request, sizeof(trace->request), "%s", request);
    (void)snprintf(trace->host, sizeof(trace->host), "%s", host);
}

struct late_spans *late_spans_new(struct agent *agent)
{
    struct late_spans *late_spans = calloc(1, sizeof(*late_spans));
    struct collected_trace *trace;

    if (!late_spans)
        return NULL;
    late_spans->agent = agent;
    late_spans->begun_ns = clock_ns();
    collected_for_each(trace, agent->collected)
    {
        if (trace->until_mono_ns &&
            late_spans->begun_ns - trace->until_mono_ns < LATE_SPANS_MS * INT64_C(1000000))
            late_spans_watch(trace, "", agent->host);
    }
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

/* Returns the time from which spans are held. overwritten_ns: the latest end of the overwritten
 * ones. */
static int64_t late_spans_held_since(const struct late_spans *late_spans, int64_t overwritten_ns)
{
    return overwritten_ns > late_spans->begun_ns ? overwritten_ns : late_spans->begun_ns;
}

int64_t late_spans_held_from(const struct late_spans *late_spans)
{
    if (!late_spans->agent->otlp)
        return INT64_MIN;
    return late_spans_held_since(late_spans,
                                 sdk_memory_held(otlp_in_memory(late_spans->agent->otlp)).ended_ns);
}

static void late_spans_take_trace(struct late_spans *late_spans, const struct request *request,
                                  const struct wanted *wanted, struct late_spans_message *message)
{
    const struct trace_id id = wanted->id;
    struct collected_trace unknown = {.id = id},
                           *trace = collected_get(late_spans->agent->collected, id);
    bool is_first;

    if (!trace) /* no room: no late spans */
        trace = &unknown;
    is_first = trace->sdk_take == 0;
    if (!request->is_late || (is_first && !trace->watched_ms))
        late_spans_watch(trace, request->id, request->host);
    /* the store compares also the upper half of ids, which the first request may not know */
    if (is_first || (!trace->sdk.trace_id_high && id.high))
        trace->sdk = (struct sdk_wanted){.trace_id_high = id.high, .trace_id = id.low};
    if (!trace->why[0])
        (void)snprintf(trace->why, sizeof(trace->why), "%s", wanted->why);
    if (trace->sdk_take != late_spans->takes)
        trace->sdk_after = trace->sdk.after;
    trace->sdk_take = late_spans->takes;
    if (!late_spans->agent->otlp)
        return;
    sdk_memory_take(otlp_in_memory(late_spans->agent->otlp), &trace->sdk, late_spans_put_span,
                    message);
    if (trace->sdk.spans)
        collected_note_otlp_held(late_spans->agent->collected, id,
                                 late_spans_held_since(late_spans, trace->sdk.ended_ns));
}

void late_spans_take(struct late_spans *late_spans, const struct request *requests,
                     int64_t offset_ns, struct buffer *buffer)
{
    struct late_spans_message message = {.late_spans = late_spans, .buffer = buffer};

    late_spans->takes++;
    late_spans->collected = late_spans->agent->totals.foreign_fetched;
    if (requests->last_ms > 0) {
        const struct request_window window = requests_window(requests);

        if (late_spans->agent->otlp)
            sdk_memory_copy(otlp_in_memory(late_spans->agent->otlp), window.from_ns + offset_ns,
                            window.until_ns + offset_ns, late_spans_put_span, &message);
    } else {
        for (; requests; requests = requests->next)
            for (size_t i = 0; i < requests->count; i++)
                late_spans_take_trace(late_spans, requests, &requests->traces[i], &message);
    }
    late_spans->next_ms = clock_ms() + LATE_SPANS_LOOK_MS;
}

bool late_spans_taken(const struct late_spans *late_spans, struct trace_id id)
{
    const struct collected_trace *trace = collected_find(late_spans->agent->collected, id);

    return trace && trace->sdk_take == late_spans->takes && trace->sdk.after > trace->sdk_after;
}

void late_spans_take_back(struct late_spans *late_spans, const struct request *requests)
{
    late_spans->agent->totals.foreign_fetched = late_spans->collected;
    for (; requests; requests = requests->next)
        for (size_t i = 0; i < requests->count; i++) {
            struct collected_trace *trace =
                collected_find(late_spans->agent->collected, requests->traces[i].id);

            if (trace && trace->sdk_take == late_spans->takes)
                trace->sdk.after = trace->sdk_after;
        }
}

/* ---- late spans ------------------------------------------------------------------------------ */

/* Requests the spans that came after the last fetch. Returns false if there is no room: the next
 * look tries again. */
static bool late_spans_ask(const struct late_spans *late_spans, const struct collected_trace *trace)
{
    struct agent *agent = late_spans->agent;
    struct request *request;
    int64_t since_ns = trace->until_mono_ns;

    if (scan_queue_has(&agent->scan_queue, trace->id))
        return true; /* the waiting request fetches the spans */
    if (scan_queue_room(&agent->scan_queue, &agent->late_asker) == 0)
        return false;
    request = request_new(trace->request, trace->host);
    if (!request)
        return false;
    request->is_late = true;
    request->asker = asker_hold(&agent->late_asker);
    request->due_ms = clock_ms();
    request->came_mono_ns = clock_ns();
    request->at_ns = wall_clock_ns();
    if (!since_ns)
        since_ns = request->came_mono_ns - LATE_SPANS_MS * INT64_C(1000000);
    if (!request_add(request, trace->id, request->at_ns - (request->came_mono_ns - since_ns),
                     trace->why)) {
        requests_free(request);
        return false;
    }
    (void)scan_queue_add(&agent->scan_queue, request);
    agent_step(agent);
    return true;
}

static bool late_spans_have_come(const struct late_spans *late_spans,
                                 const struct collected_trace *trace)
{
    struct sdk_wanted wanted = trace->sdk;

    if (!late_spans->agent->otlp)
        return false;
    sdk_memory_take(otlp_in_memory(late_spans->agent->otlp), &wanted, NULL, NULL);
    return wanted.spans > 0;
}

static void late_spans_look_for(struct late_spans *late_spans, struct collected_trace *trace)
{
    const bool is_due = clock_ms() - trace->watched_ms >= late_spans_reads_ms[trace->reads];

    late_spans->next_ms = clock_ms() + LATE_SPANS_LOOK_MS;
    if ((is_due || late_spans_have_come(late_spans, trace)) && late_spans_ask(late_spans, trace) &&
        is_due && ++trace->reads == LATE_SPANS_READS)
        trace->watched_ms = 0;
}

int64_t late_spans_look(struct late_spans *late_spans)
{
    struct collected_trace *trace;

    if (clock_ms() < late_spans->next_ms)
        return late_spans->next_ms;
    if (late_spans->agent->is_stopping || agent_sends_all(late_spans->agent)) /* send_all.h does */
        return INT64_MAX;
    late_spans->next_ms = INT64_MAX;
    collected_for_each(trace, late_spans->agent->collected)
    {
        if (trace->watched_ms)
            late_spans_look_for(late_spans, trace);
    }
    return late_spans->next_ms;
}

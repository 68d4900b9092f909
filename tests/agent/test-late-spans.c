/*
 * Spans that are recorded, or arrive from SDKs, after their trace was collected. Each span of an
 * SDK is collected once, also after failed fetches.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/agent/late_spans.h"
#include "tools/otlp/otlp_decode.h"

#include <time.h>

static struct agent agent;
static struct late_spans *late_spans;
static uint64_t stored;          /* spans of the trace in the store */
static int64_t now_ms = 1000000; /* on the clock */
static unsigned asked;           /* requests for late spans */
static char asked_as[700];       /* the last one */
static const struct trace_id id = {7, 5};
static struct request *made; /* a request for the trace */

/* ---- the store, and the clock ---------------------------------------------------------------- */

/* The first two spans have one scope. The third has another one, the fourth another resource. */
void __wrap_sdk_memory_take(const struct sdk_memory *memory, struct sdk_wanted *wanted,
                            otlp_span_fn *call, void *context);
void __wrap_sdk_memory_take(const struct sdk_memory *memory, struct sdk_wanted *wanted,
                            otlp_span_fn *call, void *context)
{
    static const struct text message = {"\x50\x01", 2};
    const struct otlp_span span = {.raw = message};

    CHECK(!memory);
    wanted->spans = 0;
    for (; wanted->trace_id_high == id.high && wanted->trace_id == id.low && wanted->after < stored;
         wanted->after++, wanted->spans++) {
        const struct otlp_origin origin = {.resource = message,
                                           .scope = message,
                                           .schema = {"s", 1},
                                           .scope_schema = {"ss", 2},
                                           .number = 1 + wanted->after / 3,
                                           .scope_number = wanted->after < 2 ? 1 : 2};

        if (call)
            call(context, &origin, &span);
    }
}

const struct sdk_memory *__wrap_otlp_in_memory(const struct otlp_in *in);
const struct sdk_memory *__wrap_otlp_in_memory(const struct otlp_in *in)
{
    CHECK(in == agent.otlp);
    return NULL;
}

struct sdk_held __wrap_sdk_memory_held(const struct sdk_memory *memory);
struct sdk_held __wrap_sdk_memory_held(const struct sdk_memory *memory)
{
    CHECK(!memory);
    return (struct sdk_held){.spans = stored};
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){now_ms / 1000, now_ms % 1000 * MS};
    return 0;
}

/* ---- the agent ------------------------------------------------------------------------------- */

/* Called after the request for late spans is in the queue. */
void __wrap_agent_step(struct agent *of);
void __wrap_agent_step(struct agent *of)
{
    const struct request *last = of->scan_queue.list;

    while (last && last->next)
        last = last->next;
    CHECK(last && last->is_late && last->asker == &of->late_asker && last->due_ms == now_ms);
    CHECK(last->came_mono_ns == now_ms * MS && last->at_ns == now_ms * MS && last->count == 1);
    (void)snprintf(asked_as, sizeof(asked_as), "%s of %s: %s, %d ms ago", last->id, last->host,
                   last->traces[0].why, (int)((last->at_ns - last->traces[0].begin_ns) / MS));
    asked++;
}

static struct request *request(struct trace_id of)
{
    struct request *request = request_new("a:1:2", "a");

    CHECK(request_add(request, of, 0, "why"));
    return request;
}

static size_t length; /* of the last message */

/* Returns the number of spans that a fetch for these requests gets. */
static uint64_t taken_for(const struct request *requests)
{
    struct buffer message = {.limit = 0};
    const uint64_t before = agent.totals.foreign_fetched;
    struct otlp_decoded decoded;

    late_spans_take(late_spans, requests, 0, &message);
    length = message.length;
    decoded = otlp_decode((struct text){message.data, length}, NULL, NULL);
    CHECK(!decoded.is_broken && decoded.invalid == agent.totals.foreign_fetched - before);
    CHECK(late_spans_taken(late_spans, id) == (decoded.invalid > 0));
    buffer_free(&message);
    return decoded.invalid;
}

static void begin(void)
{
    agent = (struct agent){.host = "here",
                           .scan_queue = {.max = 2},
                           .collected = collected_new(),
                           .otlp = (struct otlp_in *)(void *)&asked};
    late_spans = late_spans_new(&agent);
    made = request(id);
    stored = asked = 0;
}

static void end(void)
{
    late_spans_free(late_spans);
    collected_free(agent.collected);
    requests_free(agent.scan_queue.list);
    requests_free(made);
}

/* Looks after that time. Compares the time until the next look, 0: none, and the number of requests
 * so far. Fetches their spans. */
static void look_after(int64_t ms, int64_t next_ms, unsigned requests)
{
    struct request *taken;

    now_ms += ms;
    CHECK(late_spans_look(late_spans) == (next_ms ? now_ms + next_ms : INT64_MAX));
    CHECK(asked == requests);
    taken = scan_queue_take(&agent.scan_queue, now_ms, false);
    if (taken)
        (void)taken_for(taken);
    requests_free(taken);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* A second alarm of the trace is read a minute later, as for a long request. */
TEST(test_once)
{
    stored = 5;
    /* the heads of two resources and of three scopes, and five spans */
    CHECK(taken_for(made) == 5 && length == 2 * 12 + 3 * 13 + 5 * 4);
    stored = 6;
    look_after(499, 1, 0);
    look_after(1, 500, 1);
    CHECK_TEXT(asked_as, "a:1:2 of a: why, 15000 ms ago");
    CHECK(length == 12 + 13 + 4);
    look_after(2000, 500, 1);
    /* the rings are read again after 3 s and 15 s; late spans do not extend the watch */
    look_after(500, 500, 2);
    stored = 7;
    look_after(11500, 500, 3);
    look_after(500, 500, 4);
    look_after(500, 0, 4);
    CHECK(agent.totals.foreign_fetched == 7);
    now_ms += 45000;
    stored = 8;
    CHECK(taken_for(made) == 1);
    look_after(3000, 500, 5);
    agent.is_stopping = true;
    look_after(12000, 0, 5);
}

/* The rings are read again 3 s and 15 s after the fetch: by this process, or by the next one. */
TEST(test_rings)
{
    const struct collected_fetch fetch = {0, now_ms * MS, 1, 2};

    agent.otlp = NULL;
    collected_note(agent.collected, id, &fetch);
    now_ms += 15000;
    late_spans_free(late_spans);
    late_spans = late_spans_new(&agent);
    look_after(0, 0, 0);
    now_ms--;
    late_spans_free(late_spans);
    late_spans = late_spans_new(&agent);
    look_after(2500, 500, 0);
    look_after(500, 500, 1);
    CHECK_TEXT(asked_as, " of here: , 17999 ms ago");
    look_after(11500, 500, 1);
    look_after(500, 500, 2);
    look_after(500, 0, 2);
}

/* An alarm of the original API has the lower half of the id only. */
TEST(test_lower_half)
{
    struct request *lower = request((struct trace_id){0, id.low});

    stored = 3;
    CHECK(taken_for(lower) == 0 && taken_for(made) == 3 && taken_for(made) == 0);
    requests_free(lower);
}

/* A failed fetch is retried. Two hosts may want the trace. */
TEST(test_failed)
{
    made->next = request(id);
    stored = 3;
    CHECK(taken_for(made) == 3);
    stored = 5;
    CHECK(taken_for(made) == 2);
    late_spans_take_back(late_spans, made);
    CHECK(agent.totals.foreign_fetched == 3);
    CHECK(taken_for(made) == 2 && taken_for(made) == 0);
}

/* Spans for which there is no room in the message are lost, and counted. */
TEST(test_dropped)
{
    struct buffer small = {.limit = 1};

    stored = 3;
    late_spans_take(late_spans, made, 0, &small);
    CHECK(agent.totals.foreign_dropped == 3 && agent.totals.foreign_fetched == 0);
}

/* No request is made while the queue of requests is full, however many spans arrive. */
TEST(test_full)
{
    struct request *others = request((struct trace_id){7, 100});

    CHECK(taken_for(made) == 0);
    CHECK(request_add(others, (struct trace_id){7, 101}, 0, "why"));
    others->asker = asker_hold(&agent.late_asker);
    others->due_ms = now_ms + 5000;
    CHECK(scan_queue_add(&agent.scan_queue, others) == 0);
    stored = 1;
    for (int i = 0; i < 5; i++)
        look_after(1000, 500, 0);
    look_after(1000, 500, 1);
    CHECK(agent.totals.foreign_fetched == 1);
}

CHECK_MAIN_EACH(begin, end)

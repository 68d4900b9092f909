/*
 * Spans that are recorded, or arrive from SDKs, after their trace was collected. Each span of an
 * SDK is collected once, also after failed fetches.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/agent/late_spans.h"

#include <time.h>

static struct agent agent;
static struct late_spans *late_spans;
static uint64_t stored;   /* spans of the trace in the store */
static int64_t passed_ms; /* on the clock */
static unsigned asked;    /* requests for late spans */
static const struct trace_id id = {7, 5};

/* ---- the store, and the clock ---------------------------------------------------------------- */

void __wrap_sdk_memory_take(const struct sdk_memory *memory, struct sdk_wanted *wanted,
                            otlp_span_fn *call, void *context);
void __wrap_sdk_memory_take(const struct sdk_memory *memory, struct sdk_wanted *wanted,
                            otlp_span_fn *call, void *context)
{
    const struct otlp_origin origin = {.number = 1};
    const struct otlp_span span = {.raw = {"", 0}};

    CHECK(!memory);
    wanted->spans = 0;
    for (; wanted->trace_id_high == id.high && wanted->trace_id == id.low && wanted->after < stored;
         wanted->after++, wanted->spans++) {
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
    *now = (struct timespec){.tv_sec = 1000 + passed_ms / 1000};
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
    CHECK(last && last->is_late);
    asked++;
}

static struct request *request(void)
{
    struct request *made = request_new("a:1:2", "a");

    CHECK(request_add(made, id, 0, "why"));
    return made;
}

/* Returns the number of spans that a fetch for these requests gets. */
static uint64_t taken_for(const struct request *requests)
{
    struct buffer message = {.limit = 0};
    const uint64_t before = agent.totals.foreign_fetched;

    late_spans_take(late_spans, requests, 0, &message);
    buffer_free(&message);
    return agent.totals.foreign_fetched - before;
}

static void begin(void)
{
    agent = (struct agent){.scan_queue = {.max = 2},
                           .collected = collected_new(),
                           .otlp = (struct otlp_in *)(void *)&asked};
    late_spans = late_spans_new(&agent);
    CHECK(agent.collected && late_spans);
    stored = 0;
    asked = 0;
}

static void end(void)
{
    late_spans_free(late_spans);
    collected_free(agent.collected);
    requests_free(agent.scan_queue.list);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* A second alarm of the trace is read a minute later, as for a long request. */
TEST(test_once)
{
    struct request *made = request();

    stored = 3;
    CHECK(taken_for(made) == 3);
    stored = 5;
    passed_ms += 1000;
    (void)late_spans_look(late_spans);
    CHECK(asked == 1 && taken_for(agent.scan_queue.list) == 2);
    /* late spans do not extend the watch */
    passed_ms += 14000;
    (void)late_spans_look(late_spans);
    passed_ms += 1000;
    (void)late_spans_look(late_spans);
    passed_ms += 1000;
    CHECK(late_spans_look(late_spans) == INT64_MAX && asked == 1);
    passed_ms += 45000;
    stored = 6;
    CHECK(taken_for(made) == 1);
    requests_free(made);
}

static void look_after(int64_t ms)
{
    passed_ms += ms;
    (void)late_spans_look(late_spans);
    requests_free(scan_queue_take(&agent.scan_queue, INT64_MAX, false));
}

/* The rings are read again 3 s and 15 s after the fetch: by this process, or by the next one. */
TEST(test_rings)
{
    const struct collected_fetch fetch = {0, (1000 + passed_ms / 1000) * INT64_C(1000000000), 1, 2};
    struct request *made = request();

    agent.otlp = NULL;
    CHECK(taken_for(made) == 0);
    collected_note(agent.collected, id, &fetch);
    look_after(2000);
    CHECK(asked == 0);
    look_after(1000);
    look_after(11000);
    CHECK(asked == 1);
    late_spans_free(late_spans);
    late_spans = late_spans_new(&agent);
    look_after(3000);
    CHECK(asked == 2);
    look_after(12000);
    look_after(12000);
    CHECK(asked == 3);
    requests_free(made);
}

/* An alarm of the original API has the lower half of the id only. */
TEST(test_lower_half)
{
    struct request *lower = request_new("a:1:4", "a"), *made = request();

    CHECK(request_add(lower, (struct trace_id){0, id.low}, 0, "why"));
    stored = 3;
    CHECK(taken_for(lower) == 0 && taken_for(made) == 3 && taken_for(made) == 0);
    requests_free(lower);
    requests_free(made);
}

/* A failed fetch is retried. Two hosts may want the trace. */
TEST(test_failed)
{
    struct request *made = request();

    made->next = request();
    stored = 3;
    CHECK(taken_for(made) == 3);
    stored = 5;
    CHECK(taken_for(made) == 2);
    late_spans_take_back(late_spans, made);
    CHECK(agent.totals.foreign_fetched == 3);
    CHECK(taken_for(made) == 2 && taken_for(made) == 0);
    requests_free(made);
}

/* Spans for which there is no room in the message are lost, and counted. */
TEST(test_dropped)
{
    struct request *made = request();
    struct buffer small = {.limit = 1};

    stored = 3;
    late_spans_take(late_spans, made, 0, &small);
    CHECK(agent.totals.foreign_dropped == 3 && agent.totals.foreign_fetched == 0);
    buffer_free(&small);
    requests_free(made);
}

/* No request is made while the queue of requests is full, however many spans arrive. */
TEST(test_full)
{
    struct request *made = request(), *others = request_new("a:1:3", "a");

    CHECK(taken_for(made) == 0);
    for (uint64_t low = 100; low < 102; low++)
        CHECK(request_add(others, (struct trace_id){7, low}, 0, "why"));
    others->asker = asker_hold(&agent.late_asker);
    CHECK(scan_queue_add(&agent.scan_queue, others) == 0);
    stored = 1;
    for (int i = 0; i < 5; i++) {
        passed_ms += 1000;
        (void)late_spans_look(late_spans);
    }
    CHECK(asked == 0 && !others->next);
    requests_free(scan_queue_take(&agent.scan_queue, INT64_MAX, false));
    passed_ms += 1000;
    (void)late_spans_look(late_spans);
    CHECK(asked == 1 && agent.scan_queue.traces == 1);
    requests_free(made);
}

CHECK_MAIN_EACH(begin, end)

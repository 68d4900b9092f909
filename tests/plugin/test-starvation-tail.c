/*
 * Each allocation of analysis/ fails in turn, once or from then on: nothing crashes or leaks, and
 * no span gets lost between what was taken in, what was refused and what came out again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/model/open_traces.h"
#include "babeltrace-plugin/model/tail.h"
#include "babeltrace-plugin/model/calls.h"

#include "check.h"
#include "starvation/starve.h"

#define TRACES 8
#define SPANS  20

struct run {
    struct names *names;
    struct statistics *statistics;
    struct tail_rules *rules;
    struct open_traces *open;
    uint64_t out;
};

static void use(void *context, const struct closed_trace *closed)
{
    struct run *run = context;
    const struct tail_trace trace = {.model = closed->model, .trace_id = closed->trace_id};

    run->out += closed->model->count;
    if (!closed->is_linked)
        return;
    (void)tail_rules_fit(run->rules, &trace, run->statistics);
    (void)statistics_add_trace(run->statistics, closed->model);
}

static bool begin(struct run *run)
{
    static const char rules[] = "a* error\n* > p99\n\"b *:n*\" rare 2\ntag key=value\n1/7\n";
    struct error error = {""};

    *run = (struct run){.names = names_new(1000, 1 << 20)};
    if (run->names)
        run->statistics = statistics_new(run->names);
    run->rules = tail_rules_parse(text_of(rules), "F", &error);
    CHECK(run->rules || strcmp(error.text, "out of memory") == 0);
    run->open = open_traces_new(&(struct open_traces_options){
        .quiet = 10, .max_bytes = 20000, .max_spans = SPANS, .close = use, .context = run});
    return run->statistics && run->rules && run->open;
}

static struct trace_span span_of(struct run *run, uint64_t number)
{
    char name[32];

    snprintf(name, sizeof(name), "b %u", (unsigned)(number % 97));
    return (struct trace_span){
        .id = number + 1,
        .parent_id = number % SPANS ? number : 0,
        .start_ns = (int64_t)number + 1,
        .duration_ns = (int64_t)(number * number) + 1,
        .service = names_id(run->names, text_of(name)),
        .name = names_id(run->names, text_of("name")),
        .kind = (uint8_t)(number % 3),
        .is_error = number % 11 == 0,
    };
}

/* Two traces at a time, the second of which is closed early. */
static void work(struct run *run)
{
    uint64_t in = 0;

    for (uint64_t number = 0; number < TRACES * SPANS; number++) {
        const struct trace_span span = span_of(run, number);
        const uint64_t trace = 1 + number / (2 * SPANS) * 2 + (number & 1);

        in += open_traces_add(run->open, 0, trace, &span, 10, (int64_t)number);
        open_traces_advance(run->open, (int64_t)number);
        if (number % 500 == 0)
            statistics_begin_period(run->statistics);
    }
    CHECK(!open_traces_close_some(run->open, UINT64_MAX));
    CHECK(run->out == in);
    CHECK(open_traces_counts(run->open).open_bytes == 0);
}

static void end(struct run *run)
{
    open_traces_free(run->open);
    tail_rules_free(run->rules);
    statistics_free(run->statistics);
    names_free(run->names);
}

static uint64_t run_once(uint64_t fail_at, bool and_after)
{
    struct run run;
    bool is_set_up;

    starve = (struct starve){.fail_at = fail_at, .and_after = and_after};
    is_set_up = begin(&run);
    CHECK(is_set_up || fail_at);
    if (is_set_up)
        work(&run);
    end(&run);
    CHECK(starve.live == 0);
    return starve.count;
}

int main(void)
{
    const uint64_t count = run_once(0, false);

    CHECK(count > 80);
    for (uint64_t fail_at = 1; fail_at <= count && !check_failures; fail_at++) {
        run_once(fail_at, false);
        CHECK(starve.failed == 1);
        run_once(fail_at, true);
        CHECK(starve.failed >= 1);
    }
    return check_status();
}

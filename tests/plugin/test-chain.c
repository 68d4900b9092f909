/*
 * The chain with all of its stages in every order: the sums are exact after each span, and no stage
 * holds a span that was given before the first mark in use. The decisions of tail sampling.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/stages/hosts.h"
#include "babeltrace-plugin/stages/join.h"
#include "babeltrace-plugin/stages/tail_stage.h"
#include "check.h"
#include "seed.h"
#include "host_metrics.h"
#include "babeltrace-plugin/spans/assembler_parts.h"

#include <unistd.h>

#define STAGES      5
#define ORDERS      120  /* all orders of five stages */
#define CHAIN_SPANS 4500 /* in each order: 540,000 in all */

enum part { PART_SKIP_FEW, PART_JOIN, PART_HOSTS, PART_TAIL, PART_SKIP_MANY };

static char rules[4096];

struct chain_run {
    struct chain chain;
    struct stage *hosts;
    struct assembler *assembler;
    int order[STAGES];
    uint64_t fed, left_out;
    struct marks marks;
    uint64_t settled; /* how many of the first spans no stage holds */
    bool is_over;
    uint64_t delivered;
    uint64_t checks_held[STAGES]; /* how many checks found spans in the stage */
    int64_t now_ms;
    uint64_t samples;
};

static void deliver(void *context, const struct span *span)
{
    struct chain_run *run = context;

    run->delivered++;
    CHECK(!run->is_over || span->id > run->settled);
}

static bool skips(void *context, struct span *span)
{
    return span->id % (uint64_t)(uintptr_t)context == 0;
}

static void warn(void *context, const char *message)
{
    (void)context;
    CHECK_TEXT(message, "");
}

static struct stage *new_stage(struct chain_run *run, enum part part)
{
    const struct join_options join = {
        .wait_ns = 2000 * MS, .root_wait_ns = 3000 * MS, .skew_ns = MS, .max_bytes = 64 << 20};
    const struct hosts_options hosts = {
        .min_ns = 5 * MS, .max_history_bytes = 1 << 20, .max_held_bytes = 1 << 20};
    const struct tail_options tail = {.rules = rules,
                                      .wait_ms = 300,
                                      .max_bytes = 200000,
                                      .assembler = run->assembler,
                                      .warn = warn};
    struct error error;

    switch (part) {
    case PART_SKIP_FEW:
        return skip_stage_new("few", skips, (void *)(uintptr_t)31);
    case PART_JOIN:
        return join_stage_new(&join);
    case PART_HOSTS:
        return run->hosts = hosts_stage_new(&hosts);
    case PART_TAIL:
        return tail_stage_new(&tail, &error);
    default:
        return skip_stage_new("many", skips, (void *)(uintptr_t)7);
    }
}

static void begin(struct chain_run *run)
{
    run->assembler = assembler_new(&(struct assembler_options){.max_open_spans = 1}, NULL, NULL);
    chain_init(&run->chain, deliver, run);
    run->chain.marks = &run->marks;
    for (int i = 0; i < STAGES; i++)
        chain_append(&run->chain, new_stage(run, (enum part)run->order[i]));
}

static void end(struct chain_run *run)
{
    CHECK(chain_adds_up(&run->chain) && chain_held(&run->chain) == 0);
    run->chain.first->counts.out++;
    CHECK(!chain_adds_up(&run->chain));
    run->chain.first->counts.out--;
    for (int reason = 0; reason < STAGE_REASONS; reason++)
        run->left_out += run->chain.counts.left_out[reason];
    chain_free(&run->chain);
    assembler_free(run->assembler);
}

static void sample(struct chain_run *run)
{
    char values[200];
    const struct made_sample made = {.host = "store",
                                     .group = "disk",
                                     .instance = "vda",
                                     .names = run->samples ? "" : DISK_NAMES,
                                     .values = values,
                                     .time_ms = run->now_ms};
    struct event event;

    (void)snprintf(values, sizeof(values), "%" PRIu64 " 0 0 0 %" PRIu64 " 0", 10 * run->samples,
                   90000000 * run->samples);
    event = event_of_sample(&made, ++run->samples);
    hosts_stage_add(run->hosts, &event, event.time_ns, event.time_ns);
}

/* Gives one of a request's three spans: the client's, the server's that may join it, and a child of
 * the server's. */
static void give(struct chain_run *run, uint64_t id)
{
    const uint64_t request = id / 3 + 1, role = id % 3;
    const bool joins = request % 2;
    const int64_t took_ms = (int64_t)(1 + request % 40 + (request % 97 ? 0 : 500));
    struct span span;
    char key[17];

    CHECK(span_of_host(&span, request % 5 ? "store" : "", id + 1, run->now_ms - took_ms - 2,
                       run->now_ms - (int64_t)role));
    (void)snprintf(key, sizeof(key), "%016" PRIx64, request);
    span.endpoint = endpoint_get(run->assembler->endpoints, text_of(request % 3 ? "gateway" : "s"),
                                 text_of(""), 0);
    span.trace_id = request;
    span.trace_id_high = role && joins ? JOIN_TRACE_HIGH : 0;
    span.kind = role == 0 ? SPAN_CLIENT : role == 1 ? SPAN_SERVER : SPAN_LOCAL;
    if (role == 2)
        span.parent_id = id;
    if (joins && role < 2)
        CHECK(span_add(&span, SPAN_TAG_TEXT, text_of(JOIN_TAG), text_of(key), 0));
    if (request % 50 == 0)
        CHECK(span_add(&span, SPAN_TAG_TEXT, text_of("error"), text_of("EIO"), 0));
    chain_take(&run->chain, &span, run->now_ms * MS);
    run->fed++;
    free(span.log);
}

static void check_stages(struct chain_run *run)
{
    int i = 0;

    CHECK(chain_adds_up(&run->chain));
    for (const struct stage *stage = run->chain.first; stage; stage = stage->next, i++)
        run->checks_held[i] += stage->kind->held && stage->kind->held(stage);
}

static void feed(struct chain_run *run, const int *order)
{
    memset(run, 0, sizeof(*run));
    memcpy(run->order, order, sizeof(run->order));
    run->now_ms = 1000;
    begin(run);
    for (uint64_t id = 0; id < CHAIN_SPANS; id++) {
        if (id % 30 == 0)
            sample(run);
        give(run, id);
        check_stages(run);
        run->now_ms += 2;
        if (id % 16 == 0)
            chain_advance(&run->chain, run->now_ms * MS);
        if (dice(40) == 0)
            run->settled =
                marks_advance(&run->marks, &(struct trace_position){0, run->fed}, 0)->at.events;
    }
    run->is_over = true;
    CHECK(run->settled > CHAIN_SPANS / 2 && run->settled < CHAIN_SPANS);
    while (chain_flush_some(&run->chain, 7))
        check_stages(run);
    end(run);
    CHECK(run->fed == run->chain.counts.in && run->fed == run->delivered + run->left_out);
    (void)marks_advance(&run->marks, &(struct trace_position){0, run->fed}, 0);
    CHECK(run->marks.first == run->marks.last);
}

static void test_order(const int *order)
{
    struct chain_run run;

    feed(&run, order);
    CHECK(run.delivered > CHAIN_SPANS / 10 && run.left_out > CHAIN_SPANS / 10);
    for (int i = 0; i < STAGES; i++)
        CHECK(run.checks_held[i] > 0 || order[i] == PART_SKIP_FEW || order[i] == PART_SKIP_MANY);
}

/* Sets order to order number n of the stages. */
static void order_of(int n, int *order)
{
    int left[STAGES] = {PART_SKIP_FEW, PART_JOIN, PART_HOSTS, PART_TAIL, PART_SKIP_MANY};

    for (int size = STAGES; size; size--) {
        const int at = n % size;

        n /= size;
        *order++ = left[at];
        memmove(&left[at], &left[at + 1], (size_t)(size - at - 1) * sizeof(left[0]));
    }
}

/* ---- tail sampling ---- */

/* The output: "TRACE/ID", with "=REASON" if the span has it as a tag. */
static char out[1000];

static void note(void *context, const struct span *span)
{
    const struct span_entry *tag = span_find_tag(span, text_of("blkin.sampled"));
    const struct text why = tag ? span_entry_value(tag) : text_of("");
    const size_t length = strlen(out);

    (void)context;
    (void)snprintf(out + length, sizeof(out) - length, "%" PRIu64 "/%" PRIu64 "%s%.*s ",
                   span->trace_id, span->id, tag ? "=" : "", (int)why.length, why.data);
}

/* Gives a span, with a tag unless the key is empty. The root's id is a multiple of ten. */
static void give_tagged(struct chain *chain, uint64_t trace, uint64_t id, int64_t now_ms,
                        const char *key, size_t length)
{
    static char value[80000];
    struct span span;

    (void)snprintf(value, sizeof(value), "%s %" PRIu64, key, id);
    CHECK(span_of_host(&span, "", id, now_ms - 1, now_ms) &&
          span_change_name(&span, text_of(value)));
    memset(value, 'x', length);
    span.trace_id = trace;
    span.parent_id = id % 10 ? id - id % 10 : 0;
    CHECK(!key[0] || span_add(&span, SPAN_TAG_TEXT, text_of(key), (struct text){value, length}, 0));
    chain_take(chain, &span, now_ms * MS);
    free(span.log);
}

/* A trace is decided as a whole, early if there is no memory, and later spans follow the decision.
 */
static void test_tail(void)
{
    static const struct tail_counts expected = {.traces_kept = 4,
                                                .traces_sampled_out = 65540,
                                                .traces_early = 1,
                                                .spans_late = 2,
                                                .names_merged = 10};
    struct chain_run run = {.order = {PART_TAIL}};
    struct chain *chain = &run.chain;
    struct tail_counts counts;

    run.assembler = assembler_new(&(struct assembler_options){.max_open_spans = 1}, NULL, NULL);
    chain_init(chain, note, NULL);
    chain_append(chain, new_stage(&run, PART_TAIL));
    give_tagged(chain, 1, 11, 1000, "error", 1);
    give_tagged(chain, 1, 10, 1000, "", 0);
    give_tagged(chain, 2, 20, 1000, "", 0);
    give_tagged(chain, 3, 30, 1000, "pool", 3);
    give_tagged(chain, 4, 40, 1000, "pool", 2);
    chain_advance(chain, 1300 * MS - 1);
    CHECK(out[0] == '\0' && tail_stage_counts(chain->first).traces_held == 4);
    chain_advance(chain, 1300 * MS);
    CHECK_TEXT(out, "1/11 1/10=error 3/30=tag pool=xx?* ");
    give_tagged(chain, 1, 12, 1301, "", 0);
    give_tagged(chain, 2, 21, 1301, "error", 1);
    give_tagged(chain, 5, 50, 1301, "pool", 80000);
    give_tagged(chain, 6, 60, 1301, "k", 80000);
    CHECK_TEXT(out, "1/11 1/10=error 3/30=tag pool=xx?* 1/12 ");
    give_tagged(chain, 7, 70, 1301, "k", 80000);
    CHECK_TEXT(out, "1/11 1/10=error 3/30=tag pool=xx?* 1/12 5/50=tag pool=xx?* ");
    for (uint64_t i = 1; i <= 65536; i++) /* no room for more names */
        give_tagged(chain, 10 * i, 10 * i, 2000 + 2 * (int64_t)i, "", 0);
    give_tagged(chain, 8, 80, 140000, "last", 1);
    while (chain_flush_some(chain, 1))
        ;
    CHECK_TEXT(strrchr(out, '/'), "/80=s:last* tag last ");
    counts = tail_stage_counts(chain->first);
    CHECK(memcmp(&counts, &expected, sizeof(counts)) == 0);
    end(&run);
}

static void write_rules(const char *text)
{
    FILE *file = fopen(rules, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

int main(void)
{
    const char *folder = getenv("TMPDIR");

    (void)snprintf(rules, sizeof(rules), "%s/test-chain-rules", folder ? folder : "/tmp");
    write_rules("error\ntag pool=xx?*\ns:last* tag last\n");
    test_tail();
    write_rules("error\ngateway > 30ms\n*:* > p95\nrare 5\n1/3\n");
    dice_state = seed_begin();
    for (int n = 0; n < ORDERS; n++) {
        int order[STAGES];
        const int failures = check_failures;

        order_of(n, order);
        test_order(order);
        if (check_failures != failures)
            fprintf(stderr, "in order %d: %d %d %d %d %d\n", n, order[0], order[1], order[2],
                    order[3], order[4]);
    }
    (void)unlink(rules);
    return check_status();
}

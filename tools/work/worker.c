/*
 * blkin work: a worker of a consumer group. One thread reads spans, assembles traces, counts them,
 * and commits counts, kept traces and places in one transaction.
 *
 * The contract: the committed results count each acknowledged span once and contain each kept trace
 * once, however often workers and brokers are killed. So a worker that is in doubt ends, and the
 * next worker continues from the last commit.
 *
 * The worker does not use the frame of services (tools/config/frame.h) for two reasons. Several
 * workers run on a host, but a control socket has one name. And SIGTERM must end a wait inside
 * librdkafka at once: a loop would notice the signal too late.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/account/http_server.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/thread.h"
#include "babeltrace-plugin/params.h"
#include "group.h"
#include "tools/base/commands.h"
#include "tools/base/notify.h"
#include "tools/base/say.h"
#include "tools/config/config.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char usage[] =
#include "tools/work/usage.txt.inc"
    ;

#define PAGE_MS   25   /* between calls that serve the metrics page */
#define QUIET_MS  5000 /* between commits without new counts, which show that the worker runs */
#define WINDOW_NS INT64_C(1000000000) /* the period of busy_ratio and behind_seconds */
#define CLOSE_S   25 /* the limit for a worker's end; below TimeoutStopSec= of the unit */

struct worker {
    struct config *config;
    struct params params; /* the sink's */
    struct work_settings settings;
    struct work_stage stage;
    struct group *group;
    struct transactions *transactions;
    bool has_joined; /* the group */
    struct metrics_server *page;
    int64_t page_ms;
    int64_t window_ns; /* the last measurement of the busy share */
    int64_t committed_ms;
};

/* ---- the metrics page ------------------------------------------------------------------------ */

/* A metrics_page_fn. */
static char *worker_page(void *context)
{
    const struct work_stage *stage = context;
    struct printer printer = {.has_failed = false};
    struct counts kept = {.output = {.spans = 0}};

    for (size_t i = 0; i < work_counters_count; i++) {
        work_counter_print_head(&printer, &work_counters[i]);
        work_counter_print(&printer, &work_counters[i], NULL, &stage->counts);
    }
    if (!stage->keeper || !keeper_exporter_counts(stage->keeper, &kept.output))
        return print_end(&printer);
    for (size_t i = 0; i < counters_count; i++) {
        if (counters[i].section == SECTION_SPANS || counters[i].section == SECTION_SPOOL)
            counter_print(&printer, &counters[i], &kept);
    }
    return print_end(&printer);
}

static void worker_say_account(const struct work_counts *counts)
{
    say(BK7021,
        "spans: %" PRIu64 " in + %" PRIu64 " taken over = %" PRIu64 " counted + %" PRIu64
        " late + %" PRIu64 " over + %" PRIu64 " invalid + %" PRIu64 " handed over + %" PRIu64
        " open; %" PRIu64 " traces, %" PRIu64 " kept; %" PRIu64 " messages, %" PRIu64
        " broken, %" PRIu64 " offsets missing",
        counts->spans_in, counts->spans_taken_over, counts->spans_counted, counts->spans_late,
        counts->spans_over, counts->spans_invalid, counts->spans_handed_over, counts->spans_open,
        counts->traces_closed, counts->traces_kept, counts->messages, counts->messages_broken,
        counts->offsets_missing);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void worker_measure(struct worker *worker)
{
    const int64_t now_ns = clock_ns(), length_ns = now_ns - worker->window_ns;

    if (length_ns < WINDOW_NS)
        return;
    worker->stage.counts.busy = 1 - (double)group_idle_ns(worker->group) / (double)length_ns;
    worker->stage.counts.behind_s = input_behind_s(group_input(worker->group));
    worker->window_ns = now_ns;
    notify("WATCHDOG=1");
}

static void worker_serve_page(struct worker *worker)
{
    if (!worker->page || clock_ms() < worker->page_ms)
        return;
    worker->page_ms = clock_ms() + PAGE_MS;
    metrics_server_serve(worker->page);
}

static void worker_commit_if_due(struct worker *worker)
{
    const int64_t now_ms = clock_ms(), passed_ms = now_ms - worker->committed_ms;

    if (passed_ms < worker->settings.commit_ms ||
        (!transactions_has_news(worker->transactions) && passed_ms < QUIET_MS))
        return;
    worker->committed_ms = now_ms;
    (void)group_commit(worker->group);
}

static void worker_run(struct worker *worker)
{
    notify("READY=1\nSTATUS=reads %s", worker->settings.input.topic);
    worker->window_ns = clock_ns();
    worker->committed_ms = clock_ms();
    while (!ending_is_asked() && !ending_has_failed()) {
        group_read(worker->group);
        worker_measure(worker);
        worker_serve_page(worker);
        worker_commit_if_due(worker);
        transactions_poll(worker->transactions);
    }
    notify("STOPPING=1");
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool worker_is_interrupted(void *context)
{
    (void)context;
    return ending_is_asked();
}

static void worker_report(void *context, const char *message)
{
    (void)context;
    say(BK7019, "kept traces: %s", message);
}

/* Returns whether the endpoint is an OTLP topic of the input's cluster, which the worker's
 * transactions include. */
static bool worker_is_own_topic(const struct worker *worker, struct kafka_url *url)
{
    const struct exporter_options *options = &worker->params.exporter;
    struct error error;

    return is_kafka_url(exporter_endpoint(options)) &&
           kafka_url_parse(url, "endpoint", exporter_endpoint(options), &error) &&
           strcmp(url->brokers, worker->settings.input.brokers) == 0 &&
           exporter_protocol(options)->format == FORMAT_OTLP;
}

static bool worker_open_keeper(struct worker *worker, struct error *error)
{
    const struct exporter_callbacks callbacks = {worker_is_interrupted, worker_report, NULL, NULL};
    struct kafka_url url;
    uint32_t partitions;

    if (!worker->params.tail_sampling)
        return true;
    worker->stage.rules = tail_rules_read(worker->params.tail_sampling, error);
    if (!worker->stage.rules)
        return false;
    if (!worker_is_own_topic(worker, &url)) {
        worker->params.exporter.on_full = ON_FULL_BLOCK;
        worker->stage.keeper = keeper_new_exporter(&worker->params.exporter, &callbacks, error);
        return worker->stage.keeper != NULL;
    }
    if (strcmp(url.topic, worker->settings.input.topic) == 0)
        return error_set(error, "endpoint: the topic is that of input: the workers would read "
                                "their kept traces again and again");
    partitions = transactions_open_kept(worker->transactions, url.topic, error);
    if (partitions == 0)
        return false;
    error_set(error, "out of memory");
    worker->stage.keeper =
        keeper_new_topic(partitions, transactions_emit_kept, worker->transactions);
    return worker->stage.keeper != NULL;
}

/* Makes a name of host, process and time unless the configuration has a name. */
static void worker_set_instance(struct work_settings *settings, const char *given)
{
    char host[128] = "";

    settings->is_named = given && *given;
    (void)gethostname(host, sizeof(host) - 1);
    if (settings->is_named)
        (void)snprintf(settings->instance, sizeof(settings->instance), "%s", given);
    else
        (void)snprintf(settings->instance, sizeof(settings->instance), "%s-%ld-%" PRIx64, host,
                       (long)getpid(), (uint64_t)wall_clock_ns());
}

static bool worker_read_config(struct worker *worker, struct error *error)
{
    const struct config *config = worker->config;
    const char *input = config_text(config, "input");
    struct work_settings *settings = &worker->settings;

    if (!input || !*input)
        return error_set(error, "input: expected the topic to read: kafka://BROKER[,BROKER]/TOPIC");
    if (!kafka_url_parse(&settings->input, "input", input, error) ||
        !config_sink_params(config, &worker->params, error))
        return false;
    /* by default, a worker also starts while the collector is down */
    if (strcmp(config_origin(config, "require-collector"), "default") == 0)
        worker->params.exporter.require_collector = false;
    settings->kafka_file = worker->params.exporter.transport.kafka_file;
    settings->group = config_text(config, "group");
    settings->deltas = config_text(config, "deltas");
    settings->wait_ms = config_integer(config, "wait-ms");
    settings->commit_ms = config_integer(config, "commit-ms");
    settings->max_open_bytes = (uint64_t)worker->params.max_open_bytes;
    worker_set_instance(settings, config_text(config, "instance"));
    return true;
}

static bool worker_open_page(struct worker *worker, struct error *error)
{
    const char *where = worker->params.prometheus_listen;

    if (!where)
        return true;
    worker->page =
        metrics_server_open("prometheus-listen", where, worker_page, &worker->stage, error);
    if (worker->page)
        say(BK7020, "%s", metrics_server_url(worker->page));
    return worker->page != NULL;
}

static bool worker_open(struct worker *worker, struct error *error)
{
    const struct work_settings *settings = &worker->settings;

    error_set(error, "out of memory");
    if (!work_stage_open(&worker->stage, settings->wait_ms) || !worker_open_page(worker, error))
        return false;
    worker->group = group_open(settings, &worker->stage, error);
    if (!worker->group)
        return false;
    worker->transactions = transactions_open(settings, &worker->stage, error);
    if (!worker->transactions || !worker_open_keeper(worker, error))
        return false;
    worker->has_joined = group_join(worker->group, worker->transactions, error);
    return worker->has_joined;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void *worker_end_late(void *unused)
{
    (void)unused;
    ending_wait();
    (void)sleep(CLOSE_S);
    say(BK7022,
        "not ended after %d s: the worker has not committed, not left its group, or not delivered "
        "kept traces; the next worker counts the spans that are not committed",
        CLOSE_S);
    _exit(1);
}

static void worker_close(struct worker *worker)
{
    ending_begin();
    if (worker->has_joined) {
        const bool has_left = group_leave(worker->group);

        if (!ending_has_failed())
            worker_say_account(&worker->stage.counts);
        if (!has_left) {
            transactions_abort(worker->transactions);
            _exit(ending_is_well() ? 0 : 1); /* without freeing memory */
        }
    }
    group_close(worker->group);
    transactions_close(worker->transactions);
    metrics_server_close(worker->page);
    work_stage_close(&worker->stage);
}

#define LARGE_PAGE    ((uintptr_t)2 << 20)
#define MMAP_FROM     (16 << 20) /* larger than a message of a broker */
#define MMAP_MAX      65536      /* glibc's own */
#define NEVER_TRIMMED (-1)

/*
 * The worker allocates and frees hundreds of MB again and again. So malloc() keeps freed memory,
 * and the main thread's first `bytes` bytes use large pages where the kernel has them. With pages
 * of 4 KiB, page faults took a fifth of a worker's time, and most searches for a trace were TLB
 * misses. Only memory that is written to counts as used.
 */
static void heap_prepare(size_t bytes)
{
    void *memory;
    uintptr_t from;

    (void)mallopt(M_MMAP_THRESHOLD, MMAP_FROM);
    (void)mallopt(M_TRIM_THRESHOLD, NEVER_TRIMMED);
    (void)mallopt(M_MMAP_MAX, 0); /* allocations extend the heap, which never shrinks */
    memory = malloc(bytes);
    (void)mallopt(M_MMAP_MAX, MMAP_MAX);
    if (!memory)
        return;
    from = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    if (from < (uintptr_t)memory + bytes)
        (void)madvise((void *)from, (uintptr_t)memory + bytes - from, MADV_HUGEPAGE);
    free(memory);
}

/* Returns the exit status. */
static int worker_work(struct worker *worker)
{
    struct error error = {""};
    pthread_t thread;
    bool is_open;

    if (!worker_read_config(worker, &error)) {
        say(BK1010, "%s", error.text);
        return 2;
    }
    heap_prepare((size_t)worker->settings.max_open_bytes);
    (void)thread_start(&thread, worker_end_late, NULL, "blkin-end");
    is_open = worker_open(worker, &error);
    if (is_open)
        worker_run(worker);
    else if (error.text[0] && !ending_has_failed())
        say(BK1010, "%s", error.text);
    worker_close(worker);
    return ending_is_well() && (is_open || (ending_is_asked() && !error.text[0])) ? 0 : 1;
}

int worker_command(int argc, char *argv[])
{
    const struct config_request request = {.section = "work", .usage = usage};
    static struct worker worker;
    int status;

    worker.config = config_read(&request, argc, argv, &status);
    if (!worker.config)
        return status;
    if (config_operands(worker.config) > 0) {
        fprintf(stderr, "%s: expected no operand\n%s", argv[0], usage);
        status = 2;
    } else {
        say_open(argv[0], config_text(worker.config, "log-level"));
        ending_take_signals();
        (void)signal(SIGPIPE, SIG_IGN);
        status = worker_work(&worker);
    }
    config_free(worker.config);
    return status;
}

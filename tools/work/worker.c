/*
 * blkin work: the worker.
 *
 * What is promised: each span that the brokers have acknowledged is counted once, and each kept
 * trace written once, for readers of what is committed, however often workers and brokers are
 * killed. So whatever is not sure ends the worker: the next one goes on from what was committed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "worker.h"

#include <stdio.h>

#ifndef HAS_KAFKA

int worker_command(int argc, char *argv[])
{
    (void)argc;
    fprintf(stderr, "%s: this build is without librdkafka: build it with that\n", argv[0]);
    return 1;
}

#else

#include "babeltrace-plugin/account/metrics_server.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "heap.h"
#include "tools/base/notify.h"
#include "tools/base/say.h"
#include "tools/kafka/kafka_log.h"
#include "tools/config/sink_params.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: blkin work [--KEY=VALUE]...\n"
    "       blkin work --root | --advise (see their --help)\n"
    "\n"
    "Reads spans (OTLP) from a topic of Kafka, as one of any number of workers: puts\n"
    "traces together, counts rates, errors, durations, self times and calls, and\n"
    "keeps the traces that the rules of tail-sampling fit. May be killed at any time:\n"
    "each span is counted once. It ends when a transaction fails: start it again.\n"
    "\n"
    "  --config=FILE  instead of $BLKIN_CONFIG and /etc/blkin/blkin.conf\n"
    "  --KEY=VALUE    a key of the configuration; here matter: input\n"
    "                 (kafka://BROKER/TOPIC), deltas (the topic of what is counted),\n"
    "                 group, instance, wait-ms, commit-ms, tail-sampling, endpoint\n"
    "                 and format (of kept traces), kafka-file, max-open-bytes,\n"
    "                 prometheus-listen\n"
    "  -h, --help     print this\n"
    "\n"
    "Exit status: 0 ended in order; 1 it failed; 2 wrong usage or configuration.\n";

#define POLL_MS     50   /* one wait for a message */
#define QUIET_MS    5000 /* nothing new: a commit that shows that we live */
#define WINDOW_NS   INT64_C(1000000000)
#define ASSIGNED_MS 8000 /* a rebalance, with a member that was killed */
#define CLOSE_S     40   /* to leave the group, and to deliver kept traces */

volatile sig_atomic_t worker_is_ending;

static void end_worker(int signal)
{
    (void)signal;
    worker_is_ending = 1;
}

void worker_fail(struct worker *worker, const char *format, ...)
{
    char text[1024];
    va_list values;

    va_start(values, format);
    (void)vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (!worker->has_failed)
        say(worker_is_ending ? BK7016 : BK7015,
            "%s: what was not committed is not counted; whoever goes on does that", text);
    /* the group may change just while one leaves it: that is no failure */
    worker->ends_well |= !worker->has_failed && worker_is_ending;
    worker->has_failed = true;
}

static int64_t wall_ms(void)
{
    return wall_clock_ns() / 1000000;
}

/* ---- what it shows --------------------------------------------------------------------------- */

/* Of the partition that is the furthest behind; of one whose end was reached it is 0. */
static double behind_s(const struct worker *worker)
{
    const int64_t now_ms = wall_ms();
    int64_t behind_ms = hosts_behind_ms(worker, now_ms);

    for (int32_t i = 0; i < worker->assigned_room; i++) {
        const struct assigned *assigned = worker->assigned[i];

        if (assigned && assigned->end_offset < 0 && assigned->partition.time_ms > 0 &&
            now_ms - assigned->partition.time_ms > behind_ms)
            behind_ms = now_ms - assigned->partition.time_ms;
    }
    return (double)behind_ms / 1e3;
}

static void measure(struct worker *worker)
{
    const int64_t now_ns = clock_ns(), length_ns = now_ns - worker->window_ns;

    if (length_ns < WINDOW_NS)
        return;
    worker->stage.counts.busy = 1 - (double)worker->idle_ns / (double)length_ns;
    worker->stage.counts.behind_s = behind_s(worker);
    worker->window_ns = now_ns;
    worker->idle_ns = 0;
    notify("WATCHDOG=1");
}

static void serve_page(struct worker *worker)
{
    struct pollfd fds[SERVER_POLLFDS];

    if (!worker->page || clock_ms() < worker->page_ms)
        return;
    worker->page_ms = clock_ms() + POLL_MS / 2;
    (void)metrics_server_prepare(worker->page, fds);
    if (poll(fds, SERVER_POLLFDS, 0) >= 0)
        metrics_server_serve(worker->page, fds);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Since the last commit; of times and memory there is always something new. */
static bool has_changed(const struct worker *worker)
{
    return worker->stage.counts.messages != worker->committed.messages ||
           worker->stage.counts.host_messages != worker->committed.host_messages ||
           worker->stage.counts.spans_open != worker->committed.spans_open ||
           worker->stage.counts.traces_closed != worker->committed.traces_closed ||
           worker->stage.counts.partitions != worker->committed.partitions;
}

static void commit_if_due(struct worker *worker)
{
    const int64_t now_ms = clock_ms(), passed_ms = now_ms - worker->committed_ms;

    if (passed_ms < worker->commit_ms || (!has_changed(worker) && passed_ms < QUIET_MS))
        return;
    worker->committed_ms = now_ms;
    (void)transaction_commit(worker);
}

static void run(struct worker *worker)
{
    notify("READY=1\nSTATUS=reads %s", worker->input.topic);
    worker->window_ns = clock_ns();
    worker->committed_ms = clock_ms();
    while (!worker_is_ending && !worker->has_failed) {
        if (!read_some(worker))
            pass_time(worker);
        relieve(worker);
        measure(worker);
        serve_page(worker);
        commit_if_due(worker);
        (void)rd_kafka_poll(worker->producer, 0);
    }
    notify("STOPPING=1");
}

/* ---- opening --------------------------------------------------------------------------------- */

static void consumer_error(rd_kafka_t *handle, int code, const char *reason, void *context)
{
    static bool is_said;
    struct worker *worker = context;
    char cause[512];

    if (code == RD_KAFKA_RESP_ERR__FATAL && rd_kafka_fatal_error(handle, cause, sizeof(cause))) {
        worker_fail(worker, "%s%s", cause,
                    worker->is_named ? " (is there another worker of this instance?)" : "");
    } else if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && !is_said) {
        say(BK7017, "%s: no broker answers: waiting for one", worker->input.brokers);
        is_said = true;
    } else {
        say(BK7018, "%s", reason);
    }
}

static bool open_consumer(struct worker *worker, struct error *error)
{
    /* the producer's options may be in the same file */
    static const char *const reserved[] = {"group.id", "enable.auto.commit", "isolation.level",
                                           "partition.assignment.strategy", NULL};
    /*
     * No group.instance.id, on purpose: a static member that dies between giving partitions up and
     * joining again comes back without a rebalance, and these partitions are nobody's from then on.
     * It would also keep its partitions for session.timeout.ms when it ends in good order.
     */
    const char *const settings[][2] = {
        {"group.id", worker->group},
        {"enable.auto.commit", "false"},
        {"enable.auto.offset.store", "false"},
        {"auto.offset.reset", "earliest"},
        {"partition.assignment.strategy", "cooperative-sticky"},
        {"isolation.level", "read_committed"},
        {"enable.partition.eof", "true"},
        {"session.timeout.ms", "6000"}, /* the least that brokers allow, by default */
        {"heartbeat.interval.ms", "1000"},
        {"queued.max.messages.kbytes", "16384"},
        {"fetch.wait.max.ms", "100"},
        {"reconnect.backoff.max.ms", "2000"},
        {"client.id", "blkin-work"},
    };
    const struct kafka_setup setup = {
        .url = &worker->input,
        .name = "input",
        .file_name = "kafka-file",
        .file = worker->params.exporter.transport.kafka_file,
        .reserved = reserved,
        .settings = settings,
        .count = sizeof(settings) / sizeof(settings[0]),
        .context = worker,
        .error = consumer_error,
        .rebalance = rebalance,
        .log = kafka_log_line,
    };

    worker->consumer = kafka_open(RD_KAFKA_CONSUMER, &setup, error);
    if (!worker->consumer)
        return false;
    (void)rd_kafka_poll_set_consumer(worker->consumer);
    return true;
}

/* Joins the group. */
static bool subscribe(struct worker *worker, struct error *error)
{
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(2);
    rd_kafka_resp_err_t code;

    (void)rd_kafka_topic_partition_list_add(topics, worker->input.topic, RD_KAFKA_PARTITION_UA);
    if (worker->fleet && !is_of_hosts(worker, worker->input.topic))
        (void)rd_kafka_topic_partition_list_add(topics, worker->hosts_topic, RD_KAFKA_PARTITION_UA);
    code = rd_kafka_subscribe(worker->consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    if (code)
        error_set(error, "input: %s", rd_kafka_err2str(code));
    worker->is_member = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    return worker->is_member;
}

static bool is_interrupted(void *context)
{
    (void)context;
    return worker_is_ending;
}

static void report(void *context, const char *message)
{
    (void)context;
    say(BK7019, "kept traces: %s", message);
}

/* A topic of OTLP traces in the cluster that is read: in our transactions. */
static bool is_own_topic(const struct worker *worker, struct kafka_url *url)
{
    const struct exporter_options *options = &worker->params.exporter;
    struct error error;

    return is_kafka_url(exporter_endpoint(options)) &&
           kafka_url_parse(url, "endpoint", "kafka-file", exporter_endpoint(options), &error) &&
           strcmp(url->brokers, worker->input.brokers) == 0 &&
           exporter_protocol(options)->format == FORMAT_OTLP;
}

static bool open_keeper(struct worker *worker, struct error *error)
{
    const struct exporter_callbacks callbacks = {is_interrupted, report, worker, NULL};
    struct kafka_url url;
    uint32_t partitions;

    if (!worker->params.tail_sampling)
        return true;
    worker->stage.rules = tail_rules_read(worker->params.tail_sampling, error);
    if (!worker->stage.rules)
        return false;
    if (!is_own_topic(worker, &url)) {
        worker->params.exporter.on_full = ON_FULL_BLOCK;
        worker->stage.keeper = keeper_new_exporter(&worker->params.exporter, &callbacks, error);
        return worker->stage.keeper != NULL;
    }
    if (strcmp(url.topic, worker->input.topic) == 0) {
        error_set(error, "endpoint: it is the topic that is read: kept traces would come again "
                         "and again");
        return false;
    }
    worker->kept = rd_kafka_topic_new(worker->producer, url.topic, NULL);
    partitions = transactions_partitions(worker, worker->kept, error);
    if (partitions == 0)
        return false;
    error_set(error, "out of memory");
    worker->stage.keeper = keeper_new_topic(partitions, transaction_emit_kept, worker);
    return worker->stage.keeper != NULL;
}

/* One of its own unless it is given: then nobody waits for it to come back. */
static void set_instance(struct worker *worker)
{
    const char *given = config_text(worker->config, "instance");
    char host[128] = "";

    worker->is_named = given && *given;
    (void)gethostname(host, sizeof(host) - 1);
    if (worker->is_named)
        (void)snprintf(worker->instance, sizeof(worker->instance), "%s", given);
    else
        (void)snprintf(worker->instance, sizeof(worker->instance), "%s-%ld-%" PRIx64, host,
                       (long)getpid(), (uint64_t)wall_clock_ns());
}

static bool read_config(struct worker *worker, struct error *error)
{
    const char *input = config_text(worker->config, "input");

    if (!input || !*input) {
        error_set(error, "input: expected the topic to read: kafka://BROKER[,BROKER]/TOPIC");
        return false;
    }
    if (!kafka_url_parse(&worker->input, "input", "kafka-file", input, error) ||
        !config_sink_params(worker->config, &worker->params, error))
        return false;
    worker->group = config_text(worker->config, "group");
    worker->deltas_name = config_text(worker->config, "deltas");
    worker->hosts_topic = config_text(worker->config, "host-input");
    worker->wait_ms = config_integer(worker->config, "wait-ms");
    worker->commit_ms = config_integer(worker->config, "commit-ms");
    set_instance(worker);
    return true;
}

static bool open_fleet(struct worker *worker, struct error *error)
{
    struct error cause;

    if (!worker->hosts_topic || !*worker->hosts_topic)
        return true;
    worker->fleet = fleet_new(config_text(worker->config, "host-groups"), &cause);
    if (!worker->fleet)
        error_set(error, "host-groups: %.900s", cause.text);
    return worker->fleet != NULL;
}

static bool open_stage(struct worker *worker, struct error *error)
{
    error_set(error, "out of memory");
    worker->period_ns = wall_clock_ns();
    return work_stage_open(&worker->stage, worker->wait_ms);
}

static bool open_page(struct worker *worker, struct error *error)
{
    const char *where = worker->params.prometheus_listen;

    if (!where)
        return true;
    worker->page = metrics_server_open("prometheus-listen", where, worker_page, worker, error);
    if (worker->page)
        say(BK7020, "%s", metrics_server_url(worker->page));
    return worker->page != NULL;
}

static bool open_all(struct worker *worker, struct error *error)
{
    return open_stage(worker, error) && open_fleet(worker, error) && open_page(worker, error) &&
           open_consumer(worker, error) && transactions_open(worker, error) &&
           open_keeper(worker, error) && subscribe(worker, error);
}

/* What helps nobody to be freed in order is left to the end of the process, as if it were killed.
 */
static _Noreturn void give_up(struct worker *worker)
{
    transaction_abort(worker);
    _exit(worker->ends_well ? 0 : 1);
}

/*
 * librdkafka up to 2.1 aborts when a member leaves that was never told what is its own (its issue
 * 4312). One that is not told soon goes as if it were killed: it has done nothing yet.
 */
static void wait_assigned(struct worker *worker)
{
    const int64_t until_ms = clock_ms() + ASSIGNED_MS;
    char *member = rd_kafka_memberid(worker->consumer);
    const bool has_joined = member && member[0];

    rd_kafka_mem_free(worker->consumer, member);
    if (!has_joined)
        return;
    while (worker->stage.counts.rebalances == 0 && clock_ms() < until_ms) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(worker->consumer, 100);

        if (message) /* somebody else's then: nothing of it is committed */
            rd_kafka_message_destroy(message);
    }
    if (worker->stage.counts.rebalances == 0)
        give_up(worker);
}

/* A last commit while we are in the group; leaving it commits what our partitions have. */
static void close_all(struct worker *worker)
{
    char line[ACCOUNT_LINE_MAX];

    (void)alarm(CLOSE_S);
    if (worker->is_member) {
        wait_assigned(worker);
        (void)transaction_commit(worker);
        if (!worker->has_failed)
            (void)rd_kafka_consumer_close(worker->consumer);
        if (worker->has_failed)
            give_up(worker);
        worker_account_line(&worker->stage.counts, line);
        say(BK7021, "%s", line);
    }
    if (worker->consumer)
        rd_kafka_destroy(worker->consumer);
    for (int32_t i = 0; i < worker->assigned_room; i++)
        give_away(worker, i);
    transactions_close(worker);
    free(worker->host_partitions);
    fleet_free(worker->fleet);
    metrics_server_close(worker->page);
    work_stage_close(&worker->stage);
    free(worker->assigned);
}

static bool is_interrupted_early(const struct error *error)
{
    return worker_is_ending && !error->text[0];
}

int worker_command(int argc, char *argv[])
{
    const struct config_request request = {"work", usage, NULL};
    const struct sigaction action = {.sa_handler = end_worker};
    static struct worker worker;
    struct error error = {""};
    bool is_right;
    int status;

    worker.config = config_read(&request, argc, argv, &status);
    if (!worker.config)
        return status;
    if (config_operands(worker.config) > 0) {
        fprintf(stderr, "%s: expected no operand\n%s", argv[0], usage);
        config_free(worker.config);
        return 2;
    }
    say_open(argv[0], config_text(worker.config, "log-level"));
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    if (!read_config(&worker, &error)) {
        say(BK1010, "%s", error.text);
        config_free(worker.config);
        return 2;
    }
    heap_prepare((size_t)worker.params.max_open_bytes);
    is_right = open_all(&worker, &error);
    if (is_right)
        run(&worker);
    else if (error.text[0] && !worker.has_failed)
        say(BK1010, "%s", error.text);
    is_right = is_right || is_interrupted_early(&error);
    close_all(&worker);
    config_free(worker.config);
    return is_right && (!worker.has_failed || worker.ends_well) ? 0 : 1;
}

#endif

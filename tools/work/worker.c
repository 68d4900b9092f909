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

#include "account/metrics_server.h"
#include "monotonic.h"
#include "service/notify.h"
#include "service/kafka_log.h"
#include "service/say.h"

#include <errno.h>
#include <fnmatch.h>
#include <malloc.h>
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

#define NAMES_MAX       65536U
#define NAMES_BYTES_MAX (16U << 20)

#define POLL_MS        50  /* one wait for a message */
#define BATCH          256 /* messages between looks at all else */
#define LAG_MS         500 /* so much clocks may differ where the log has ended */
#define ASK_MS         200 /* a partition's end is asked for that often */
#define ASK_LIMIT_MS   1000
#define COMMITTED_MS   30000 /* a transaction of the worker before may have to time out */
#define QUIET_MS       5000  /* nothing new: a commit that shows that we live */
#define WINDOW_NS      INT64_C(1000000000)
#define TO_COME_MS     5000 /* a message's time may be so much later than ours */
#define CLOSE_S        40   /* to leave the group, and to deliver kept traces */
#define RELIEVED_SHARE 10   /* what is over max-open-bytes, and a tenth of it, goes */

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
        say(worker_is_ending ? BT_LOGGING_LEVEL_WARNING : BT_LOGGING_LEVEL_ERROR,
            "%s: what was not committed is not counted; whoever goes on does that", text);
    /* the group may change just while one leaves it: that is no failure */
    worker->ends_well |= !worker->has_failed && worker_is_ending;
    worker->has_failed = true;
}

static int64_t wall_ms(void)
{
    return wall_clock_ns() / 1000000;
}

/* ---- traces that are closed ------------------------------------------------------------------ */

/* A tag of a span: an attribute of it, or of its resource. */
static bool has_tag(void *context, const struct trace_span *span, struct text key, const char *glob)
{
    const struct held_span *held = span->of;
    char value[WORK_NAME_MAX];

    (void)context;
    if (!otlp_span_attribute((struct text){held->raw, held->raw_length}, key, value,
                             sizeof(value)) &&
        !otlp_resource_attribute(held_origin(held)->resource, key, value, sizeof(value)))
        return false;
    return !glob || fnmatch(glob, value, 0) == 0;
}

static void keep_if_wanted(struct worker *worker, const struct held_trace *trace)
{
    const struct tail_trace tail = {
        .model = &worker->model,
        .trace_id_high = trace->high,
        .trace_id = trace->low,
        .has_tag = has_tag,
    };

    if (worker->keeper && tail_rules_fit(worker->rules, &tail, worker->statistics) &&
        !keeper_add(worker->keeper, trace, &worker->counts) && !worker->has_failed)
        worker_fail(worker, "a kept trace cannot be written: out of memory");
}

static void close_trace(void *context, const struct held_trace *trace)
{
    struct worker *worker = context;
    bool has_room = true;

    trace_model_clear(&worker->model);
    for (const struct held_span *span = trace->first; span; span = span->next)
        has_room = has_room && trace_model_add(&worker->model, &span->span);
    has_room = has_room && trace_model_link(&worker->model);
    if (has_room) {
        worker->counts.traces_incomplete += !trace_model_is_whole(&worker->model);
        keep_if_wanted(worker, trace);
        has_room = statistics_add_trace(worker->statistics, &worker->model);
    }
    worker->assembly.is_starved |= !has_room;
}

static void count_late(void *context, const struct trace_span *span)
{
    struct worker *worker = context;

    worker->assembly.is_starved |= !statistics_add_span(worker->statistics, span);
}

static void release_message(void *context, struct held_message *message)
{
    (void)context;
    rd_kafka_message_destroy(message->handle);
    free(message);
}

/* ---- partitions come and go ------------------------------------------------------------------ */

static struct assigned *assigned_of(const struct worker *worker, int32_t partition)
{
    return partition >= 0 && partition < worker->assigned_room ? worker->assigned[partition] : NULL;
}

static bool make_assigned_room(struct worker *worker, int32_t partition)
{
    const int32_t room = partition + 16;
    struct assigned **assigned;

    if (partition < worker->assigned_room)
        return true;
    assigned = realloc(worker->assigned, (size_t)room * sizeof(*assigned));
    if (!assigned)
        return false;
    memset(assigned + worker->assigned_room, 0,
           (size_t)(room - worker->assigned_room) * sizeof(*assigned));
    worker->assigned = assigned;
    worker->assigned_room = room;
    return true;
}

/* Where to begin: what was committed, if the log has it still. */
static bool find_place(struct worker *worker, const rd_kafka_topic_partition_t *committed,
                       struct place *place)
{
    int64_t low = 0, high = 0;
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        worker->consumer, worker->input.topic, committed->partition, &low, &high, COMMITTED_MS);

    if (code || committed->err) {
        worker_fail(worker, "partition %" PRId32 ": %s", committed->partition,
                    rd_kafka_err2str(code ? code : committed->err));
        return false;
    }
    *place = (struct place){low, low, low};
    if (committed->offset < 0)
        return true;
    *place =
        place_read(committed->offset, (struct text){committed->metadata, committed->metadata_size});
    if (place->watermark > high) {
        say(BT_LOGGING_LEVEL_WARNING,
            "partition %" PRId32 " ends at %" PRId64 ", before %" PRId64
            " that was committed: was the topic made anew? It is read from its beginning",
            committed->partition, high, place->watermark);
        *place = (struct place){low, low, low};
    }
    if (place->read_back < low)
        place->read_back = low;
    if (place->watermark < low) { /* retention was faster than we */
        if (low > place->read_to)
            worker->counts.offsets_missing += (uint64_t)(low - place->read_to);
        *place = (struct place){low, low, place->read_to > low ? place->read_to : low};
    }
    return true;
}

static bool assign_one(struct worker *worker, rd_kafka_topic_partition_t *committed)
{
    struct assigned *assigned = calloc(1, sizeof(*assigned));
    struct place place;

    if (!assigned || !make_assigned_room(worker, committed->partition)) {
        worker_fail(worker, "out of memory");
        free(assigned);
        return false;
    }
    if (!find_place(worker, committed, &place) ||
        !partition_open(&assigned->partition, &worker->assembly, place)) {
        worker_fail(worker, "out of memory");
        free(assigned);
        return false;
    }
    assigned->committed = committed->offset < 0 ? (struct place){-1, -1, -1} : place;
    assigned->end_offset = -1;
    worker->assigned[committed->partition] = assigned;
    worker->counts.partitions++;
    committed->offset = place.read_back;
    return true;
}

static void assign(struct worker *worker, rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_topic_partition_list_t *committed = rd_kafka_topic_partition_list_copy(partitions);
    const rd_kafka_resp_err_t code = rd_kafka_committed(worker->consumer, committed, COMMITTED_MS);
    rd_kafka_error_t *answer;
    bool is_right = code == RD_KAFKA_RESP_ERR_NO_ERROR;

    if (!is_right)
        worker_fail(worker, "what was committed cannot be read: %s", rd_kafka_err2str(code));
    for (int i = 0; is_right && i < committed->cnt; i++)
        is_right = assign_one(worker, &committed->elems[i]);
    for (int i = 0; i < committed->cnt; i++) /* the metadata are not for it */
        partitions->elems[i].offset = committed->elems[i].offset;
    rd_kafka_topic_partition_list_destroy(committed);
    answer = rd_kafka_incremental_assign(worker->consumer, partitions);
    if (answer)
        worker_fail(worker, "partitions: %s", rd_kafka_error_string(answer));
    rd_kafka_error_destroy(answer);
}

static void give_away(struct worker *worker, int32_t partition)
{
    struct assigned *assigned = assigned_of(worker, partition);

    if (!assigned)
        return;
    worker->assigned[partition] = NULL;
    worker->counts.partitions--;
    partition_close(&assigned->partition);
    free(assigned);
}

/*
 * What they have given is committed first. Where they are lost already, somebody else counts it
 * again, and it cannot be told apart any more from what is not.
 */
static void give_back(struct worker *worker, rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_error_t *answer;

    if (rd_kafka_assignment_lost(worker->consumer))
        worker_fail(worker, "the group has given our partitions to others: they did not hear of "
                            "us for session.timeout.ms");
    for (int i = 0; i < partitions->cnt; i++) {
        if (assigned_of(worker, partitions->elems[i].partition))
            transaction_add_leaving(worker, partitions->elems[i].partition);
        give_away(worker, partitions->elems[i].partition);
    }
    (void)transaction_commit(worker);
    answer = rd_kafka_incremental_unassign(worker->consumer, partitions);
    if (answer)
        worker_fail(worker, "partitions: %s", rd_kafka_error_string(answer));
    rd_kafka_error_destroy(answer);
}

static void rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t what,
                      rd_kafka_topic_partition_list_t *partitions, void *context)
{
    struct worker *worker = context;

    (void)handle;
    worker->counts.rebalances++;
    say(BT_LOGGING_LEVEL_INFO, "%d partitions %s", partitions->cnt,
        what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? "are ours" : "go to others");
    if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        assign(worker, partitions);
    else
        give_back(worker, partitions);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The log's, which no worker sees otherwise. Of one far to come: ours, so that it closes nothing.
 */
static int64_t time_of(struct worker *worker, const rd_kafka_message_t *message)
{
    static bool is_said;
    rd_kafka_timestamp_type_t type;
    const int64_t time_ms = rd_kafka_message_timestamp(message, &type), now_ms = wall_ms();

    if (type != RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME && !is_said) {
        say(BT_LOGGING_LEVEL_WARNING,
            "topic \"%s\" has the times of its writers: set message.timestamp.type=LogAppendTime "
            "(kafka-configs.sh --alter), or spans may be counted as late, or twice after a kill",
            worker->input.topic);
        is_said = true;
    }
    if (time_ms < 0 || time_ms > now_ms + TO_COME_MS) {
        worker->counts.messages_skewed++;
        return now_ms;
    }
    return time_ms;
}

static void read_message(struct worker *worker, rd_kafka_message_t *message)
{
    struct assigned *assigned = assigned_of(worker, message->partition);
    struct held_message *held;

    if (!assigned || message->offset < assigned->partition.next) {
        rd_kafka_message_destroy(message); /* was under way when the partition went */
        return;
    }
    held = malloc(sizeof(*held));
    if (!held) {
        worker->assembly.is_starved = true;
        rd_kafka_message_destroy(message);
        return;
    }
    *held = (struct held_message){
        .offset = message->offset,
        .time_ms = time_of(worker, message),
        .bytes = {message->payload, message->len},
        .handle = message,
    };
    assigned->end_offset = -1;
    partition_read(&assigned->partition, held);
}

static void take_event(struct worker *worker, rd_kafka_message_t *message)
{
    struct assigned *assigned = assigned_of(worker, message->partition);
    struct error error;

    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        if (assigned)
            assigned->end_offset = message->offset;
    } else {
        kafka_describe(&error, worker->input.topic, message->err, rd_kafka_message_errstr(message),
                       "kafka-file");
        say(BT_LOGGING_LEVEL_WARNING, "%s", error.text);
    }
    rd_kafka_message_destroy(message);
}

/* The one whose oldest trace is the oldest; of those without any the one with the most to forget.
 */
static struct assigned *oldest(const struct worker *worker)
{
    struct assigned *found = NULL;

    for (int32_t i = 0; i < worker->assigned_room; i++) {
        struct assigned *assigned = worker->assigned[i];

        if (!assigned)
            continue;
        if (!found ||
            partition_due_ms(&assigned->partition) < partition_due_ms(&found->partition) ||
            (!found->partition.open_traces.first && !found->partition.decided.first))
            found = assigned;
    }
    return found;
}

static void relieve(struct worker *worker)
{
    const uint64_t max = (uint64_t)worker->params.max_open_bytes;
    struct assigned *assigned;

    if (worker->counts.open_bytes <= max)
        return;
    if (worker->counts.traces_early == 0)
        say(BT_LOGGING_LEVEL_WARNING,
            "traces are closed before their time: max-open-bytes (%" PRIu64 ") is too small, or "
            "there are too few workers",
            max);
    while (worker->counts.open_bytes > max - max / RELIEVED_SHARE && (assigned = oldest(worker)) &&
           partition_relieve(&assigned->partition))
        ;
}

/*
 * Where the log has ended no message tells its time. Our clock does, once the broker has said that
 * there is nothing more: what comes later is later by its clock, too.
 */
static void pass_time(struct worker *worker)
{
    static int32_t next;
    const int64_t now_ms = clock_ms();

    for (int32_t i = 0; i < worker->assigned_room; i++) {
        struct assigned *assigned = worker->assigned[(next + i) % worker->assigned_room];
        const int64_t time_ms = wall_ms() - LAG_MS;
        int64_t low, high;

        if (!assigned || assigned->end_offset < 0 || now_ms < assigned->asked_ms + ASK_MS ||
            partition_due_ms(&assigned->partition) > time_ms)
            continue;
        assigned->asked_ms = now_ms;
        next = (next + i + 1) % worker->assigned_room;
        if (rd_kafka_query_watermark_offsets(worker->consumer, worker->input.topic,
                                             (next + worker->assigned_room - 1) %
                                                 worker->assigned_room,
                                             &low, &high, ASK_LIMIT_MS) == 0 &&
            high == assigned->end_offset)
            partition_pass(&assigned->partition, time_ms);
        return; /* one at a time: messages may have come */
    }
}

/* Reads what is there. Returns false if there was nothing. */
static bool read_some(struct worker *worker)
{
    rd_kafka_message_t *message = rd_kafka_consumer_poll(worker->consumer, 0);
    int count = 0;

    if (!message) {
        const int64_t from_ns = clock_ns();

        message = rd_kafka_consumer_poll(worker->consumer, POLL_MS);
        worker->idle_ns += clock_ns() - from_ns;
    }
    if (!message)
        return false;
    while (message) {
        if (message->err)
            take_event(worker, message);
        else
            read_message(worker, message);
        message = ++count < BATCH && !worker->has_failed
                      ? rd_kafka_consumer_poll(worker->consumer, 0)
                      : NULL;
    }
    return true;
}

/* ---- what it shows --------------------------------------------------------------------------- */

/* Of the partition that is the furthest behind; of one whose end was reached it is 0. */
static double behind_s(const struct worker *worker)
{
    const int64_t now_ms = wall_ms();
    int64_t behind_ms = 0;

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
    worker->counts.busy = 1 - (double)worker->idle_ns / (double)length_ns;
    worker->counts.behind_s = behind_s(worker);
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
    return worker->counts.messages != worker->committed.messages ||
           worker->counts.spans_open != worker->committed.spans_open ||
           worker->counts.traces_closed != worker->committed.traces_closed ||
           worker->counts.partitions != worker->committed.partitions;
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
        say(BT_LOGGING_LEVEL_WARNING, "%s: no broker answers: waiting for one",
            worker->input.brokers);
        is_said = true;
    } else {
        say(BT_LOGGING_LEVEL_INFO, "%s", reason);
    }
}

static rd_kafka_conf_t *make_conf(struct worker *worker, struct error *error)
{
    static const char *const settings[][2] = {
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
    /* the producer's options may be in the same file */
    static const char *const reserved[] = {"group.id", "enable.auto.commit", "isolation.level",
                                           "partition.assignment.strategy", NULL};
    /*
     * No group.instance.id, on purpose: a static member that dies between giving partitions up and
     * joining again comes back without a rebalance, and these partitions are nobody's from then on.
     * It would also keep its partitions for session.timeout.ms when it ends in good order.
     */
    const char *names[1][2] = {{"group.id", worker->group}};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    if (kafka_conf_set(conf, settings, sizeof(settings) / sizeof(settings[0]), "input", error) &&
        kafka_conf_set(conf, names, 1, "group", error) &&
        kafka_conf_set_url(conf, &worker->input, "input", "kafka-file", reserved, error) &&
        kafka_conf_set_file(conf, worker->params.exporter.transport.kafka_file, "kafka-file",
                            reserved, error)) {
        rd_kafka_conf_set_opaque(conf, worker);
        rd_kafka_conf_set_rebalance_cb(conf, rebalance);
        rd_kafka_conf_set_error_cb(conf, consumer_error);
        rd_kafka_conf_set_log_cb(conf, kafka_log_line);
        return conf;
    }
    rd_kafka_conf_destroy(conf);
    return NULL;
}

static bool open_consumer(struct worker *worker, struct error *error)
{
    rd_kafka_conf_t *conf = make_conf(worker, error);
    char cause[256];

    if (!conf)
        return false;
    worker->consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, cause, sizeof(cause));
    if (!worker->consumer) {
        rd_kafka_conf_destroy(conf);
        error_set(error, "input: %s", cause);
        return false;
    }
    (void)rd_kafka_poll_set_consumer(worker->consumer);
    return true;
}

/* Joins the group. */
static bool subscribe(struct worker *worker, struct error *error)
{
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_resp_err_t code;

    (void)rd_kafka_topic_partition_list_add(topics, worker->input.topic, RD_KAFKA_PARTITION_UA);
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
    say(BT_LOGGING_LEVEL_WARNING, "kept traces: %s", message);
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
    worker->rules = tail_rules_read(worker->params.tail_sampling, error);
    if (!worker->rules)
        return false;
    if (!is_own_topic(worker, &url)) {
        worker->params.exporter.on_full = ON_FULL_BLOCK;
        worker->keeper = keeper_new_exporter(&worker->params.exporter, &callbacks, error);
        return worker->keeper != NULL;
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
    worker->keeper = keeper_new_topic(partitions, transaction_emit_kept, worker);
    return worker->keeper != NULL;
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
    worker->param_map = config_sink_params(worker->config);
    if (!worker->param_map) {
        error_set(error, "out of memory");
        return false;
    }
    if (!kafka_url_parse(&worker->input, "input", "kafka-file", input, error) ||
        !params_read(&worker->params, worker->param_map, error))
        return false;
    worker->group = config_text(worker->config, "group");
    worker->deltas_name = config_text(worker->config, "deltas");
    worker->wait_ms = config_integer(worker->config, "wait-ms");
    worker->commit_ms = config_integer(worker->config, "commit-ms");
    set_instance(worker);
    return true;
}

static bool open_analysis(struct worker *worker, struct error *error)
{
    error_set(error, "out of memory");
    worker->names = names_new(NAMES_MAX, NAMES_BYTES_MAX);
    worker->statistics = worker->names ? statistics_new(worker->names) : NULL;
    worker->period_ns = wall_clock_ns();
    worker->assembly = (struct assembly){
        .wait_ms = worker->wait_ms,
        .names = worker->names,
        .counts = &worker->counts,
        .close = close_trace,
        .late = count_late,
        .release = release_message,
        .context = worker,
    };
    assembly_open(&worker->assembly);
    return worker->statistics != NULL;
}

static bool open_page(struct worker *worker, struct error *error)
{
    const char *where = worker->params.prometheus_listen;

    if (!where)
        return true;
    worker->page = metrics_server_open(where, worker_page, worker, error);
    if (worker->page)
        say(BT_LOGGING_LEVEL_INFO, "%s", metrics_server_url(worker->page));
    return worker->page != NULL;
}

static bool open_all(struct worker *worker, struct error *error)
{
    return open_analysis(worker, error) && open_page(worker, error) &&
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

/* A last commit while we are in the group; leaving it commits what our partitions have. */
static void close_all(struct worker *worker)
{
    char line[ACCOUNT_LINE_MAX];

    (void)alarm(CLOSE_S);
    if (worker->is_member) {
        (void)transaction_commit(worker);
        if (!worker->has_failed)
            (void)rd_kafka_consumer_close(worker->consumer);
        if (worker->has_failed)
            give_up(worker);
        worker_account_line(&worker->counts, line);
        say(BT_LOGGING_LEVEL_INFO, "%s", line);
    }
    if (worker->consumer)
        rd_kafka_destroy(worker->consumer);
    for (int32_t i = 0; i < worker->assigned_room; i++)
        give_away(worker, i);
    transactions_close(worker);
    keeper_free(worker->keeper);
    metrics_server_close(worker->page);
    tail_rules_free(worker->rules);
    trace_model_destroy(&worker->model);
    statistics_free(worker->statistics);
    names_free(worker->names);
    assembly_close(&worker->assembly);
    free(worker->assigned);
    bt_value_put_ref(worker->param_map);
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
    /* what brokers send comes in large pieces: their memory is used again, not asked for again */
    (void)mallopt(M_MMAP_THRESHOLD, 16 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
    if (!read_config(&worker, &error)) {
        say(BT_LOGGING_LEVEL_ERROR, "%s", error.text);
        bt_value_put_ref(worker.param_map);
        config_free(worker.config);
        return 2;
    }
    is_right = open_all(&worker, &error);
    if (is_right)
        run(&worker);
    else if (error.text[0] && !worker.has_failed)
        say(BT_LOGGING_LEVEL_ERROR, "%s", error.text);
    is_right = is_right || is_interrupted_early(&error);
    close_all(&worker);
    config_free(worker.config);
    return is_right && (!worker.has_failed || worker.ends_well) ? 0 : 1;
}

#endif

/*
 * Sends traces (see traces.h) to a topic of Kafka at a given rate. Each service's spans are in
 * messages of their own. The messages of a trace are spread over a time, as from several hosts.
 *
 * Each second, prints "TIME_MS MADE ACKNOWLEDGED FAILED" in spans, and the queued messages. At the
 * end, writes the account and the numbers of its traces as JSON into a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "traces.h"
#include "waits.h"

#include <getopt.h>
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MESSAGE_SPANS 500
#define FLUSH_NS      INT64_C(50000000)
#define WINDOW        (1U << 16) /* traces of which some services have not sent their spans */
#define PARTITIONS    256
#define CHUNK         64 /* traces between two readings of the clock */
#define TOPIC_TICKS   200
#define END_S         300                /* longest wait until all spans are acknowledged */
#define TRACE_NS      INT64_C(200000000) /* the longest trace; each is sent when it is over */

/* The spans of a service that go into one partition. */
struct scale_message {
    size_t length;
    unsigned spans;
    int64_t since_ns;
    char bytes[OPENING_MAX + MESSAGE_SPANS * (PIECE_MAX / PIECE_SPANS) + PIECE_MAX];
};

struct load {
    const char *brokers, *topic, *out;
    double rate; /* spans a second */
    double seconds;
    uint32_t seed;
    int64_t spread_ns; /* between a trace's first service and its last one */

    struct template *templates;
    struct scale_trace *window;
    uint64_t made_traces, made_spans;
    uint64_t made[TEMPLATES];
    uint64_t next[SCALE_SERVICES]; /* the trace whose spans the service sends next */
    uint32_t partitions;
    struct scale_message *messages[SCALE_SERVICES]; /* by partition */

    rd_kafka_t *producer;
    rd_kafka_topic_t *rd_topic;
    uint64_t acknowledged, failed;
    double began; /* s */
    double asked; /* spans that are due by now */
};

static int64_t clock_of(clockid_t id)
{
    struct timespec now;

    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double seconds_now(void)
{
    return (double)clock_of(CLOCK_MONOTONIC) / 1e9;
}

/* ---- Kafka ----------------------------------------------------------------------------------- */

static void on_report(rd_kafka_t *producer, const rd_kafka_message_t *message, void *context)
{
    struct load *load = context;
    const uint64_t spans = (uint64_t)(uintptr_t)message->_private;

    (void)producer;
    if (message->err)
        load->failed += spans;
    else
        load->acknowledged += spans;
}

static bool set(rd_kafka_conf_t *conf, const char *key, const char *value)
{
    char text[256];

    if (rd_kafka_conf_set(conf, key, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
        return true;
    (void)fprintf(stderr, "produce: %s\n", text);
    return false;
}

/* Waits for a new topic, which the broker reports with a delay. Returns its number of partitions;
 * 0: none. */
static uint32_t wait_topic(const struct load *load)
{
    for (int i = 0; i < TOPIC_TICKS; i++) {
        const struct rd_kafka_metadata *metadata;
        int partitions = 0;

        if (!rd_kafka_metadata(load->producer, 0, load->rd_topic, &metadata, 5000)) {
            if (metadata->topic_cnt == 1 && !metadata->topics[0].err)
                partitions = metadata->topics[0].partition_cnt;
            rd_kafka_metadata_destroy(metadata);
        }
        if (partitions > 0)
            return partitions <= PARTITIONS ? (uint32_t)partitions : 0;
        pause_us(50000);
    }
    return 0;
}

static bool connect_to(struct load *load)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];

    if (!set(conf, "bootstrap.servers", load->brokers) || !set(conf, "acks", "all") ||
        !set(conf, "enable.idempotence", "true") || !set(conf, "compression.codec", "lz4") ||
        !set(conf, "linger.ms", "20") || !set(conf, "batch.size", "1000000") ||
        !set(conf, "queue.buffering.max.kbytes", "262144") || !set(conf, "log_level", "2") ||
        !set(conf, "message.timeout.ms", "300000") || !set(conf, "log.connection.close", "false"))
        return false;
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_opaque(conf, load);
    load->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (!load->producer) {
        (void)fprintf(stderr, "produce: %s\n", text);
        return false;
    }
    load->rd_topic = rd_kafka_topic_new(load->producer, load->topic, NULL);
    load->partitions = wait_topic(load);
    if (load->partitions == 0)
        (void)fprintf(stderr, "produce: no topic %s of up to %d partitions at %s\n", load->topic,
                      PARTITIONS, load->brokers);
    return load->partitions != 0;
}

static void send_message(struct load *load, struct scale_message *message, uint32_t partition)
{
    message_close(message->bytes, message->length);
    while (rd_kafka_produce(load->rd_topic, (int32_t)partition, RD_KAFKA_MSG_F_COPY, message->bytes,
                            message->length, NULL, 0, (void *)(uintptr_t)message->spans) == -1)
        (void)rd_kafka_poll(load->producer, 10);
    message->spans = 0;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void add_piece(struct load *load, unsigned service, const struct scale_trace *trace,
                      int64_t now_ns)
{
    const struct scale_piece *piece = &load->templates[trace->template].piece[service];
    struct scale_message *message = &load->messages[service][trace->partition];

    if (piece->spans == 0)
        return;
    if (message->spans == 0) {
        message->length = message_open(message->bytes, service);
        message->since_ns = now_ns;
    }
    message->length += piece_write(message->bytes + message->length, piece, trace);
    message->spans += piece->spans;
    if (message->spans >= MESSAGE_SPANS)
        send_message(load, message, trace->partition);
}

static void send_old(struct load *load, int64_t now_ns)
{
    for (unsigned service = 0; service < SCALE_SERVICES; service++) {
        for (uint32_t partition = 0; partition < load->partitions; partition++) {
            struct scale_message *message = &load->messages[service][partition];

            if (message->spans && now_ns - message->since_ns >= FLUSH_NS)
                send_message(load, message, partition);
        }
    }
}

/* Sends spans: a service later in the list sends its part of a trace later. */
static bool give_out(struct load *load, int64_t now_ns)
{
    bool is_any = false;

    for (unsigned service = 0; service < SCALE_SERVICES; service++) {
        const int64_t until_ns = now_ns - load->spread_ns * service / (SCALE_SERVICES - 1);

        while (load->next[service] < load->made_traces) {
            const struct scale_trace *trace = &load->window[load->next[service] % WINDOW];

            if (trace->start_ns + TRACE_NS > until_ns)
                break;
            add_piece(load, service, trace, now_ns);
            load->next[service]++;
            is_any = true;
        }
    }
    return is_any;
}

/* Makes the traces that are due. Returns false at the end. */
static bool make(struct load *load, double *before)
{
    const double elapsed = seconds_now() - load->began;
    const int64_t now_ns = clock_of(CLOCK_REALTIME);

    if (elapsed > load->seconds)
        return false;
    load->asked += load->rate * (elapsed - *before);
    *before = elapsed;
    for (unsigned i = 0; i < CHUNK && (double)load->made_spans < load->asked &&
                         load->made_traces - load->next[SCALE_SERVICES - 1] < WINDOW;
         i++) {
        struct scale_trace *trace = &load->window[load->made_traces % WINDOW];

        *trace = trace_of(load->seed, load->made_traces++, load->partitions);
        trace->start_ns = now_ns - TRACE_NS;
        load->made[trace->template]++;
        load->made_spans += load->templates[trace->template].spans;
    }
    return true;
}

static void report(const struct load *load)
{
    (void)printf("%" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n",
                 clock_of(CLOCK_REALTIME) / 1000000, load->made_spans, load->acknowledged,
                 load->failed, rd_kafka_outq_len(load->producer));
    (void)fflush(stdout);
}

static void run(struct load *load)
{
    double before = 0, reported = seconds_now();
    bool is_making = true;

    load->began = seconds_now();
    while (is_making || load->next[SCALE_SERVICES - 1] < load->made_traces) {
        bool is_busy;

        is_making = is_making && make(load, &before);
        is_busy = give_out(load, clock_of(CLOCK_REALTIME));
        send_old(load, clock_of(CLOCK_REALTIME));
        (void)rd_kafka_poll(load->producer, 0);
        if (!is_busy || (double)load->made_spans >= load->asked)
            pause_us(1000);
        if (seconds_now() - reported >= 1) {
            reported += 1;
            report(load);
        }
    }
    send_old(load, INT64_MAX / 2);
    for (double until = seconds_now() + END_S;
         rd_kafka_outq_len(load->producer) > 0 && seconds_now() < until;) {
        (void)rd_kafka_poll(load->producer, 100);
        if (seconds_now() - reported >= 1) {
            reported += 1;
            report(load);
        }
    }
    report(load);
}

/* ---- the account ----------------------------------------------------------------------------- */

static bool print_account(const struct load *load)
{
    FILE *out = fopen(load->out, "w");

    if (!out) {
        perror(load->out);
        return false;
    }
    (void)fprintf(out,
                  "{\"seed\":%" PRIu32 ",\"spans\":%" PRIu64 ",\"acknowledged\":%" PRIu64
                  ",\"failed\":%" PRIu64 ",\n",
                  load->seed, load->made_spans, load->acknowledged, load->failed);
    templates_print(out, load->templates, load->made);
    (void)fprintf(out, "}\n");
    return fclose(out) == 0;
}

static int usage(void)
{
    (void)fprintf(stderr,
                  "usage: produce --brokers=HOST:PORT --topic=TOPIC --out=FILE --rate=SPANS "
                  "--seconds=S\n  [--seed=N] [--spread-ms=MS]\n");
    return 2;
}

static bool read_options(struct load *load, int argc, char **argv)
{
    static const struct option options[] = {
        {"brokers", required_argument, NULL, 'b'},   {"topic", required_argument, NULL, 't'},
        {"out", required_argument, NULL, 'o'},       {"rate", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},   {"seed", required_argument, NULL, 'e'},
        {"spread-ms", required_argument, NULL, 'p'}, {NULL, 0, NULL, 0}};

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'b':
            load->brokers = optarg;
            break;
        case 't':
            load->topic = optarg;
            break;
        case 'o':
            load->out = optarg;
            break;
        case 'r':
            load->rate = strtod(optarg, NULL);
            break;
        case 's':
            load->seconds = strtod(optarg, NULL);
            break;
        case 'e':
            load->seed = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'p':
            load->spread_ns = strtol(optarg, NULL, 10) * 1000000;
            break;
        default:
            return false;
        }
    }
    return load->brokers && load->topic && load->out && load->rate > 0 && load->seconds > 0 &&
           load->seed < 65536 && optind == argc;
}

static bool prepare(struct load *load)
{
    load->templates = templates_new();
    load->window = calloc(WINDOW, sizeof(*load->window));
    if (!load->templates || !load->window)
        return false;
    for (unsigned service = 0; service < SCALE_SERVICES; service++) {
        load->messages[service] = calloc(load->partitions, sizeof(*load->messages[service]));
        if (!load->messages[service])
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct load load = {.seed = 1, .spread_ns = 100000000};

    if (!read_options(&load, argc, argv))
        return usage();
    if (!connect_to(&load) || !prepare(&load))
        return 1;
    run(&load);
    return print_account(&load) ? 0 : 1;
}

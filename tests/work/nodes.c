/*
 * nodes: hosts that are made up, each with a sender of its own, as `blkin host` has; and on its
 * output, once all is acknowledged, what they have sent:
 *
 *     {"hosts": 3, "seconds": 10.0, "samples": ..., "points": ..., "of_osd": ..., "messages": ...,
 *      "bytes": ...,
 *      "metrics": {"METRIC|INSTANCE": [SAMPLES, INCREASE], ...}}
 *
 * nodes BROKERS TOPIC [hosts=N] [seconds=N] [period-ms=N] [send-ms=N] [seed=N]: of all groups that
 * there are by default, and of two disks, an interface and a process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifdef HAS_KAFKA

#include "tools/host/sample.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "seed.h"
#include "tools/points/points_sender.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define INSTANCES 2
#define LIMIT_MS  60000

struct metric {
    uint64_t samples, increase;
};

/* Of an instance of a group; the same of all hosts. */
static struct metric sent[HOST_KINDS][INSTANCES][HOST_METRICS_MAX];

struct node {
    struct points_sender *sender;
    char name[32];
    int64_t due_ms;
    bool has_begun;
    uint64_t values[HOST_KINDS][INSTANCES][HOST_METRICS_MAX];
};

static const char *instance_of(enum host_kind kind, size_t i)
{
    static const char *const disks[] = {"vda", "vdb"};

    if (kind == HOST_DISK)
        return disks[i];
    return kind == HOST_NETWORK ? "eth0" : kind == HOST_PROCESS ? "redis-server[123]" : "";
}

/* Most counters of a machine stand still most of the time, others grow by bytes and ns. */
static void go_on(const struct host_metric *metric, uint64_t *value, size_t i)
{
    const uint64_t much = i % 3 == 0 ? 100000000 : 1000;

    if (metric->is_counter)
        *value += i % 2 && dice(4) ? 0 : dice(much);
    else
        *value = i % 2 && dice(4) ? *value : dice(much);
}

static void sample_group(struct node *node, enum host_kind kind, size_t instance, int64_t time_ns,
                         uint32_t period_ms)
{
    const struct host_definition *definition = host_definition(kind);
    struct sample_metric metrics[HOST_METRICS_MAX];
    uint64_t *values = node->values[kind][instance];
    const struct sample sample = {
        .host = text_of(node->name),
        .group = text_of(definition->name),
        .instance = text_of(instance_of(kind, instance)),
        .time_ns = time_ns,
        .period_ms = period_ms,
        .count = definition->count,
        .metrics = metrics,
        .values = values,
        .present = UINT64_MAX,
    };

    for (size_t i = 0; i < definition->count; i++) {
        const struct host_metric *metric = &definition->metrics[i];
        const uint64_t before = values[i];

        metrics[i] = (struct sample_metric){text_of(metric->name), text_of(metric->unit),
                                            metric->is_counter};
        go_on(metric, &values[i], i);
        if (node->has_begun) {
            sent[kind][instance][i].samples++;
            sent[kind][instance][i].increase += metric->is_counter ? values[i] - before : 0;
        }
    }
    points_sender_take(node->sender, &sample, clock_ms());
}

static void sample_node(struct node *node, uint32_t period_ms)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    for (int kind = 0; kind < HOST_CGROUP; kind++) {
        for (size_t i = 0; i < (kind == HOST_DISK ? INSTANCES : 1); i++)
            sample_group(node, (enum host_kind)kind, i,
                         (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, period_ms);
    }
    node->has_begun = true;
}

static void report(void *context, const char *message)
{
    (void)context;
    fprintf(stderr, "nodes: %s\n", message);
}

static bool is_osd(size_t number)
{
    return number % 2;
}

static void open_node(struct node *node, const char *url, size_t number, int64_t send_ms)
{
    const struct points_sender_options options = {.url = url, .send_ms = send_ms, .report = report};
    struct error error;

    (void)snprintf(node->name, sizeof(node->name), "%s-%zu", is_osd(number) ? "osd" : "web",
                   number);
    node->sender = points_sender_open(&options, &error);
    if (!node->sender) {
        fprintf(stderr, "nodes: %s\n", error.text);
        exit(1);
    }
}

static void print_metrics(void)
{
    const char *comma = "";

    for (int kind = 0; kind < HOST_CGROUP; kind++) {
        const struct host_definition *definition = host_definition((enum host_kind)kind);

        for (size_t k = 0; k < INSTANCES * definition->count; k++) {
            const size_t instance = k / definition->count, i = k % definition->count;
            const struct metric *metric = &sent[kind][instance][i];
            const char *name = instance_of((enum host_kind)kind, instance);

            if (!metric->samples)
                continue;
            printf("%s\n\"%s|%.*s\": [%" PRIu64 ", %" PRIu64 "]", comma,
                   definition->metrics[i].name, (int)strcspn(name, "["), name, metric->samples,
                   metric->increase);
            comma = ",";
        }
    }
}

static int64_t number_of(int argc, char *argv[], const char *name, int64_t usual)
{
    for (int i = 3; i < argc; i++) {
        if (strncmp(argv[i], name, strlen(name)) == 0 && argv[i][strlen(name)] == '=')
            return atoll(argv[i] + strlen(name) + 1);
    }
    return usual;
}

static void run(struct node *nodes, size_t count, uint32_t period_ms, int64_t seconds)
{
    const int64_t end_ms = clock_ms() + seconds * 1000;
    const struct timespec pause = {0, 5000000};

    for (size_t i = 0; i < count; i++)
        nodes[i].due_ms = clock_ms() + (int64_t)dice(period_ms);
    while (clock_ms() < end_ms) {
        for (size_t i = 0; i < count; i++) {
            if (clock_ms() >= nodes[i].due_ms) {
                nodes[i].due_ms += period_ms;
                sample_node(&nodes[i], period_ms);
            } else {
                points_sender_poll(nodes[i].sender, clock_ms());
            }
        }
        (void)nanosleep(&pause, NULL);
    }
}

int main(int argc, char *argv[])
{
    const size_t count = (size_t)number_of(argc, argv, "hosts", 3);
    const int64_t seconds = number_of(argc, argv, "seconds", 5), start_ms = clock_ms();
    struct node *nodes = calloc(count, sizeof(*nodes));
    struct points_sender_counts all = {.samples = 0};
    uint64_t of_osd = 0;
    char url[1024];

    if (argc < 3 || !nodes)
        return 2;
    dice_state = (uint64_t)number_of(argc, argv, "seed", 1) * 2 + 1; /* never 0 */
    (void)snprintf(url, sizeof(url), "kafka://%s/%s", argv[1], argv[2]);
    for (size_t i = 0; i < count; i++)
        open_node(&nodes[i], url, i, number_of(argc, argv, "send-ms", 1000));
    run(nodes, count, (uint32_t)number_of(argc, argv, "period-ms", 1000), seconds);
    for (size_t i = 0; i < count; i++) {
        const struct points_sender_counts one = points_sender_close(nodes[i].sender, LIMIT_MS);

        points_counts_add(&all, &one);
        of_osd += is_osd(i) ? one.points : 0;
    }
    free(nodes);
    printf("{\"hosts\": %zu, \"seconds\": %.3f, \"samples\": %" PRIu64 ", \"points\": %" PRIu64
           ", \"of_osd\": %" PRIu64 ", \"messages\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"metrics\": {",
           count, (double)(clock_ms() - start_ms) / 1e3, all.samples, all.points, of_osd,
           all.messages, all.bytes);
    print_metrics();
    printf("}}\n");
    return all.acknowledged == all.points ? 0 : 1;
}

#else

int main(void)
{
    return 77;
}

#endif

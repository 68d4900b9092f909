/*
 * The sums of all workers' statistics, and their JSON document. `blkin work --root` writes it
 * (--once --json, and http://ADDRESS:PORT/statistics); `blkin stat`, `graph` and `report` read it:
 *
 *     {"blkin": "statistics", "version": "1.0.0",
 *      "from": "2026-11-21T11:33:27.981Z", "to": "2026-...", "seconds": 60.0,
 *      "spans": 1000, "errors": 3, "scale": 7,
 *      "rows": [{"service": "store", "name": "write", "spans": 500, "errors": 3,
 *                "duration": HISTOGRAM, "self": HISTOGRAM}],
 *      "edges": [{"client": "gateway", "server": "store", "calls": 500, "errors": 3,
 *                 "duration": HISTOGRAM}],
 *      "workers": [{"instance": "1", "heard": "2026-...", "is_there": true,
 *                   "spans_counted": 1000, "busy_ratio": 0.31, "behind_seconds": 0.2}],
 *      "forgotten": {"instance": null, "spans_counted": 20},
 *      "messages": 60, "refused": 0, "gaps": 0}
 *
 * from and to: the period, by the time of the log; null and 0 s if no message was added. An edge's
 * duration is that of the server's spans. Workers have all counters of struct work_counts;
 * "forgotten" is the sum of the forgotten workers. A null name of a service or an operation stands
 * for all names beyond the limit.
 *
 * A worker writes its counts since its last transaction as a document of the same form: one or more
 * messages in the topic of deltas. The first message has the growth of the worker's counters. Rows
 * without spans and edges without calls are left out.
 *
 * HISTOGRAM is {"count", "zeros", "sum", "min", "max", "buckets": [INDEX, COUNT, INDEX, COUNT]}, of
 * times in ns: OpenTelemetry's exponential histogram of that scale, without empty buckets. An empty
 * one is left out.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_MERGED_H
#define BLKIN_TOOLS_MERGED_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/model/statistics.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

/*
 * The account of a worker: each span that it read has one outcome, or is open.
 *
 *     in + taken over = counted + late + over + invalid + handed over + open, always
 *
 * The equation holds for the sum of all workers, too. Other workers take over spans that a worker
 * handed over, or had open when it was killed. `in` counts these spans once. A transaction
 * commits the deltas together with the offsets. One table has all counters for the worker's page,
 * its last line and the deltas.
 */

struct work_counts {
#define COUNTER(name, help)       uint64_t name;
#define GAUGE(name, help)         uint64_t name;
#define RATIO(name, member, help) double member;
#include "tools/merged/counts.def"
#undef COUNTER
#undef GAUGE
#undef RATIO
};

enum work_counter_kind {
    WORK_COUNTER, /* never falls; deltas have its growth */
    WORK_GAUGE,   /* the current value */
    WORK_RATIO    /* a gauge of type double */
};

struct work_counter {
    const char *name; /* Prometheus: blkin_work_NAME, with _total for a counter */
    enum work_counter_kind kind;
    size_t offset; /* in struct work_counts */
    const char *help;
};

extern const struct work_counter work_counters[];
extern const size_t work_counters_count;

uint64_t work_counter_value(const struct work_counter *counter, const struct work_counts *counts);
double work_counter_ratio(const struct work_counter *counter, const struct work_counts *counts);

/* Adds counters and takes the gauges of delta. */
void work_counts_add(struct work_counts *counts, const struct work_counts *delta);

/* Returns the growth of the counters since `before`, and the current gauges. */
struct work_counts work_counts_since(const struct work_counts *now,
                                     const struct work_counts *before);

/* A worker without messages counts as away after WORKER_AWAY_NS. When a new worker appears, workers
 * silent for WORKER_FORGET_NS are forgotten; beyond WORKERS_MAX, also the one that was silent
 * longest. */
#define WORKER_AWAY_NS   (10 * INT64_C(1000000000))
#define WORKER_FORGET_NS (3600 * INT64_C(1000000000))
#define WORKERS_MAX      1024
#define WORKER_NAME_MAX  256

struct merged_worker {
    char instance[WORKER_NAME_MAX];
    int64_t heard_ns; /* the log's time of its last message */
    struct work_counts counts;
};

struct merged {
    struct names *names;
    struct statistics *statistics;
    struct merged_worker *workers;
    size_t worker_count;
    struct work_counts forgotten; /* the sum of forgotten workers */
    int64_t from_ns, to_ns;       /* the period, since 1970; 0 if no message was added */
    uint64_t messages;
    uint64_t refused; /* malformed messages */
    uint64_t gaps;    /* times that the topic deleted messages before they were read */
};

/* Returns NULL when out of memory. */
struct merged *merged_new(void);
void merged_free(struct merged *merged); /* NULL is allowed */

struct deltas_head {
    char instance[WORKER_NAME_MAX]; /* the worker's name */
    int64_t start_ns, end_ns;       /* the period, since 1970 */
    struct work_counts counts;      /* counters of this period, gauges at its end */
};

/* Takes one message, whose bytes the caller owns. Returns false to stop. */
typedef bool deltas_emit_fn(void *context, const char *data, size_t length);

/* Calls emit() for each message of this period, at least once. Returns false when out of memory, or
 * if emit() has returned false. */
bool deltas_write(const struct deltas_head *head, const struct statistics *statistics,
                  deltas_emit_fn *emit, void *context);

/* Adds a message of the topic. Counts a malformed message as refused and sets error. Returns false
 * when out of memory: the caller then begins with a new struct merged. */
bool merged_add_message(struct merged *merged, const char *data, size_t length, int64_t log_ns,
                        struct error *error);

/* Adds the counters of a worker. heard_ns: the log's time of the worker's message. */
void merged_add_worker(struct merged *merged, const char *instance,
                       const struct work_counts *counts, int64_t heard_ns);

bool worker_is_there(const struct merged_worker *worker, int64_t now_ns);

/* Returns the document, which the caller frees; NULL: out of memory. */
char *merged_document(const struct merged *merged, int64_t now_ns);

/* Returns the sums for Prometheus, which the caller frees; NULL: out of memory. The page has
 * the figures of the root, the workers' counters, the rows with their self times, and the edges.
 * Rows and edges have the metric names of Grafana's span metrics and service graph, with the prefix
 * blkin_. Rows and edges beyond `series` are summed in "(other)". */
char *merged_page(const struct merged *merged, size_t series, int64_t now_ns);

/* Prints the head of a counter for Prometheus: its help and its type. */
void work_counter_print_head(struct printer *page, const struct work_counter *counter);
/* Prints the counter's line for one worker, with its name as a label. instance NULL: no label. */
void work_counter_print(struct printer *page, const struct work_counter *counter,
                        const char *instance, const struct work_counts *counts);

/* Returns whether the JSON is such a document, by its member "blkin". */
bool merged_is_document(const json_t *json);

/* Adds a document, which may be any JSON. Returns false with error set. */
bool merged_add_document(struct merged *merged, const json_t *document, struct error *error);

#endif

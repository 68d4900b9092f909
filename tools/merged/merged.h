/*
 * What all workers have counted, added up; and as a JSON document, which `blkin work --root` gives
 * (--once --json, and http://ADDRESS:PORT/statistics) and `blkin stat`, `blkin graph` and `blkin
 * report` read:
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
 *      "forgotten": {"spans_counted": 20},
 *      "messages": 60, "refused": 0, "gaps": 0}
 *
 * from and to: what it is of, by the log; null and 0 s: nothing. An edge's duration is that of
 * the server's spans. Workers have all counters of counts.h; forgotten is the sum of those that are
 * long away. A name is null where there was no room for it: all such are in one row (edge).
 *
 * What a worker has counted since its last transaction is such a document, too: a message (or
 * several) of the topic of deltas. The first message has the worker with what its counters have
 * grown by; rows and edges without calls in this time are left out.
 *
 * HISTOGRAM is {"count", "zeros", "sum", "min", "max", "buckets": [INDEX, COUNT, INDEX, COUNT]}, of
 * times in ns: OpenTelemetry's exponential histogram of that scale, without empty buckets. An empty
 * one is left out.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_MERGED_H
#define BLKIN_TOOLS_WORK_MERGED_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/model/statistics.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

/*
 * The account of a worker: each span that was read has one outcome, or is open.
 *
 *     in + taken over = counted + late + over + invalid + handed over + open, always
 *
 * It is the same over all workers: what one has handed over, or had open when it was killed, others
 * have taken over, and is in `in` once. So is what is in the deltas (merged.h): they are committed
 * together with what was read.
 *
 * One table has all counters: the worker's page, its last line and the deltas are made from it.
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
    WORK_COUNTER, /* never falls; in deltas: what it has grown by */
    WORK_GAUGE,   /* as it is now */
    WORK_RATIO    /* the same, a double */
};

struct work_counter {
    const char *name; /* Prometheus: blkin_work_NAME, of a counter _total */
    enum work_counter_kind kind;
    size_t offset; /* in struct work_counts */
    const char *help;
};

extern const struct work_counter work_counters[];
extern const size_t work_counters_count;

uint64_t work_counter_value(const struct work_counter *counter, const struct work_counts *counts);
double work_counter_ratio(const struct work_counter *counter, const struct work_counts *counts);

/* Counters are added up, gauges are the later ones. */
void work_counts_add(struct work_counts *counts, const struct work_counts *delta);

/* What counters have grown by since `before`; gauges as they are now. */
struct work_counts work_counts_since(const struct work_counts *now,
                                     const struct work_counts *before);

/* After so long without a word a worker is not there, and after that long it is forgotten. */
#define WORKER_AWAY_NS   (10 * INT64_C(1000000000))
#define WORKER_FORGET_NS (3600 * INT64_C(1000000000))
#define WORKERS_MAX      1024
#define WORKER_NAME_MAX  256

struct merged_worker {
    char instance[WORKER_NAME_MAX];
    int64_t heard_ns; /* its last message, by the log */
    struct work_counts counts;
};

struct merged {
    struct names *names;
    struct statistics *statistics;
    struct merged_worker *workers;
    size_t worker_count;
    struct work_counts forgotten; /* of all workers that are */
    int64_t from_ns, to_ns;       /* what it is of, since 1970; 0: nothing */
    uint64_t messages;
    uint64_t refused; /* messages that are no deltas */
    uint64_t gaps;    /* times that the topic had lost what was not read yet */
};

/* Returns NULL when out of memory. */
struct merged *merged_new(void);
void merged_free(struct merged *merged); /* NULL is allowed */

struct deltas_head {
    char instance[WORKER_NAME_MAX]; /* of the worker */
    int64_t start_ns, end_ns;       /* the period, since 1970 */
    struct work_counts counts;      /* counters: of this period; gauges: at its end */
};

/* Takes one message; the bytes are the caller's. Returns false to end it. */
typedef bool deltas_emit_fn(void *context, const char *data, size_t length);

/* Calls emit for each message of this period, one at least. Returns false when out of memory, or
 * when emit has. */
bool deltas_write(const struct deltas_head *head, const struct statistics *statistics,
                  deltas_emit_fn *emit, void *context);

/* A message of the topic, and its time there. Any bytes: what is none is counted as refused, and
 * error is set. Returns false when out of memory: then it is to be begun anew. */
bool merged_add_message(struct merged *merged, const char *data, size_t length, int64_t log_ns,
                        struct error *error);

/* A worker's counters, that are added to it. */
void merged_add_worker(struct merged *merged, const char *instance,
                       const struct work_counts *counts, int64_t heard_ns);

/* It is of this time, too. */
void merged_widen(struct merged *merged, int64_t from_ns, int64_t to_ns);

bool worker_is_there(const struct merged_worker *worker, int64_t now_ns);

/* The document, free() it. Returns NULL when out of memory. */
char *merged_document(const struct merged *merged, int64_t now_ns);

/* The same for Prometheus: the names that Grafana's service graph and span metrics know, with the
 * prefix blkin_, self times, and the workers themselves. Rows and edges have so many series at
 * most; what is beyond is in "(other)". */
char *merged_page(const struct merged *merged, size_t series, int64_t now_ns);

bool merged_is_document(const json_t *json);

/* Adds what a document has. Any JSON. Returns false with error set. */
bool merged_add_document(struct merged *merged, const json_t *document, struct error *error);

#endif

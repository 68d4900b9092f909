/*
 * What all workers have counted, added up; and as a JSON document, which `blkin work --root` gives
 * and `blkin stat`, `blkin graph` and `blkin report` read:
 *
 *     {"blkin": "statistics", "version": "1.0.0",
 *      "from": "2026-11-21T11:33:27.981Z", "to": ..., "seconds": 60.0,     of the log: what was added
 *      "spans": 1000, "errors": 3, "scale": 7,                             of all histograms
 *      "rows": [{"service": "store", "name": "write", "spans": 500, "errors": 3,
 *                "duration": HISTOGRAM, "self": HISTOGRAM}],
 *      "edges": [{"client": "gateway", "server": "store", "calls": 500, "errors": 3,
 *                 "duration": HISTOGRAM}],                                 of the server's spans
 *      "workers": [{"instance": "1", "heard": "2026-...", "is_there": true,
 *                   "busy": 0.31, "behind_s": 0.2, "counters": {"spans": 1000, "late": 0}}],
 *      "root": {"messages": 60, "refused": 0, "gaps": 0}}
 *
 * A HISTOGRAM is {"count", "zeros", "sum", "min", "max", "buckets": [INDEX, COUNT, INDEX, COUNT...]},
 * of times in ns: OpenTelemetry's exponential histogram of that scale, buckets that are empty left
 * out. What there was no room for is in a row (an edge) with "other": true.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_MERGED_H
#define BLKIN_TOOLS_WORK_MERGED_H

#include "analysis/statistics.h"
#include "error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct merged {
    struct names *names;
    struct statistics *statistics;
    struct merged_worker *workers; /* see workers.h */
    int64_t from_ns, to_ns; /* of the log, since 1970: the first and the last that was added; 0: none */
    uint64_t messages;
    uint64_t refused; /* messages that are no deltas of ours */
    uint64_t gaps;    /* times that the topic had lost what was not read yet */
};

/* Returns NULL when out of memory. */
struct merged *merged_new(void);
/* NULL is allowed. */
void merged_free(struct merged *merged);

/* Is it such a document? */
bool merged_is_document(const json_t *json);

/* Returns NULL when out of memory. */
json_t *merged_json(const struct merged *merged);

/* Adds the rows and edges of a document. Any JSON. Returns false with error set. */
bool merged_add_json(struct merged *merged, const json_t *document, struct error *error);

/*
 * Adds what there is at kafka://BROKER[,BROKER...]/TOPIC, up to its end of now; since_ns: from that
 * time of the log on, 0: all. Returns false with error set.
 */
struct config;
bool merged_add_topic(struct merged *merged, const char *url, const struct config *config,
                      int64_t since_ns, struct error *error);

#endif

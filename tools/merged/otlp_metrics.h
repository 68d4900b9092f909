/*
 * OTLP metrics that workers write to a topic and their root reads: a request of type
 * ExportMetricsServiceRequest, whose resource is a worker. deltas.h says which metrics there are.
 *
 *     resource: service.name "blkin-work", service.instance.id (the worker),
 *               messaging.consumer.group.name
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_OTLP_METRICS_H
#define BLKIN_TOOLS_WORK_OTLP_METRICS_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/text.h"
#include "babeltrace-plugin/model/histogram.h"

#include <stdint.h>

#define OTLP_METRICS_MESSAGE_MAX    900000U
#define OTLP_METRICS_NAME_MAX       256U
#define OTLP_METRICS_ATTRIBUTES_MAX 8

enum metric_shape {
    METRIC_COUNTER,   /* a sum that only grows */
    METRIC_SUM,       /* another one */
    METRIC_GAUGE,     /* as it is */
    METRIC_HISTOGRAM, /* an exponential one */
};

struct metric {
    const char *prefix, *name; /* of its name the two parts: literals, or as long as the writer */
    const char *unit;
    enum metric_shape shape;
};

struct metric_attribute {
    struct text key, value;
};

/* A data point. */
struct metric_point {
    int64_t start_ns, end_ns; /* since 1970 */
    uint64_t value;           /* of a double its bits */
    bool is_double;
    const struct histogram *histogram; /* of METRIC_HISTOGRAM only */
    size_t attribute_count;
    struct metric_attribute attributes[OTLP_METRICS_ATTRIBUTES_MAX];
};

/* Takes one message; the bytes are the caller's. Returns false to end it. */
typedef bool otlp_metrics_emit_fn(void *context, const char *data, size_t length);

/* The caller sets the members up to context; the others are 0 at first. */
struct otlp_metrics_writer {
    const char *instance, *group; /* of the worker */
    struct buffer *buffer;        /* for the bytes; it keeps its memory for the next time */
    otlp_metrics_emit_fn *emit;
    void *context;
    /* what is open: a message, and a metric in it */
    bool has_message;
    const char *name; /* NULL: no metric */
    size_t resource_metrics, scope_metrics, metric, data;
};

/*
 * Points of one metric come one after the other. What does not fit into a message of
 * OTLP_METRICS_MESSAGE_MAX bytes is in another one. Returns false when out of memory, or when emit
 * has.
 */
bool otlp_metrics_put(struct otlp_metrics_writer *writer, const struct metric *metric,
                      const struct metric_point *point);

/* The last message; if there was none, one without metrics, if is_needed. */
bool otlp_metrics_end(struct otlp_metrics_writer *writer, bool is_needed);

static inline void metric_point_add(struct metric_point *point, const char *key, struct text value)
{
    point->attributes[point->attribute_count++] = (struct metric_attribute){text_of(key), value};
}

/* Whose metrics were read. */
struct otlp_metrics_origin {
    char instance[OTLP_METRICS_NAME_MAX], group[OTLP_METRICS_NAME_MAX];
};

/* name: without the prefix. Returns false to end it. */
typedef bool otlp_metrics_take_fn(void *context, struct text name,
                                  const struct metric_point *point);

/*
 * Calls for each point of the metrics that begin with the prefix and are a worker's: others are
 * skipped. Returns false with error set if it is no such message, or when take has (and set it).
 */
bool otlp_metrics_read(struct text request, const char *prefix, struct otlp_metrics_origin *origin,
                       otlp_metrics_take_fn *take, void *context, struct error *error);

/* Without data: it has none of this key. */
struct text metric_attribute(const struct metric_point *point, const char *key);

#endif

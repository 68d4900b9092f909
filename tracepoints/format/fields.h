/*
 * The names of the fields of the events in events.h, and the events' log levels. provider.c
 * describes them to LTTng; writers of traces put them into the metadata.
 *
 * The log level of an annotation is its severity. The other events of a span have the highest
 * level. So "lttng enable-event -u 'blkin:*' --loglevel=WARNING" leaves out only annotations, and
 * the samples of a host (blkin:metric).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_FIELDS_H
#define BLKIN_FIELDS_H

enum packed_type {
    PACKED_U16,
    PACKED_U32,
    PACKED_U64,
    PACKED_S64,   /* of the original API, in dumps of rings */
    PACKED_HEX64, /* shown in hexadecimal */
    PACKED_STRING,
};

struct packed_field {
    const char *name;
    enum packed_type type;
};

/* clang-format off */
static const struct packed_field span_fields[] = {
    {"trace_id", PACKED_HEX64}, {"parent_id", PACKED_HEX64}, {"duration", PACKED_U64},
    {"flags", PACKED_U16}, {"name", PACKED_STRING}, {"packed", PACKED_STRING},
    {"service", PACKED_STRING},
};

static const struct packed_field begin_fields[] = {
    {"trace_id", PACKED_HEX64}, {"parent_id", PACKED_HEX64}, {"flags", PACKED_U16},
    {"name", PACKED_STRING}, {"packed", PACKED_STRING}, {"service", PACKED_STRING},
};

static const struct packed_field annotation_fields[] = {
    {"trace_id", PACKED_HEX64}, {"packed", PACKED_STRING}, {"text", PACKED_STRING},
};

static const struct packed_field detail_fields[] = {
    {"trace_id", PACKED_HEX64}, {"packed", PACKED_STRING},
};

static const struct packed_field process_fields[] = {
    {"realtime", PACKED_U64}, {"monotonic", PACKED_U64}, {"thread", PACKED_HEX64},
    {"sequence", PACKED_U32}, {"pid", PACKED_U32}, {"service", PACKED_STRING},
    {"version", PACKED_STRING}, {"sampling", PACKED_STRING},
};

static const struct packed_field slow_fields[] = {
    {"mark", PACKED_HEX64}, {"trace_id", PACKED_HEX64}, {"trace_id_high", PACKED_HEX64},
    {"span_id", PACKED_HEX64}, {"duration", PACKED_U64}, {"monotonic", PACKED_U64},
    {"pid", PACKED_U32}, {"sequence", PACKED_U32}, {"dropped", PACKED_U32},
    {"why", PACKED_STRING}, {"name", PACKED_STRING}, {"service", PACKED_STRING},
};

static const struct packed_field metric_fields[] = {
    {"monotonic", PACKED_U64}, {"thread", PACKED_HEX64}, {"sequence", PACKED_U32},
    {"period_ms", PACKED_U32}, {"group", PACKED_STRING}, {"instance", PACKED_STRING},
    {"names", PACKED_STRING}, {"values", PACKED_STRING},
};

/* X(event, name, LTTng's number of the log level, fields) */
#define BLKIN_EACH_EVENT(X)                                                                        \
    X(BLKIN_EVENT_SPAN, "span", 0, span_fields)                                                    \
    X(BLKIN_EVENT_BEGIN, "begin", 0, begin_fields)                                                 \
    X(BLKIN_EVENT_TAG, "tag", 0, detail_fields)                                                    \
    X(BLKIN_EVENT_END, "end", 0, detail_fields)                                                    \
    X(BLKIN_EVENT_PROCESS, "process", 0, process_fields)                                           \
    X(BLKIN_EVENT_SLOW, "slow", 0, slow_fields)                                                    \
    X(BLKIN_EVENT_ANNOTATION + 0, "annotation_emerg", 0, annotation_fields)                        \
    X(BLKIN_EVENT_ANNOTATION + 1, "annotation_alert", 1, annotation_fields)                        \
    X(BLKIN_EVENT_ANNOTATION + 2, "annotation_crit", 2, annotation_fields)                         \
    X(BLKIN_EVENT_ANNOTATION + 3, "annotation_err", 3, annotation_fields)                          \
    X(BLKIN_EVENT_ANNOTATION + 4, "annotation_warning", 4, annotation_fields)                      \
    X(BLKIN_EVENT_ANNOTATION + 5, "annotation_notice", 5, annotation_fields)                       \
    X(BLKIN_EVENT_ANNOTATION + 6, "annotation_info", 6, annotation_fields)                         \
    X(BLKIN_EVENT_ANNOTATION + 7, "annotation_debug", BLKIN_LOGLEVEL_DEBUG, annotation_fields)     \
    X(BLKIN_EVENT_METRIC, "metric", 6, metric_fields)
/* clang-format on */

#define BLKIN_LOGLEVEL_DEBUG 14

#endif

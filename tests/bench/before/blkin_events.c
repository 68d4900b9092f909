/*
 * The fields of the events in events.h, by name, and their log levels.
 *
 * A log level is the severity of an annotation. What gives a span its frame is of the highest one,
 * so that "lttng enable-event -u 'blkin:*' --loglevel=WARNING" leaves out only annotations.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define LTTNG_UST_COMPAT_API_VERSION 1
#include "tracepoints/blkin_events.h"

/* clang-format off */
static const struct packed_field span_fields[] = {
    {"trace_id_high", PACKED_HEX64}, {"trace_id", PACKED_HEX64}, {"span_id", PACKED_HEX64},
    {"parent_id", PACKED_HEX64}, {"duration", PACKED_U64}, {"monotonic", PACKED_U64},
    {"thread", PACKED_HEX64}, {"sequence", PACKED_U32}, {"sampled", PACKED_U32},
    {"dropped", PACKED_U16}, {"kind", PACKED_U8}, {"flags", PACKED_U8}, {"port", PACKED_U16},
    {"name", PACKED_STRING}, {"log", PACKED_STRING}, {"service", PACKED_STRING},
    {"ip", PACKED_STRING},
};

static const struct packed_field begin_fields[] = {
    {"trace_id_high", PACKED_HEX64}, {"trace_id", PACKED_HEX64}, {"span_id", PACKED_HEX64},
    {"parent_id", PACKED_HEX64}, {"monotonic", PACKED_U64}, {"thread", PACKED_HEX64},
    {"sequence", PACKED_U32}, {"sampled", PACKED_U32}, {"port", PACKED_U16}, {"kind", PACKED_U8},
    {"flags", PACKED_U8}, {"name", PACKED_STRING}, {"service", PACKED_STRING},
    {"ip", PACKED_STRING},
};

#define DETAIL_FIELDS                                                                              \
    {"trace_id", PACKED_HEX64}, {"span_id", PACKED_HEX64}, {"monotonic", PACKED_U64},                    \
    {"thread", PACKED_HEX64}, {"sequence", PACKED_U32}

static const struct packed_field annotation_fields[] = {DETAIL_FIELDS, {"text", PACKED_STRING}};
static const struct packed_field tag_fields[] = {DETAIL_FIELDS, {"log", PACKED_STRING}};
static const struct packed_field end_fields[] = {DETAIL_FIELDS};

static const struct packed_field process_fields[] = {
    {"realtime", PACKED_U64}, {"monotonic", PACKED_U64}, {"thread", PACKED_HEX64},
    {"sequence", PACKED_U32}, {"pid", PACKED_U32}, {"service", PACKED_STRING},
    {"version", PACKED_STRING}, {"sampling", PACKED_STRING},
};

#define EVENT(event_name, level, event_fields)                                                     \
    {                                                                                              \
        .name = (event_name), .loglevel = LTTNG_UST_TRACEPOINT_LOGLEVEL_##level,                   \
        .fields = (event_fields), .field_count = sizeof(event_fields) / sizeof((event_fields)[0])  \
    }

struct packed_event blkin_events[BLKIN_EVENTS] = {
    [BLKIN_EVENT_SPAN] = EVENT("span", EMERG, span_fields),
    [BLKIN_EVENT_BEGIN] = EVENT("begin", EMERG, begin_fields),
    [BLKIN_EVENT_TAG] = EVENT("tag", EMERG, tag_fields),
    [BLKIN_EVENT_END] = EVENT("end", EMERG, end_fields),
    [BLKIN_EVENT_PROCESS] = EVENT("process", EMERG, process_fields),
    [BLKIN_EVENT_SLOW] = EVENT("slow", EMERG, process_fields), /* never recorded */
    [BLKIN_EVENT_ANNOTATION + 0] = EVENT("annotation_emerg", EMERG, annotation_fields),
    [BLKIN_EVENT_ANNOTATION + 1] = EVENT("annotation_alert", ALERT, annotation_fields),
    [BLKIN_EVENT_ANNOTATION + 2] = EVENT("annotation_crit", CRIT, annotation_fields),
    [BLKIN_EVENT_ANNOTATION + 3] = EVENT("annotation_err", ERR, annotation_fields),
    [BLKIN_EVENT_ANNOTATION + 4] = EVENT("annotation_warning", WARNING, annotation_fields),
    [BLKIN_EVENT_ANNOTATION + 5] = EVENT("annotation_notice", NOTICE, annotation_fields),
    [BLKIN_EVENT_ANNOTATION + 6] = EVENT("annotation_info", INFO, annotation_fields),
    [BLKIN_EVENT_ANNOTATION + 7] = EVENT("annotation_debug", DEBUG, annotation_fields),
    [BLKIN_EVENT_METRIC] = EVENT("metric", INFO, process_fields), /* neither */
};
_Static_assert(BLKIN_EVENTS == BLKIN_EVENT_METRIC + 1, "each event has a row");
/* clang-format on */

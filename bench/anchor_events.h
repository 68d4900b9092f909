/*
 * Anchors, which the library is compared with, as an LTTng user writes them: a tracepoint of one
 * integer, and tracepoints with the fields and arguments of the original BlkKin's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "anchor_events.h"

#if !defined(BENCH_ANCHOR_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_ANCHOR_EVENTS_H

#include <stdint.h>
#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(bench, integer,
    LTTNG_UST_TP_ARGS(int, value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, value, value)))

#define BENCH_ORIGINAL_FIELDS                                                                      \
    lttng_ust_field_string(trace_name, trace_name)                                                 \
    lttng_ust_field_string(service_name, service)                                                  \
    lttng_ust_field_integer(int, port_no, port)                                                    \
    lttng_ust_field_string(ip, ip)                                                                 \
    lttng_ust_field_integer(long, trace_id, trace)                                                 \
    lttng_ust_field_integer(long, span_id, span)                                                   \
    lttng_ust_field_integer(long, parent_span_id, parent)

LTTNG_UST_TRACEPOINT_EVENT(bench, timestamp,
    LTTNG_UST_TP_ARGS(const char *, trace_name, const char *, service, int, port, const char *, ip,
                      long, trace, long, span, long, parent, const char *, event),
    LTTNG_UST_TP_FIELDS(
        BENCH_ORIGINAL_FIELDS
        lttng_ust_field_string(event, event)))

LTTNG_UST_TRACEPOINT_EVENT(bench, keyval_string,
    LTTNG_UST_TP_ARGS(const char *, trace_name, const char *, service, int, port, const char *, ip,
                      long, trace, long, span, long, parent, const char *, key, const char *, val),
    LTTNG_UST_TP_FIELDS(
        BENCH_ORIGINAL_FIELDS
        lttng_ust_field_string(key, key)
        lttng_ust_field_string(val, val)))

LTTNG_UST_TRACEPOINT_EVENT(bench, keyval_integer,
    LTTNG_UST_TP_ARGS(const char *, trace_name, const char *, service, int, port, const char *, ip,
                      long, trace, long, span, long, parent, const char *, key, int64_t, val),
    LTTNG_UST_TP_FIELDS(
        BENCH_ORIGINAL_FIELDS
        lttng_ust_field_string(key, key)
        lttng_ust_field_integer(int64_t, val, val)))
/* clang-format on */

#endif /* BENCH_ANCHOR_EVENTS_H */

#include <lttng/tracepoint-event.h>

/*
 * The events as the original's libraries define them, and one event of somebody else.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER zipkin

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "old_events_tp.h"

#if !defined(OLD_EVENTS_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OLD_EVENTS_TP_H

#include <lttng/tracepoint.h>

/* clang-format off */
#define OLD_FIELDS                                                                                 \
    lttng_ust_field_string(trace_name, trace)                                                      \
    lttng_ust_field_string(service_name, service)                                                  \
    lttng_ust_field_integer(int, port_no, port)                                                    \
    lttng_ust_field_string(ip, ip)                                                                 \
    lttng_ust_field_integer(long, trace_id, trace_id)                                              \
    lttng_ust_field_integer(long, span_id, span_id)                                                \
    lttng_ust_field_integer(long, parent_span_id, parent_span_id)

LTTNG_UST_TRACEPOINT_EVENT(zipkin, timestamp,
    LTTNG_UST_TP_ARGS(const char *, trace, const char *, service, int, port, const char *, ip,
                      long, trace_id, long, span_id, long, parent_span_id, const char *, event),
    LTTNG_UST_TP_FIELDS(OLD_FIELDS lttng_ust_field_string(event, event)))

LTTNG_UST_TRACEPOINT_EVENT(zipkin, keyval,
    LTTNG_UST_TP_ARGS(const char *, trace, const char *, service, int, port, const char *, ip,
                      long, trace_id, long, span_id, long, parent_span_id,
                      const char *, key, const char *, val),
    LTTNG_UST_TP_FIELDS(
        OLD_FIELDS lttng_ust_field_string(key, key) lttng_ust_field_string(val, val)))

/* not BlkKin's, though the provider's name is */
LTTNG_UST_TRACEPOINT_EVENT(zipkin, something_else,
    LTTNG_UST_TP_ARGS(int, number),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, number, number)))

/* ours by name, but without what a span needs */
LTTNG_UST_TRACEPOINT_EVENT(zipkin, keyval_integer,
    LTTNG_UST_TP_ARGS(int, number),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, trace_id, number)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>

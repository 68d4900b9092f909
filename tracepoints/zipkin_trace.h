/*
 * LTTng-UST provider "zipkin": the events of the original BlkKin, with the same names and fields in
 * the same order.
 *
 * On 64-bit machines the recorded types are the same, too; on ILP32, the original's ids had 32
 * bits. port_no is 0..65535; the original's int16_t made 50000 negative. The arguments are pointers
 * to the caller's structs, so a call passes three pointers and not nine values.
 *
 * `make install` installs this header, because the original BlkKin installed its own. Only a
 * program with a provider of its own includes it. Such a program calls
 * lttng_ust_tracepoint(zipkin, timestamp, trace, endpoint, annotation) and links with -llttng-ust.
 * blkin_record() of zipkin_c.h needs neither.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER zipkin

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "zipkin_trace.h"

#if !defined(BLKIN_ZIPKIN_TRACE_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BLKIN_ZIPKIN_TRACE_H

#include <stdint.h>
#include <lttng/tracepoint.h>
#include "zipkin_c.h"

/* clang-format off */
#define BLKIN_TP_ARGS                                                                              \
    LTTNG_UST_TP_ARGS(const struct blkin_trace *, trace,                                           \
                      const struct blkin_endpoint *, endpoint,                                     \
                      const struct blkin_annotation *, annotation)

#define BLKIN_TP_COMMON_FIELDS                                                                     \
    lttng_ust_field_string(trace_name, trace->name)                                                \
    lttng_ust_field_string(service_name, endpoint->name)                                           \
    lttng_ust_field_integer(int, port_no, (uint16_t)endpoint->port)                                \
    lttng_ust_field_string(ip, endpoint->ip)                                                       \
    lttng_ust_field_integer(int64_t, trace_id, trace->info.trace_id)                               \
    lttng_ust_field_integer(int64_t, span_id, trace->info.span_id)                                 \
    lttng_ust_field_integer(int64_t, parent_span_id, trace->info.parent_span_id)

LTTNG_UST_TRACEPOINT_EVENT(zipkin, timestamp,
    BLKIN_TP_ARGS,
    LTTNG_UST_TP_FIELDS(
        BLKIN_TP_COMMON_FIELDS
        lttng_ust_field_string(event, annotation->val_str)))
LTTNG_UST_TRACEPOINT_LOGLEVEL(zipkin, timestamp, LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)

LTTNG_UST_TRACEPOINT_EVENT(zipkin, keyval_string,
    BLKIN_TP_ARGS,
    LTTNG_UST_TP_FIELDS(
        BLKIN_TP_COMMON_FIELDS
        lttng_ust_field_string(key, annotation->key)
        lttng_ust_field_string(val, annotation->val_str)))
LTTNG_UST_TRACEPOINT_LOGLEVEL(zipkin, keyval_string, LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)

LTTNG_UST_TRACEPOINT_EVENT(zipkin, keyval_integer,
    BLKIN_TP_ARGS,
    LTTNG_UST_TP_FIELDS(
        BLKIN_TP_COMMON_FIELDS
        lttng_ust_field_string(key, annotation->key)
        lttng_ust_field_integer(int64_t, val, annotation->val_int)))
LTTNG_UST_TRACEPOINT_LOGLEVEL(zipkin, keyval_integer, LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)
/* clang-format on */

#endif /* BLKIN_ZIPKIN_TRACE_H */

#include <lttng/tracepoint-event.h>

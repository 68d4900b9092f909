/*
 * Emits what a program with the original's libraries does, and a few foreign events.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "old_events_tp.h"

int main(void)
{
    lttng_ust_tracepoint(zipkin, timestamp, "write", "osd", -15536, "10.0.0.1", 1L, -2L, 0L, "sr");
    lttng_ust_tracepoint(zipkin, something_else, 1);
    lttng_ust_tracepoint(zipkin, keyval, "write", "osd", -15536, "10.0.0.1", 1L, -2L, 0L, "who",
                         "v0");
    lttng_ust_tracepoint(zipkin, something_else, 2);
    lttng_ust_tracepoint(zipkin, keyval_integer, 3);
    lttng_ust_tracepoint(zipkin, timestamp, "write", "osd", -15536, "10.0.0.1", 1L, -2L, 0L, "ss");
    lttng_ust_tracepoint(zipkin, timestamp, "no address", "rbd", 0, "NaN", 1L, 3L, -2L, "x");
    return 0;
}

/*
 * The counters as a page of Prometheus' text format.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "prometheus.h"

#include <inttypes.h>

static void print_head(struct printer *page, const char *name, const char *suffix,
                       enum counter_kind kind, const char *help)
{
    print(page, "# HELP blkin_%s%s %s\n", name, suffix, help);
    print(page, "# TYPE blkin_%s%s %s\n", name, suffix,
          kind == METRIC_COUNTER ? "counter" : "gauge");
}

static void print_time(struct printer *page, const char *name, int64_t time_ns, const char *help)
{
    print_head(page, name, "_seconds", METRIC_GAUGE, help);
    print(page, "blkin_%s_seconds %" PRId64 ".%03d\n", name, time_ns / 1000000000,
          (int)(time_ns / 1000000 % 1000));
}

void prometheus_print(struct printer *page, const struct counts *counts, const struct run_info *run)
{
    print_head(page, "sink_info", "", METRIC_GAUGE, "Which sink this is; the value is always 1.");
    print_string(page, "blkin_sink_info{");
    print_label(page, "version", text_of(BLKIN_RELEASE));
    print_string(page, ",");
    print_label(page, "endpoint", text_of(run->endpoint));
    print_string(page, "} 1\n");
    print_time(page, "start_time", run->start_ns, "When the sink started, since 1970.");
    print_time(page, "events_time", run->events_ns,
               "When the counters of events were read, since 1970.");
    print_time(page, "trace_time", counts->input.trace_time_ns,
               "Up to when the trace was read, since 1970; 0 before anything was.");
    for (size_t i = 0; i < counters_count; i++) {
        const struct counter *counter = &counters[i];
        const char *suffix = counter->kind == METRIC_COUNTER ? "_total" : "";

        print_head(page, counter->name, suffix, counter->kind, counter->help);
        print(page, "blkin_%s%s %" PRIu64 "\n", counter->name, suffix,
              counter_value(counter, counts));
    }
}

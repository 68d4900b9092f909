/*
 * What a worker shows of itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "worker_page.h"

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/base/printer.h"
#include "tools/base/totals.h"

#include <inttypes.h>

static void worker_print(struct printer *printer, const char *prefix, const char *name,
                         bool is_counter, const char *help, uint64_t value)
{
    char whole[128];

    (void)snprintf(whole, sizeof(whole), "%s%s%s", prefix, name, is_counter ? "_total" : "");
    print_metric(printer, whole, is_counter ? "counter" : "gauge", help, value);
}

static void worker_print_own(struct printer *printer, const struct work_counter *counter,
                             const struct work_counts *counts)
{
    const char *name = counter->name;

    if (counter->kind == WORK_RATIO)
        print(printer, "# HELP blkin_work_%s %s\n# TYPE blkin_work_%s gauge\nblkin_work_%s %.6g\n",
              name, counter->help, name, name, work_counter_ratio(counter, counts));
    else
        worker_print(printer, "blkin_work_", name, counter->kind == WORK_COUNTER, counter->help,
                     work_counter_value(counter, counts));
}

/* What has become of the spans of kept traces. */
static void worker_print_exporter(struct printer *printer, const struct exporter_counts *output)
{
    const struct counts counts = {.output = *output};

    for (size_t i = 0; i < counters_count; i++) {
        const struct counter *counter = &counters[i];

        if (counter->section == SECTION_SPANS || counter->section == SECTION_SPOOL)
            worker_print(printer, "blkin_", counter->name, counter->kind == COUNTER, counter->help,
                         counter_value(counter, &counts));
    }
}

char *worker_page(void *context)
{
    const struct work_stage *stage = context;
    struct printer printer = {.has_failed = false};
    struct exporter_counts output;

    for (size_t i = 0; i < work_counters_count; i++)
        worker_print_own(&printer, &work_counters[i], &stage->counts);
    if (stage->keeper && keeper_exporter_counts(stage->keeper, &output))
        worker_print_exporter(&printer, &output);
    return print_end(&printer);
}

void worker_account_line(const struct work_counts *counts, char line[ACCOUNT_LINE_MAX])
{
    (void)snprintf(line, ACCOUNT_LINE_MAX,
                   "spans: %" PRIu64 " in + %" PRIu64 " taken over = %" PRIu64 " counted + %" PRIu64
                   " late + %" PRIu64 " over + %" PRIu64 " invalid + %" PRIu64
                   " handed over + %" PRIu64 " open; %" PRIu64 " traces, %" PRIu64 " kept; %" PRIu64
                   " messages, %" PRIu64 " broken, %" PRIu64 " offsets missing",
                   counts->spans_in, counts->spans_taken_over, counts->spans_counted,
                   counts->spans_late, counts->spans_over, counts->spans_invalid,
                   counts->spans_handed_over, counts->spans_open, counts->traces_closed,
                   counts->traces_kept, counts->messages, counts->messages_broken,
                   counts->offsets_missing);
}

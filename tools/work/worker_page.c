/*
 * What a worker shows of itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "worker_page.h"

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/base/printer.h"

#include <inttypes.h>

static void worker_print_counter(struct printer *printer, const struct work_counter *counter,
                                 const struct work_counts *counts)
{
    const char *end = counter->kind == WORK_COUNTER ? "_total" : "";

    print(printer, "# HELP blkin_work_%s%s %s\n", counter->name, end, counter->help);
    print(printer, "# TYPE blkin_work_%s%s %s\n", counter->name, end,
          counter->kind == WORK_COUNTER ? "counter" : "gauge");
    if (counter->kind == WORK_RATIO)
        print(printer, "blkin_work_%s %.6g\n", counter->name, work_counter_ratio(counter, counts));
    else
        print(printer, "blkin_work_%s%s %" PRIu64 "\n", counter->name, end,
              work_counter_value(counter, counts));
}

/* What has become of the spans of kept traces. */
static void worker_print_exporter(struct printer *printer, const struct exporter_counts *output)
{
    const struct counts counts = {.output = *output};

    for (size_t i = 0; i < counters_count; i++) {
        const struct counter *counter = &counters[i];
        const char *end = counter->kind == COUNTER ? "_total" : "";

        if (counter->section != SECTION_SPANS && counter->section != SECTION_SPOOL)
            continue;
        print(printer, "# HELP blkin_%s%s %s\n", counter->name, end, counter->help);
        print(printer, "# TYPE blkin_%s%s %s\n", counter->name, end,
              counter->kind == COUNTER ? "counter" : "gauge");
        print(printer, "blkin_%s%s %" PRIu64 "\n", counter->name, end,
              counter_value(counter, &counts));
    }
}

char *worker_page(void *context)
{
    const struct work_stage *stage = context;
    struct printer printer = {.has_failed = false};
    struct exporter_counts output;

    for (size_t i = 0; i < work_counters_count; i++)
        worker_print_counter(&printer, &work_counters[i], &stage->counts);
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

/*
 * All that a source has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "summary.h"

#include <stdio.h>

static void note_times(struct summary *summary)
{
    for (size_t i = 0; i < summary->traces.count; i++) {
        const struct trace *trace = &summary->traces.traces[i];

        if (!trace->start_ns)
            continue;
        if (!summary->start_ns || trace->start_ns < summary->start_ns)
            summary->start_ns = trace->start_ns;
        if (trace->end_ns > summary->end_ns)
            summary->end_ns = trace->end_ns;
    }
    summary->seconds = (double)(summary->end_ns - summary->start_ns) / 1e9;
}

static bool add_traces(struct summary *summary)
{
    summary->names = names_of_file();
    summary->statistics = summary->names ? statistics_new(summary->names) : NULL;
    if (!summary->statistics || !traces_sort(&summary->list, &summary->traces))
        return false;
    for (size_t i = 0; i < summary->traces.count; i++) {
        if (!trace_link(&summary->traces.traces[i], summary->names, &summary->model) ||
            !statistics_add_trace(summary->statistics, &summary->model))
            return false;
    }
    note_times(summary);
    summary->spans = summary->list.count;
    summary->traces_count = summary->traces.count;
    return true;
}

bool summary_load(const char *source, struct summary *summary)
{
    *summary = (struct summary){.names = NULL};
    if (!spans_load(source, &summary->list))
        return false;
    if (add_traces(summary))
        return true;
    fputs("blkin: out of memory\n", stderr);
    return false;
}

void summary_free(struct summary *summary)
{
    trace_model_destroy(&summary->model);
    traces_free(&summary->traces);
    statistics_free(summary->statistics);
    names_free(summary->names);
    spans_free(&summary->list);
}

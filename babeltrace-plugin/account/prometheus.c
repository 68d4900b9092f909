/*
 * The account as a page of Prometheus' text format.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "prometheus.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void write_head(FILE *page, const char *name, const char *suffix, enum counter_kind kind,
                       const char *help)
{
    fprintf(page, "# HELP blkin_%s%s %s\n", name, suffix, help);
    fprintf(page, "# TYPE blkin_%s%s %s\n", name, suffix, kind == COUNTER ? "counter" : "gauge");
}

static void write_label(FILE *page, const char *name, const char *value)
{
    fprintf(page, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\n')
            fputs("\\n", page);
        else if (*value == '\\' || *value == '"')
            fprintf(page, "\\%c", *value);
        else
            fputc(*value, page);
    }
    fputc('"', page);
}

static void write_time(FILE *page, const char *name, int64_t time_ns, const char *help)
{
    write_head(page, name, "_seconds", GAUGE, help);
    fprintf(page, "blkin_%s_seconds %" PRId64 ".%03d\n", name, time_ns / 1000000000,
            (int)(time_ns / 1000000 % 1000));
}

static void write_page(FILE *page, const struct counts *counts, const struct run_info *run)
{
    write_head(page, "sink_info", "", GAUGE, "Which sink this is; the value is always 1.");
    fputs("blkin_sink_info{", page);
    write_label(page, "version", BLKIN_VERSION);
    fputc(',', page);
    write_label(page, "endpoint", run->endpoint);
    fputs("} 1\n", page);
    write_time(page, "start_time", run->start_ns, "When the sink started, since 1970.");
    write_time(page, "events_time", run->events_ns,
               "When the counters of events were read, since 1970.");
    for (size_t i = 0; i < counters_count; i++) {
        const struct counter *counter = &counters[i];
        const char *suffix = counter->kind == COUNTER ? "_total" : "";

        write_head(page, counter->name, suffix, counter->kind, counter->help);
        fprintf(page, "blkin_%s%s %" PRIu64 "\n", counter->name, suffix,
                counter_value(counter, counts));
    }
}

char *prometheus_page(const struct counts *counts, const struct run_info *run)
{
    size_t length;
    char *text = NULL;
    FILE *page = open_memstream(&text, &length);

    if (!page)
        return NULL;
    write_page(page, counts, run);
    if (fclose(page) == 0)
        return text;
    free(text);
    return NULL;
}

/*
 * The page of this host for Prometheus.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "page.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/printer.h"
#include "tools/base/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX         "blkin_host_"
#define NAME_MAX_BYTES 160

/* A filter lets at least one sample a minute through. An instance without one for three such times,
 * or for three of its periods, has ended. */
#define GONE_MS 180000

struct host_page {
    struct metrics *metrics;
    char host[256];
    struct observer observer;
};

static const struct unit {
    const char *unit, *suffix;
    double scale;
} units[] = {{"ns", "_seconds", 1e-9},
             {"us", "_seconds", 1e-6},
             {"ms", "_seconds", 1e-3},
             {"s", "_seconds", 1},
             {"By", "_bytes", 1},
             {"%", "_percent", 1},
             {"By/s", "_bytes_per_second", 1}};

/* A metric of the page: the name with its unit, and the factor for its values. */
struct series {
    char name[NAME_MAX_BYTES];
    double scale;
    bool is_counter;
    const char *help;
    bool has_head;
};

/* parts: one or two, joined by "_". */
static struct series series_of(const char *first, const char *second, const char *unit)
{
    struct series series = {.scale = 1};
    const char *suffix = strstr(unit, "/s") ? "_per_second" : "";

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(units[i].unit, unit) == 0) {
            suffix = units[i].suffix;
            series.scale = units[i].scale;
        }
    }
    (void)snprintf(series.name, sizeof(series.name), PREFIX "%s%s%s%s", first, *second ? "_" : "",
                   second, suffix);
    for (char *at = series.name; *at; at++)
        *at = (char)(isalnum((unsigned char)*at) ? *at : '_');
    return series;
}

/* Begins a line: all but its value. */
static void series_begin_line(struct series *series, struct printer *to,
                              const struct host_page *page, const struct observed *observed)
{
    const char *more = series->is_counter ? "_total" : "";

    if (!series->has_head)
        print(to, "# HELP %s%s %s\n# TYPE %s%s %s\n", series->name, more, series->help,
              series->name, more, series->is_counter ? "counter" : "gauge");
    series->has_head = true;
    print(to, "%s%s{", series->name, more);
    print_label(to, "host", text_of(page->host));
    print_string(to, ",");
    print_label(to, "name", text_of(observed->name));
    print_string(to, "} ");
}

static bool observed_is_there(const struct observed *observed, enum host_kind kind, uint64_t now_ns)
{
    const uint64_t most_ms =
        observed->period_ms * UINT64_C(3) > GONE_MS ? observed->period_ms * UINT64_C(3) : GONE_MS;

    return observed->after_ns && observed->kind == kind &&
           now_ns - observed->after_ns < most_ms * 1000000;
}

static void page_print_metric(struct printer *to, const struct host_page *page, enum host_kind kind,
                              size_t i, uint64_t now_ns)
{
    const struct host_metric *metric = &host_definition(kind)->metrics[i];
    struct series series = series_of(metric->name, "", metric->unit);

    series.is_counter = metric->is_counter;
    series.help = "As the kernel has it.";
    for (size_t slot = 0; slot < HOST_SLOTS; slot++) {
        const struct observed *observed = &page->observer.slots[slot];

        if (!observed_is_there(observed, kind, now_ns) || !(observed->after_present >> i & 1))
            continue;
        series_begin_line(&series, to, page, observed);
        if (series.scale == 1)
            print(to, "%" PRIu64 "\n", observed->after[i]);
        else
            print(to, "%.15g\n", (double)observed->after[i] * series.scale);
    }
}

static void page_print_view(struct printer *to, const struct host_page *page,
                            const struct host_view *view, uint64_t now_ns)
{
    const enum host_kind kind = host_kind_find(view->group);
    struct series series = series_of(view->group, view->name, view->unit);

    series.help = "Between the two latest samples.";
    for (size_t slot = 0; slot < HOST_SLOTS; slot++) {
        const struct observed *observed = &page->observer.slots[slot];
        double value;

        if (!observed_is_there(observed, kind, now_ns) || !observed->before_ns ||
            !observed_value(observed, view, &value))
            continue;
        series_begin_line(&series, to, page, observed);
        print(to, "%.15g\n", value * series.scale);
    }
}

static char *page_text(void *context)
{
    const struct host_page *page = context;
    const uint64_t now_ns = (uint64_t)clock_ns();
    struct printer printer = {.has_failed = false};
    size_t count;
    const struct host_view *views = host_views(&count);

    for (int kind = 0; kind < HOST_KINDS; kind++) {
        for (size_t i = 0; i < host_definition((enum host_kind)kind)->count; i++)
            page_print_metric(&printer, page, (enum host_kind)kind, i, now_ns);
    }
    for (size_t i = 0; i < count; i++) {
        if (views[i].kind != HOST_VIEW_BASIC && views[i].kind != HOST_VIEW_DELTA)
            page_print_view(&printer, page, &views[i], now_ns);
    }
    return print_end(&printer);
}

struct host_page *host_page_open(struct loop *loop, const char *where, struct error *error)
{
    struct host_page *page = calloc(1, sizeof(*page));

    error_set(error, "out of memory");
    if (!page)
        return NULL;
    (void)gethostname(page->host, sizeof(page->host) - 1);
    page->metrics = metrics_open(loop, "host-listen", where, page_text, page, error);
    if (page->metrics)
        return page;
    free(page);
    return NULL;
}

void host_page_close(struct host_page *page)
{
    if (!page)
        return;
    metrics_close(page->metrics);
    free(page);
}

void host_page_take(void *context, const struct host_sample *sample)
{
    struct host_page *page = context;

    observe_sample(&page->observer, sample);
}

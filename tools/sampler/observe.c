/*
 * Keeps the two latest samples of each instance.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "observe.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

void observe_sample(void *context, const struct host_sample *sample)
{
    struct observer *const observer = context;
    struct observed *const observed = &observer->slots[sample->slot];

    if (observed->generation != sample->generation) {
        const size_t length = strlen(sample->instance);
        char *at = observed->name;

        memset(observed, 0, sizeof(*observed));
        observed->kind = sample->kind;
        observed->generation = sample->generation;
        for (size_t done = 0; done < length;)
            done += utf8_put(&at, sample->instance + done, length - done);
        *at = '\0';
    }
    observed->period_ms = sample->period_ms;
    observed->before_ns = observed->after_ns;
    observed->before_present = observed->after_present;
    memcpy(observed->before, observed->after, sizeof(observed->before));
    observed->after_ns = sample->monotonic;
    observed->after_present = sample->present;
    memcpy(observed->after, sample->values, sample->count * sizeof(*sample->values));
}

static int observed_find_metric(const void *context, const char *name, size_t length)
{
    const struct observed *const observed = context;

    return host_metric_find(observed->kind,
                            observed->after_present &
                                (observed->before_ns ? observed->before_present : UINT64_MAX),
                            name, length);
}

bool observed_value(const struct observed *observed, const struct host_view *view, double *value)
{
    const struct host_interval interval = {
        .from = observed->before_ns,
        .to = observed->after_ns,
        .before = observed->before_ns ? observed->before : NULL,
        .after = observed->after,
        .find = observed_find_metric,
        .context = observed,
    };

    return strcmp(view->group, host_definition(observed->kind)->name) == 0 &&
           host_view_value(view, &interval, value);
}

/* ---- for Prometheus -------------------------------------------------------------------------- */

#define PREFIX         "blkin_host_"
#define NAME_MAX_BYTES 160

/* An instance has ended if it had no sample for three minutes and for three of its periods.
 * (Filters pass one sample a minute.) */
#define GONE_MS 180000

/* The page, its host, and its time. */
struct host_page {
    const struct observer *observer;
    char host[256];
    uint64_t now_ns;
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
struct page_metric {
    char name[NAME_MAX_BYTES];
    double scale;
    bool is_counter;
    const char *help;
    bool has_head;
};

/* Returns the metric with the name PREFIX first[_second] and the suffix of its unit. */
static struct page_metric page_metric_of(const char *first, const char *second, const char *unit)
{
    struct page_metric page_metric = {.scale = 1};
    const char *suffix = strstr(unit, "/s") ? "_per_second" : "";

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(units[i].unit, unit) == 0) {
            suffix = units[i].suffix;
            page_metric.scale = units[i].scale;
        }
    }
    (void)snprintf(page_metric.name, sizeof(page_metric.name), PREFIX "%s%s%s%s", first,
                   *second ? "_" : "", second, suffix);
    for (char *at = page_metric.name; *at; at++)
        *at = (char)(isalnum((unsigned char)*at) ? *at : '_');
    return page_metric;
}

/* Writes the labels of a line, and before the first line HELP and TYPE. */
static void page_metric_begin_line(struct page_metric *page_metric, struct printer *to,
                                   const struct host_page *page, const struct observed *observed)
{
    const char *suffix = page_metric->is_counter ? "_total" : "";

    if (!page_metric->has_head)
        print(to, "# HELP %s%s %s\n# TYPE %s%s %s\n", page_metric->name, suffix, page_metric->help,
              page_metric->name, suffix, page_metric->is_counter ? "counter" : "gauge");
    page_metric->has_head = true;
    print(to, "%s%s{", page_metric->name, suffix);
    print_label(to, "host", text_of(page->host));
    print_string(to, ",");
    print_label(to, "name", text_of(observed->name));
    print_string(to, "} ");
}

static bool page_has(const struct host_page *page, const struct observed *observed,
                     enum host_kind kind)
{
    const uint64_t most_ms =
        observed->period_ms * UINT64_C(3) > GONE_MS ? observed->period_ms * UINT64_C(3) : GONE_MS;

    return observed->after_ns && observed->kind == kind &&
           page->now_ns - observed->after_ns < most_ms * 1000000;
}

static void page_print_metric(struct printer *to, const struct host_page *page, enum host_kind kind,
                              size_t i)
{
    const struct host_metric *metric = &host_definition(kind)->metrics[i];
    struct page_metric page_metric = page_metric_of(metric->name, "", metric->unit);

    page_metric.is_counter = metric->is_counter;
    page_metric.help = "As the kernel has it.";
    for (size_t slot = 0; slot < HOST_SLOTS; slot++) {
        const struct observed *observed = &page->observer->slots[slot];

        if (!page_has(page, observed, kind) || !(observed->after_present >> i & 1))
            continue;
        page_metric_begin_line(&page_metric, to, page, observed);
        if (page_metric.scale == 1)
            print(to, "%" PRIu64 "\n", observed->after[i]);
        else
            print(to, "%.15g\n", (double)observed->after[i] * page_metric.scale);
    }
}

static void page_print_view(struct printer *to, const struct host_page *page,
                            const struct host_view *view)
{
    const enum host_kind kind = host_kind_find(view->group);
    struct page_metric page_metric = page_metric_of(view->group, view->name, view->unit);

    page_metric.help = "Between the two latest samples.";
    for (size_t slot = 0; slot < HOST_SLOTS; slot++) {
        const struct observed *observed = &page->observer->slots[slot];
        double value;

        if (!page_has(page, observed, kind) || !observed->before_ns ||
            !observed_value(observed, view, &value))
            continue;
        page_metric_begin_line(&page_metric, to, page, observed);
        print(to, "%.15g\n", value * page_metric.scale);
    }
}

void observer_print(const struct observer *observer, struct printer *to)
{
    struct host_page page = {.observer = observer, .now_ns = (uint64_t)clock_ns()};
    size_t count;
    const struct host_view *views = host_views(&count);

    (void)gethostname(page.host, sizeof(page.host) - 1);
    for (int kind = 0; kind < HOST_KINDS; kind++) {
        for (size_t i = 0; i < host_definition((enum host_kind)kind)->count; i++)
            page_print_metric(to, &page, (enum host_kind)kind, i);
    }
    for (size_t i = 0; i < count; i++) {
        if (views[i].kind != HOST_VIEW_BASIC && views[i].kind != HOST_VIEW_DELTA)
            page_print_view(to, &page, &views[i]);
    }
}

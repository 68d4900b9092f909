/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

struct host_values host_values_of(const struct host_sample *sample)
{
    struct host_values values = {.at = sample->monotonic, .present = sample->present};

    memcpy(values.values, sample->values, sample->count * sizeof(*sample->values));
    return values;
}

struct values_names {
    enum host_kind kind;
    uint64_t present; /* in all needed samples */
};

static int values_find_metric(const void *context, const char *name, size_t length)
{
    const struct values_names *names = context;

    return host_metric_find(names->kind, names->present, name, length);
}

bool host_values_view(enum host_kind kind, const struct host_view *view,
                      const struct host_values *before, const struct host_values *after,
                      double *value)
{
    const bool has_before = before->at && before->at < after->at;
    const struct values_names names = {kind, after->present &
                                                 (view->is_gauge ? UINT64_MAX : before->present)};
    const struct host_interval interval = {.from = has_before ? before->at : 0,
                                           .to = after->at,
                                           .before = has_before ? before->values : NULL,
                                           .after = after->values,
                                           .find = values_find_metric,
                                           .context = &names};

    return (has_before || view->is_gauge) &&
           strcmp(view->group, host_definition(kind)->name) == 0 &&
           host_view_value(view, &interval, value) && isfinite(*value);
}

void observed_name(char name[OBSERVED_NAME_BYTES], const char *instance)
{
    const size_t length = strlen(instance);

    for (size_t done = 0; done < length;)
        done += utf8_put(&name, instance + done, length - done);
    *name = '\0';
}

void observe_sample(void *context, const struct host_sample *sample)
{
    struct observer *const observer = context;
    struct observed *const observed = &observer->slots[sample->slot];

    if (observed->generation != sample->generation) {
        memset(observed, 0, sizeof(*observed));
        observed->kind = sample->kind;
        observed->generation = sample->generation;
        observed_name(observed->name, sample->instance);
    }
    observed->period_ms = sample->period_ms;
    observed->before = observed->after;
    observed->after = host_values_of(sample);
}

/* ---- for Prometheus -------------------------------------------------------------------------- */

#define PREFIX         "blkin_host_"
#define NAME_MAX_BYTES 160

/* A filter passes at least one sample a minute, or one each period_ms if that is longer. An
 * instance without a sample for three times that time has ended. */
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
struct series {
    char name[NAME_MAX_BYTES];
    double scale;
    bool is_counter;
    const char *help;
    bool has_head;
};

/* Returns a series whose name has one part, or two parts joined by "_". */
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

/* Writes a line without its value. */
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

static bool page_has(const struct host_page *page, const struct observed *observed,
                     enum host_kind kind)
{
    const uint64_t most_ms =
        observed->period_ms * UINT64_C(3) > GONE_MS ? observed->period_ms * UINT64_C(3) : GONE_MS;

    return observed->after.at && observed->kind == kind &&
           page->now_ns - observed->after.at < most_ms * 1000000;
}

/* Prints the instances of a series: of the view, or (NULL) of metric i. */
static void page_print_series(struct printer *to, const struct host_page *page, enum host_kind kind,
                              struct series *series, const struct host_view *view, size_t i)
{
    for (size_t slot = 0; slot < HOST_SLOTS; slot++) {
        const struct observed *observed = &page->observer->slots[slot];
        const struct host_values *now = &observed->after;
        double value = (double)now->values[i];

        if (!page_has(page, observed, kind) ||
            (view ? !observed->before.at ||
                        !host_values_view(kind, view, &observed->before, now, &value)
                  : !(now->present >> i & 1)))
            continue;
        series_begin_line(series, to, page, observed);
        if (!view && series->scale == 1)
            print(to, "%" PRIu64 "\n", now->values[i]);
        else
            print(to, "%.15g\n", value * series->scale);
    }
}

static void page_print_metrics(struct printer *to, const struct host_page *page,
                               enum host_kind kind)
{
    const struct host_definition *definition = host_definition(kind);

    for (size_t i = 0; i < definition->count; i++) {
        const struct host_metric *metric = &definition->metrics[i];
        struct series series = series_of(metric->name, "", metric->unit);

        series.is_counter = metric->is_counter;
        series.help = "The kernel's value.";
        page_print_series(to, page, kind, &series, NULL, i);
    }
}

void observer_print(const struct observer *observer, struct printer *to)
{
    struct host_page page = {.observer = observer, .now_ns = (uint64_t)clock_ns()};
    size_t count;
    const struct host_view *views = host_views(&count);

    (void)gethostname(page.host, sizeof(page.host) - 1);
    for (int kind = 0; kind < HOST_KINDS; kind++)
        page_print_metrics(to, &page, (enum host_kind)kind);
    for (size_t i = 0; i < count; i++) {
        struct series series = series_of(views[i].group, views[i].name, views[i].unit);

        series.help = "Between the two latest samples.";
        if (views[i].kind != HOST_VIEW_GAUGE && views[i].kind != HOST_VIEW_DELTA)
            page_print_series(to, &page, host_kind_find(views[i].group), &series, &views[i], 0);
    }
}

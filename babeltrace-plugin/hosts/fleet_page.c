/*
 * What hosts do, for Prometheus.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fleet_page.h"

#include "babeltrace-plugin/base/label.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

double metric_name(char name[METRIC_NAME_MAX], const char *prefix, struct text metric,
                   struct text unit)
{
    static const struct {
        const char *unit, *suffix;
        double scale;
    } units[] = {{"ns", "_seconds", 1e-9}, {"us", "_seconds", 1e-6}, {"ms", "_seconds", 1e-3},
                 {"s", "_seconds", 1},     {"By", "_bytes", 1},      {"%", "_percent", 1}};
    size_t length = (size_t)snprintf(name, METRIC_NAME_MAX, "%s", prefix);

    for (size_t i = 0; i < metric.length && length < METRIC_NAME_MAX - 16; i++)
        name[length++] = (char)(isalnum((unsigned char)metric.data[i]) ? metric.data[i] : '_');
    name[length] = '\0';
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (text_is(unit, units[i].unit)) {
            (void)snprintf(name + length, METRIC_NAME_MAX - length, "%s", units[i].suffix);
            return units[i].scale;
        }
    }
    return 1;
}

bool view_is_shown(const struct host_view *view)
{
    return view->kind != HOST_VIEW_BASIC && view->kind != HOST_VIEW_DELTA;
}

double view_name(char name[METRIC_NAME_MAX], const char *prefix, const struct host_view *view)
{
    static const struct {
        const char *unit, *suffix;
        double scale;
    } units[] = {{"%", "_percent", 1}, {"ms", "_seconds", 1e-3}, {"By/s", "_bytes_per_second", 1}};
    const char *suffix = strstr(view->unit, "/s") ? "_per_second" : "";
    double scale = 1;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(view->unit, units[i].unit) == 0) {
            suffix = units[i].suffix;
            scale = units[i].scale;
        }
    }
    (void)snprintf(name, METRIC_NAME_MAX, "%s%s_%s%s", prefix, view->group, view->name, suffix);
    return scale;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct shown_row {
    const struct fleet_row *row;
    const struct fleet_window *window; /* NULL: none is shown */
    const char *metric, *hosts, *instance;
};

static int compare(const void *one, const void *other)
{
    const struct shown_row *a = one, *b = other;
    int order = strcmp(a->metric, b->metric);

    if (!order)
        order = strcmp(a->hosts, b->hosts);
    return order ? order : strcmp(a->instance, b->instance);
}

/* Those that are of something, by metric. Returns NULL when out of memory. */
static struct shown_row *sort_rows(const struct fleet *fleet, int64_t now_ns, size_t *count)
{
    const struct names *names = fleet_names(fleet);
    struct shown_row *rows = calloc(fleet_rows(fleet) + 1, sizeof(*rows));

    *count = 0;
    for (size_t i = 0; rows && i < fleet_rows(fleet); i++) {
        const struct fleet_row *row = fleet_row(fleet, i);

        if (names_text(names, row->metric).length)
            rows[(*count)++] = (struct shown_row){
                row,
                fleet_shown(row, now_ns),
                names_text(names, row->metric).data,
                names_text(names, row->hosts).data,
                names_text(names, row->instance).data,
            };
    }
    if (rows)
        qsort(rows, *count, sizeof(*rows), compare);
    return rows;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void print_head(struct printer *page, const char *name, const char *more, const char *type,
                       const char *help)
{
    print(page, "# HELP %s%s %s\n", name, more, help);
    print(page, "# TYPE %s%s %s\n", name, more, type);
}

static void print_labels(struct printer *page, const char *name, const char *more,
                         const struct shown_row *row)
{
    print(page, "%s%s{", name, more);
    print_label(page, "hosts", text_of(row->hosts));
    print_string(page, ",");
    print_label(page, "name", text_of(row->instance));
}

static void print_stats(struct printer *page, const char *name, const char *more, double scale,
                        const struct shown_row *row)
{
    const double average = fleet_average(row->row, row->window);
    const struct {
        const char *name;
        double value;
    } stats[] = {{"sum", average * (double)row->window->hosts},
                 {"average", average},
                 {"min", row->window->min},
                 {"max", row->window->max}};

    /* of no host from the beginning on: a sum is not known */
    for (size_t i = row->window->hosts == 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
        print_labels(page, name, more, row);
        print(page, ",stat=\"%s\"} %.15g\n", stats[i].name, stats[i].value * scale);
    }
}

/* All rows of one metric; if a name is of counters and gauges, those of the other kind are left
 * out. */
static void print_metric(struct printer *page, const struct fleet *fleet,
                         const struct shown_row *rows, size_t count)
{
    const bool is_counter = rows->row->is_counter;
    const char *more = is_counter ? "_per_second" : "";
    char name[METRIC_NAME_MAX];
    const double scale = metric_name(name, "blkin_hosts_", text_of(rows->metric),
                                     names_text(fleet_names(fleet), rows->row->unit));

    if (is_counter)
        print_head(page, name, "_total", "counter", "Of all hosts of a group.");
    for (size_t i = 0; is_counter && i < count; i++) {
        if (!rows[i].row->is_counter)
            continue;
        print_labels(page, name, "_total", &rows[i]);
        print_value(page, rows[i].row->increase, scale);
    }
    print_head(page, name, more, "gauge", "Over the hosts of a group, in the latest window.");
    for (size_t i = 0; i < count; i++) {
        if (rows[i].row->is_counter == is_counter && rows[i].window)
            print_stats(page, name, more, scale, &rows[i]);
    }
}

/* ---- views ----------------------------------------------------------------------------------- */

static struct text first_word(const char *words)
{
    return (struct text){words, strcspn(words, " ")};
}

/* The sum of metrics in a window, of one instance of a group. Returns false if one is not there. */
static bool sum_up(const struct fleet *fleet, const struct shown_row *of, const char *metrics,
                   double *sum)
{
    *sum = 0;
    while (*metrics) {
        const struct text name = first_word(metrics);
        const struct fleet_row *row = fleet_find(fleet, of->row->hosts, name, of->row->instance);
        const struct fleet_window *window =
            row ? &row->windows[(uint64_t)of->window->number % FLEET_WINDOWS] : NULL;

        if (!window || !fleet_window_is_known(window) || window->number != of->window->number)
            return false;
        *sum += row->is_counter ? (double)window->increase : window->integral;
        metrics += name.length;
        metrics += *metrics == ' ';
    }
    return true;
}

static void print_view_stat(struct printer *page, const char *name, const char *stat, double value,
                            const struct host_view *view, const struct shown_row *row)
{
    char same[METRIC_NAME_MAX];
    const double scale = view_name(same, "", view);

    value *= (view->kind == HOST_VIEW_PERCENT ? 100 : 1) * (view->scale != 0 ? view->scale : 1);
    if (view->most != 0 && value > view->most)
        value = view->most;
    print_labels(page, name, "", row);
    print(page, ",stat=\"%s\"} %.15g\n", stat, value * scale);
}

/* Of ns by the interval the least and the most are known, too. */
static void print_view(struct printer *page, const char *name, const struct fleet *fleet,
                       const struct host_view *view, const struct shown_row *row)
{
    const struct fleet_window *window = row->window;
    double sum, by = (double)window->elapsed_ns;

    if (!sum_up(fleet, row, view->metrics, &sum) ||
        (view->by && !sum_up(fleet, row, view->by, &by)) || by <= 0)
        return;
    print_view_stat(page, name, "average", sum / by, view, row);
    if (view->by || strchr(view->metrics, ' '))
        return;
    print_view_stat(page, name, "min", window->min / 1e9, view, row);
    print_view_stat(page, name, "max", window->max / 1e9, view, row);
}

/* Rates are the metrics' own. */
static void print_views(struct printer *page, const struct fleet *fleet,
                        const struct shown_row *rows, size_t count)
{
    size_t views_count;
    const struct host_view *views = host_views(&views_count);

    for (size_t i = 0; i < views_count; i++) {
        const struct text metric = first_word(views[i].metrics);
        char name[METRIC_NAME_MAX];
        bool has_head = false;

        (void)view_name(name, "blkin_hosts_", &views[i]);
        for (size_t k = 0; k < count; k++) {
            if (!rows[k].window || views[i].kind == HOST_VIEW_RATE || !view_is_shown(&views[i]) ||
                !text_is(metric, rows[k].metric))
                continue;
            if (!has_head)
                print_head(page, name, "", "gauge", "Over the hosts of a group.");
            has_head = true;
            print_view(page, name, fleet, &views[i], &rows[k]);
        }
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct group {
    const char *hosts;
    uint64_t reporting, samples;
    int64_t window; /* the latest; 0: none */
};

static int compare_groups(const void *one, const void *other)
{
    const struct group *a = one, *b = other;

    return strcmp(a->hosts, b->hosts);
}

/* One for each row; then those of the same group are put together. */
static size_t sum_groups(struct group *groups, const struct shown_row *rows, size_t count)
{
    size_t last = 0;

    for (size_t i = 0; i < count; i++)
        groups[i] =
            (struct group){rows[i].hosts, rows[i].window ? rows[i].window->hosts : 0,
                           rows[i].row->samples, rows[i].window ? rows[i].window->number + 1 : 0};
    qsort(groups, count, sizeof(*groups), compare_groups);
    for (size_t i = 1; i < count; i++) {
        struct group *group = &groups[last];

        if (strcmp(groups[i].hosts, group->hosts) != 0) {
            groups[++last] = groups[i];
            continue;
        }
        group->samples += groups[i].samples;
        if (groups[i].reporting > group->reporting)
            group->reporting = groups[i].reporting;
        if (groups[i].window > group->window)
            group->window = groups[i].window;
    }
    return count ? last + 1 : 0;
}

static void print_group(struct printer *page, const char *name, const struct group *group,
                        double value)
{
    print(page, "%s{", name);
    print_label(page, "hosts", text_of(group->hosts));
    print(page, "} %.15g\n", value);
}

static void print_groups(struct printer *page, const struct shown_row *rows, size_t row_count)
{
    static const char reporting[] = "blkin_hosts_reporting",
                      samples[] = "blkin_hosts_samples_total",
                      window[] = "blkin_hosts_window_end_seconds";
    struct group *groups = calloc(row_count + 1, sizeof(*groups));
    size_t count;

    if (!groups) {
        page->has_failed = true;
        return;
    }
    count = sum_groups(groups, rows, row_count);
    print_head(page, reporting, "", "gauge", "Hosts that there were, in the latest window.");
    for (size_t i = 0; i < count; i++)
        print_group(page, reporting, &groups[i], (double)groups[i].reporting);
    print_head(page, samples, "", "counter", "Metrics between two samples of a host, added up.");
    for (size_t i = 0; i < count; i++)
        print_group(page, samples, &groups[i], (double)groups[i].samples);
    print_head(page, window, "", "gauge", "Until when the latest window is, since 1970.");
    for (size_t i = 0; i < count; i++) {
        if (groups[i].window)
            print_group(page, window, &groups[i],
                        (double)groups[i].window * (double)FLEET_WINDOW_NS / 1e9);
    }
    free(groups);
}

void fleet_page(struct printer *page, const struct fleet *fleet, int64_t now_ns)
{
    size_t count, next;
    struct shown_row *rows = sort_rows(fleet, now_ns, &count);

    if (!rows) {
        page->has_failed = true;
        return;
    }
    if (count)
        print_groups(page, rows, count);
    for (size_t i = 0; i < count; i = next) {
        for (next = i + 1; next < count && strcmp(rows[next].metric, rows[i].metric) == 0;)
            next++;
        print_metric(page, fleet, rows + i, next - i);
    }
    print_views(page, fleet, rows, count);
    free(rows);
}

/*
 * What hosts do, for Prometheus.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fleet_page.h"

#include <ctype.h>
#include <stdlib.h>

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

/* NULL: there is none. */
static const struct unit *find_unit(struct text name)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (text_is(name, units[i].unit))
            return &units[i];
    }
    return NULL;
}

double metric_name(char name[METRIC_NAME_MAX], const char *prefix, struct text metric,
                   struct text unit)
{
    const struct unit *known = find_unit(unit);
    size_t length = (size_t)snprintf(name, METRIC_NAME_MAX, "%s", prefix);

    for (size_t i = 0; i < metric.length && length < METRIC_NAME_MAX - 16; i++)
        name[length++] = (char)(isalnum((unsigned char)metric.data[i]) ? metric.data[i] : '_');
    name[length] = '\0';
    if (known)
        (void)snprintf(name + length, METRIC_NAME_MAX - length, "%s", known->suffix);
    return known ? known->scale : 1;
}

bool view_is_shown(const struct host_view *view)
{
    return view->kind != HOST_VIEW_BASIC && view->kind != HOST_VIEW_DELTA;
}

double view_name(char name[METRIC_NAME_MAX], const char *prefix, const struct host_view *view)
{
    const struct unit *known = find_unit(text_of(view->unit));
    const char *suffix = known ? known->suffix : strstr(view->unit, "/s") ? "_per_second" : "";

    (void)snprintf(name, METRIC_NAME_MAX, "%s%s_%s%s", prefix, view->group, view->name, suffix);
    return known ? known->scale : 1;
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* A row on its way to the page. */
struct shown_row {
    const struct fleet *fleet;
    const struct fleet_row *row;
    const struct fleet_window *window; /* NULL: none is shown */
    struct text metric, hosts, instance;
};

static void fleet_print_labels(struct page *page, const struct shown_row *row)
{
    page_label(page, "hosts", row->hosts);
    page_label(page, "name", row->instance);
}

static void print_stat(struct page *page, const struct shown_row *row, const char *stat,
                       double value)
{
    fleet_print_labels(page, row);
    page_label(page, "stat", text_of(stat));
    page_end(page, value);
}

static void fleet_print_metric(struct page *page, const struct shown_row *row)
{
    const bool is_counter = row->row->is_counter;
    const struct fleet_window *window = row->window;
    const double average = window ? fleet_average(row->row, window) : 0;
    char name[METRIC_NAME_MAX];
    const double scale = metric_name(name, "blkin_hosts_", row->metric,
                                     names_text(fleet_names(row->fleet), row->row->unit));
    const struct {
        const char *name;
        double value;
    } stats[] = {{"sum", window ? average * (double)window->hosts : 0},
                 {"average", average},
                 {"min", window ? window->min : 0},
                 {"max", window ? window->max : 0}};

    if (is_counter) {
        page_begin(page, PAGE_COUNTER, "All hosts of a group.", name, "_total");
        fleet_print_labels(page, row);
        page_end_whole(page, row->row->increase, scale);
    }
    /* of no host from the beginning on: a sum is not known */
    for (size_t i = window && window->hosts == 0; window && i < sizeof(stats) / sizeof(stats[0]);
         i++) {
        page_begin(page, PAGE_GAUGE, "Over the hosts of a group, in the latest window.", name,
                   is_counter ? "_per_second" : "");
        print_stat(page, row, stats[i].name, stats[i].value * scale);
    }
}

/* ---- views ----------------------------------------------------------------------------------- */

static struct text first_word(const char *words)
{
    return (struct text){words, strcspn(words, " ")};
}

/* The sum of metrics in a window, of one instance of a group. Returns false if one is not there. */
static bool sum_up(const struct shown_row *of, const char *metrics, double *sum)
{
    *sum = 0;
    while (*metrics) {
        const struct text name = first_word(metrics);
        const struct fleet_row *row =
            fleet_find(of->fleet, of->row->hosts, name, of->row->instance);
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

static void print_view_stat(struct page *page, const struct shown_row *row, const char *stat,
                            double value, const struct host_view *view)
{
    char name[METRIC_NAME_MAX];
    const double scale = view_name(name, "blkin_hosts_", view);

    value *= (view->kind == HOST_VIEW_PERCENT ? 100 : 1) * (view->scale != 0 ? view->scale : 1);
    if (view->most != 0 && value > view->most)
        value = view->most;
    page_begin(page, PAGE_GAUGE, "Over the hosts of a group.", name, "");
    print_stat(page, row, stat, value * scale);
}

/* Of ns by the interval the least and the most are known, too. */
static void fleet_print_view(struct page *page, const struct shown_row *row,
                             const struct host_view *view)
{
    const struct fleet_window *window = row->window;
    double sum, by = (double)window->elapsed_ns;

    if (!sum_up(row, view->metrics, &sum) || (view->by && !sum_up(row, view->by, &by)) || by <= 0)
        return;
    print_view_stat(page, row, "average", sum / by, view);
    if (view->by || strchr(view->metrics, ' '))
        return;
    print_view_stat(page, row, "min", window->min / 1e9, view);
    print_view_stat(page, row, "max", window->max / 1e9, view);
}

/* Those that begin with the row's metric. Rates are the metrics' own. */
static void fleet_print_views(struct page *page, const struct shown_row *row)
{
    size_t count;
    const struct host_view *views = host_views(&count);

    for (size_t i = 0; row->window && i < count; i++) {
        if (views[i].kind != HOST_VIEW_RATE && view_is_shown(&views[i]) &&
            text_equal(first_word(views[i].metrics), row->metric))
            fleet_print_view(page, row, &views[i]);
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct group {
    uint64_t reporting, samples;
    int64_t window; /* the latest, and 1; 0: none */
    bool is_there;
};

static void add_to_group(struct group *group, const struct shown_row *row)
{
    group->is_there = true;
    group->samples += row->row->samples;
    if (row->window && row->window->hosts > group->reporting)
        group->reporting = row->window->hosts;
    if (row->window && row->window->number + 1 > group->window)
        group->window = row->window->number + 1;
}

static void print_group(struct page *page, struct text hosts, const struct group *group)
{
    page_begin(page, PAGE_GAUGE, "Hosts that sent metrics in the latest window.",
               "blkin_hosts_reporting", "");
    page_label(page, "hosts", hosts);
    page_end_whole(page, group->reporting, 1);
    page_begin(page, PAGE_COUNTER, "Metrics between two samples of a host, added up.",
               "blkin_hosts_samples_total", "");
    page_label(page, "hosts", hosts);
    page_end_whole(page, group->samples, 1);
    if (!group->window)
        return;
    page_begin(page, PAGE_GAUGE, "End of the latest window, since 1970.",
               "blkin_hosts_window_end_seconds", "");
    page_label(page, "hosts", hosts);
    page_end(page, (double)group->window * (double)FLEET_WINDOW_NS / 1e9);
}

void fleet_page(struct page *page, const struct fleet *fleet, int64_t now_ns)
{
    const struct names *names = fleet_names(fleet);
    struct group *groups = calloc(names_count(names), sizeof(*groups));

    page->text.has_failed |= !groups;
    for (size_t i = 0; groups && i < fleet_rows(fleet); i++) {
        const struct fleet_row *row = fleet_row(fleet, i);
        const struct shown_row shown = {
            .fleet = fleet,
            .row = row,
            .window = fleet_shown(row, now_ns),
            .metric = names_text(names, row->metric),
            .hosts = names_text(names, row->hosts),
            .instance = names_text(names, row->instance),
        };

        if (!shown.metric.length)
            continue;
        add_to_group(&groups[row->hosts], &shown);
        fleet_print_metric(page, &shown);
        fleet_print_views(page, &shown);
    }
    for (uint32_t id = 0; groups && id < names_count(names); id++) {
        if (groups[id].is_there)
            print_group(page, names_text(names, id), &groups[id]);
    }
    free(groups);
}

/*
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "print.h"

#include "babeltrace-plugin/base/date.h"
#include "tools/base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NAME_COLUMNS  24 /* of an instance in a table */
#define VALUE_COLUMNS 8
#define LINES_BETWEEN 20 /* headings, if there is no screen */

/* ---- the last two samples of each instance --------------------------------------------------- */

static void put_name(char name[OBSERVED_NAME_BYTES], const char *bytes)
{
    const size_t length = strlen(bytes);
    char *at = name;

    for (size_t done = 0; done < length;)
        done += utf8_put(&at, bytes + done, length - done);
    *at = '\0';
}

static void observe_sample(void *context, const struct host_sample *sample)
{
    struct observer *const observer = context;
    struct observed *const observed = &observer->slots[sample->slot];

    if (observed->generation != sample->generation) {
        memset(observed, 0, sizeof(*observed));
        observed->kind = sample->kind;
        observed->generation = sample->generation;
        put_name(observed->name, sample->instance);
    }
    observed->before_ns = observed->after_ns;
    observed->before_present = observed->after_present;
    memcpy(observed->before, observed->after, sizeof(observed->before));
    observed->after_ns = sample->monotonic;
    observed->after_present = sample->present;
    memcpy(observed->after, sample->values, sample->count * sizeof(*sample->values));
    observer->seen[observer->count++] = observed;
}

void observe(struct observer *observer, struct host *host)
{
    observer->count = 0;
    host_sample_all(host, observe_sample, observer);
}

static int observed_find_metric(const void *context, const char *name, size_t length)
{
    const struct observed *const observed = context;

    return host_metric_find(observed->kind,
                            observed->after_present &
                                (observed->before_ns ? observed->before_present : UINT64_MAX),
                            name, length);
}

/* Returns false if it is not known. */
static bool observed_value(const struct observed *observed, const struct host_view *view,
                           double *value)
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

/* ---- values, and the time */

struct value_text {
    char text[16];
};

/* In 6 columns: "1.2M", "950". */
static struct value_text scaled(double value, double by)
{
    static const char units[] = " kMGTPE";
    struct value_text text;
    size_t unit = 0;

    while (value >= by * 0.9995 && unit + 2 < sizeof(units)) {
        value /= by;
        unit++;
    }
    (void)snprintf(text.text, sizeof(text.text), value < 9.95 && value > 0 ? "%.1f%c" : "%.0f%c",
                   value, units[unit]);
    if (unit == 0)
        text.text[strlen(text.text) - 1] = '\0';
    return text;
}

static struct value_text value_text(const struct observed *observed, const struct host_view *view)
{
    struct value_text text = {"-"};
    double value;

    if (!observed || !view || !observed_value(observed, view, &value))
        return text;
    if (strcmp(view->unit, "%") == 0 || strcmp(view->unit, "ms") == 0)
        (void)snprintf(text.text, sizeof(text.text), value < 99.95 ? "%.1f" : "%.0f", value);
    else
        text = scaled(value, strncmp(view->unit, "By", 2) == 0 ? 1024 : 1000);
    return text;
}

static void print_right(const char *text, size_t width)
{
    const size_t length = strlen(text);

    put_spaces(length < width ? width - length : 0);
    fputs(text, stdout);
}

static void print_time(void)
{
    const time_t now = time(NULL);
    struct tm parts;
    char text[16] = "";

    if (localtime_r(&now, &parts))
        (void)strftime(text, sizeof(text), "%H:%M:%S", &parts);
    printf("%-8s", text);
}

/* ---- a line for the host */

static const struct column {
    const char *group; /* of the busiest instance, if it has several */
    const char *view;  /* NULL: the instance's name */
    const char *over;  /* the heading's first line, over this column and the next ones */
    const char *heading;
    size_t width;
} line_columns[] = {
    /* what does not fit on the screen is left out from the end */
    {"cpu", "user", "cpu %", "user", 5},
    {"cpu", "system", "", "sys", 4},
    {"cpu", "iowait", "", "wait", 5},
    {"cpu", "steal", "", "stl", 4},
    {"run_queue", "running", "threads", "run", 5},
    {"run_queue", "blocked", "", "blk", 4},
    {"pressure", "cpu", "waited % for", "cpu", 5},
    {"pressure", "io", "", "io", 4},
    {"pressure", "memory", "", "mem", 4},
    {"disk", NULL, " busiest disk", "", 11},
    {"disk", "busy", "", "busy%", 6},
    {"disk", "queue", "", "queue", 6},
    {"disk", "wait", "", "ms", 6},
    {"memory", "available", "memory", "avail", 7},
    {"memory", "dirty", "", "dirty", 6},
    {"network", NULL, " busiest network", "", 11},
    {"network", "received", "", "in/s", 6},
    {"network", "sent", "", "out/s", 6},
    {"network", "dropped", "", "drop/s", 7},
    {"tcp", "retransmits", "tcp", "retr/s", 7},
};
#define LINE_COLUMNS (sizeof(line_columns) / sizeof(line_columns[0]))

static size_t columns_that_fit(size_t width)
{
    size_t taken = 8; /* the time */
    size_t count = 0;

    while (count < LINE_COLUMNS && (taken += line_columns[count].width) <= width)
        count++;
    return count;
}

static void print_heading(size_t count)
{
    size_t before = 8;
    size_t taken = 0;

    for (size_t i = 0; i < count; i++) {
        const char *const over = line_columns[i].over;

        if (*over && before + 1 > taken) {
            put_spaces(before + 1 - taken);
            taken = before + 1 + strlen(over);
            fputs(over, stdout);
        }
        before += line_columns[i].width;
    }
    printf("\n%-8s", "time");
    for (size_t i = 0; i < count; i++)
        print_right(line_columns[i].heading, line_columns[i].width);
    putchar('\n');
}

/* How much an instance does, to find the busiest: of disks the share of time, of others bytes. */
static double activity(const struct observed *observed)
{
    static const char *const views[HOST_KINDS][2] = {
        [HOST_DISK] = {"busy"},
        [HOST_NETWORK] = {"received", "sent"},
    };
    double sum = 0;
    double value;

    for (size_t i = 0; i < 2 && views[observed->kind][i]; i++) {
        const struct host_view *const view =
            host_view_find(host_definition(observed->kind)->name, views[observed->kind][i]);

        if (view && observed_value(observed, view, &value))
            sum += value;
    }
    return sum;
}

/* The group's only instance, that of all CPUs, or the busiest one; NULL: there is none. */
static const struct observed *busiest(const struct observer *observer, const char *group)
{
    const enum host_kind kind = host_kind_find(group);
    const struct observed *found = NULL;

    for (size_t i = 0; i < observer->count; i++) {
        const struct observed *const one = observer->seen[i];

        if (one->kind != kind || (kind == HOST_CPU && *one->name))
            continue;
        if (!found || activity(one) > activity(found))
            found = one;
    }
    return found;
}

void host_print_line(const struct observer *observer, size_t line)
{
    const struct screen terminal = screen();
    const size_t count = columns_that_fit(terminal.width);
    const size_t between = terminal.rows > 4 ? terminal.rows - 3 : LINES_BETWEEN;

    if (line % between == 0)
        print_heading(count);
    print_time();
    for (size_t i = 0; i < count; i++) {
        const struct column *const column = &line_columns[i];
        const struct observed *const one = busiest(observer, column->group);

        if (column->view) {
            struct value_text text = value_text(one, host_view_find(column->group, column->view));

            if (column->width < 6) /* whole percents, and threads */
                text.text[strcspn(text.text, ".")] = '\0';
            print_right(text.text, column->width);
        } else {
            fputs("  ", stdout);
            put_spaces(column->width - 2 - put(one ? one->name : "-", column->width - 2));
        }
    }
    putchar('\n');
}

/* ---- a group's table */

static bool is_of(const struct host_view *view, enum host_kind kind)
{
    return strcmp(view->group, host_definition(kind)->name) == 0;
}

static size_t view_columns(const struct host_view *view)
{
    const size_t length =
        strlen(view->name) > strlen(view->unit) ? strlen(view->name) : strlen(view->unit);

    return (length > VALUE_COLUMNS - 2 ? length : VALUE_COLUMNS - 2) + 2;
}

static void print_group_heading(enum host_kind kind, size_t name_columns)
{
    size_t count;
    const struct host_view *const views = host_views(&count);

    print_time();
    put_spaces(name_columns > 8 ? name_columns - 8 : 0);
    for (size_t i = 0; i < count; i++)
        if (is_of(&views[i], kind))
            print_right(views[i].name, view_columns(&views[i]));
    putchar('\n');
    put_spaces(name_columns > 8 ? name_columns : 8);
    for (size_t i = 0; i < count; i++)
        if (is_of(&views[i], kind))
            print_right(views[i].unit, view_columns(&views[i]));
    putchar('\n');
}

void host_print_group(const struct observer *observer, enum host_kind kind)
{
    const size_t name_columns = host_definition(kind)->has_instances ? NAME_COLUMNS : 8;
    size_t count;
    const struct host_view *const views = host_views(&count);

    print_group_heading(kind, name_columns);
    for (size_t i = 0; i < observer->count; i++) {
        const struct observed *const one = observer->seen[i];
        const char *const name = *one->name ? one->name : kind == HOST_CPU ? "all" : "";

        if (one->kind != kind)
            continue;
        put_spaces(name_columns - put(name, name_columns));
        for (size_t view = 0; view < count; view++)
            if (is_of(&views[view], kind))
                print_right(value_text(one, &views[view]).text, view_columns(&views[view]));
        putchar('\n');
    }
}

/* ---- JSON */

static json_t *metrics_json(const struct observed *observed)
{
    const struct host_definition *const definition = host_definition(observed->kind);
    json_t *const metrics = json_object();

    for (size_t i = 0; metrics && i < definition->count; i++)
        if (observed->after_present >> i & 1)
            json_object_set_new(metrics, definition->metrics[i].name,
                                observed->after[i] <= INT64_MAX
                                    ? json_integer((json_int_t)observed->after[i])
                                    : json_real((double)observed->after[i]));
    return metrics;
}

static json_t *views_json(const struct observed *observed)
{
    json_t *const json = json_object();
    size_t count;
    const struct host_view *const views = host_views(&count);
    double value;

    for (size_t i = 0; json && i < count; i++)
        if (is_of(&views[i], observed->kind) && observed_value(observed, &views[i], &value))
            json_object_set_new(json, views[i].name, json_real(value));
    return json;
}

bool host_print_json(const struct observer *observer)
{
    const int64_t time_us = wall_clock_ns() / 1000;

    for (size_t i = 0; i < observer->count; i++) {
        const struct observed *const one = observer->seen[i];
        json_t *const json = json_pack("{sI, sI, ss, ss, so, so}", "time_us", (json_int_t)time_us,
                                       "monotonic", (json_int_t)one->after_ns, "group",
                                       host_definition(one->kind)->name, "instance", one->name,
                                       "metrics", metrics_json(one), "views", views_json(one));

        if (!json)
            return false;
        json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        putchar('\n');
        json_decref(json);
    }
    return true;
}

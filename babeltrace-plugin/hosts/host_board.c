/*
 * What hosts do, as a page.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "host_board.h"

#include "babeltrace-plugin/base/label.h"
#include "fleet_page.h"
#include "host_view.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#define SAMPLES_BYTES (UINT64_C(32) << 20)
#define FORGET_NS     (900 * INT64_C(1000000000)) /* three of the longest periods */

struct host_board {
    pthread_mutex_t lock;
    struct samples *samples;
    struct fleet *fleet; /* NULL: of one host */
    int64_t latest_ns;   /* of all samples */
    int64_t forgotten_ns;
};

static void take_point(void *context, const struct fleet_point *point)
{
    const struct host_board *board = context;

    if (board->fleet)
        (void)fleet_add(board->fleet, point, board->latest_ns);
}

struct host_board *host_board_new(bool has_groups, const char *groups, struct error *error)
{
    struct host_board *board = calloc(1, sizeof(*board));

    error_set(error, "out of memory");
    if (!board)
        return NULL;
    (void)pthread_mutex_init(&board->lock, NULL);
    board->samples = samples_new(SAMPLES_BYTES, take_point, NULL, board);
    if (has_groups && board->samples)
        board->fleet = fleet_new(groups, error);
    if (board->samples && (!has_groups || board->fleet))
        return board;
    host_board_free(board);
    return NULL;
}

void host_board_free(struct host_board *board)
{
    if (!board)
        return;
    samples_free(board->samples);
    fleet_free(board->fleet);
    (void)pthread_mutex_destroy(&board->lock);
    free(board);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void take(struct host_board *board, const struct sample *sample)
{
    if (sample->time_ns > board->latest_ns)
        board->latest_ns = sample->time_ns;
    if (board->latest_ns - board->forgotten_ns > FORGET_NS) {
        samples_forget(board->samples, board->latest_ns - FORGET_NS);
        board->forgotten_ns = board->latest_ns;
    }
    (void)samples_take(board->samples, sample);
}

void host_board_take(struct host_board *board, const struct sample *sample)
{
    pthread_mutex_lock(&board->lock);
    take(board, sample);
    pthread_mutex_unlock(&board->lock);
}

/* Up to the next blank. */
static struct text next_word(struct text *text)
{
    const char *blank = text->length ? memchr(text->data, ' ', text->length) : NULL;
    const struct text word = {text->data, blank ? (size_t)(blank - text->data) : text->length};
    const size_t used = word.length + (blank != NULL);

    *text = (struct text){text->data + used, text->length - used};
    return word;
}

/* NAME:UNIT:KIND. */
static bool read_name(struct text word, struct sample_metric *metric)
{
    const char *colon = word.length ? memchr(word.data, ':', word.length) : NULL;
    const size_t length = colon ? (size_t)(colon - word.data) : 0;

    if (!length || word.length < length + 3 || word.data[word.length - 2] != ':' ||
        word.length - 2 == length)
        return false;
    metric->name = (struct text){word.data, length};
    metric->unit = (struct text){colon + 1, word.length - length - 3};
    metric->is_counter = word.data[word.length - 1] == 'c';
    return true;
}

static size_t read_names(struct text names, struct sample_metric metrics[SAMPLE_METRICS_MAX])
{
    size_t count = 0;

    while (names.length && count < SAMPLE_METRICS_MAX) {
        if (!read_name(next_word(&names), &metrics[count++]))
            return 0;
    }
    return count;
}

static bool read_number(struct text word, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (word.data[i] < '0' || word.data[i] > '9')
            return false;
        *value = *value * 10 + (uint64_t)(word.data[i] - '0');
    }
    return word.length > 0 && word.length < 21;
}

static size_t read_values(struct text text, uint64_t values[SAMPLE_METRICS_MAX])
{
    size_t count = 0;

    while (text.length && count < SAMPLE_METRICS_MAX) {
        if (!read_number(next_word(&text), &values[count++]))
            return 0;
    }
    return count;
}

void host_board_take_event(struct host_board *board, const struct event *event, int64_t time_ns)
{
    struct sample_metric metrics[SAMPLE_METRICS_MAX];
    uint64_t values[SAMPLE_METRICS_MAX];
    const struct sample_series *known;
    struct sample sample = {
        .host = event->origin.host,
        .group = event->group,
        .instance = event->instance,
        .time_ns = time_ns,
        .count = read_names(event->names, metrics),
        .metrics = metrics,
        .values = values,
        .present = UINT64_MAX,
    };

    pthread_mutex_lock(&board->lock);
    if (event->names.length == 0 &&
        (known = samples_find(board->samples, sample.host, sample.group, sample.instance))) {
        sample.metrics = known->metrics;
        sample.count = known->count;
    }
    if (sample.count && read_values(event->values, values) == sample.count)
        take(board, &sample);
    pthread_mutex_unlock(&board->lock);
}

/* ---- the page -------------------------------------------------------------------------------- */

/* A metric, or a view, of a host. */
struct line {
    struct text name;
    const struct sample_series *series;
    size_t metric;
};

struct lines {
    struct line *all;
    size_t count, room;
    bool has_failed;
};

static void add_line(struct lines *lines, struct line line)
{
    if (lines->count == lines->room) {
        const size_t room = lines->room ? 2 * lines->room : 1024;
        struct line *all = realloc(lines->all, room * sizeof(*all));

        lines->has_failed |= !all;
        if (!all)
            return;
        lines->all = all;
        lines->room = room;
    }
    lines->all[lines->count++] = line;
}

static int compare(const void *one, const void *other)
{
    const struct line *a = one, *b = other;
    const size_t length = a->name.length < b->name.length ? a->name.length : b->name.length;
    int order = length ? memcmp(a->name.data, b->name.data, length) : 0;

    if (!order)
        order = (a->name.length > b->name.length) - (a->name.length < b->name.length);
    if (!order)
        order = strcmp(a->series->host, b->series->host);
    return order ? order : strcmp(a->series->instance, b->series->instance);
}

static void print_labels(struct printer *page, const char *name, const char *more,
                         const struct sample_series *series)
{
    print(page, "%s%s{", name, more);
    print_label(page, "host", text_of(series->host));
    print_string(page, ",");
    print_label(page, "name", text_of(series->instance));
}

/* All of one name; those that are of the other kind than the first are left out. */
static void print_metric(struct printer *page, const struct line *lines, size_t count)
{
    const struct sample_metric *metric = &lines->series->metrics[lines->metric];
    const char *more = metric->is_counter ? "_total" : "";
    char name[METRIC_NAME_MAX];
    const double scale = metric_name(name, "blkin_host_", metric->name, metric->unit);

    print(page, "# HELP %s%s As the kernel has it.\n", name, more);
    print(page, "# TYPE %s%s %s\n", name, more, metric->is_counter ? "counter" : "gauge");
    for (size_t i = 0; i < count; i++) {
        const struct sample_series *series = lines[i].series;

        if (series->metrics[lines[i].metric].is_counter != metric->is_counter ||
            !(series->present >> lines[i].metric & 1))
            continue;
        print_labels(page, name, more, series);
        print_value(page, series->values[lines[i].metric], scale);
    }
}

static void print_metrics(struct printer *page, const struct host_board *board)
{
    const struct sample_series *series;
    struct lines lines = {.count = 0};

    table_for_each(series, samples_all(board->samples), in_table)
    {
        for (size_t i = 0; i < series->count; i++)
            add_line(&lines, (struct line){series->metrics[i].name, series, i});
    }
    if (lines.count)
        qsort(lines.all, lines.count, sizeof(*lines.all), compare);
    for (size_t i = 0, next; i < lines.count; i = next) {
        for (next = i + 1;
             next < lines.count && text_equal(lines.all[next].name, lines.all[i].name);)
            next++;
        print_metric(page, lines.all + i, next - i);
    }
    page->has_failed |= lines.has_failed;
    free(lines.all);
}

static int find_metric(const void *context, const char *name, size_t length)
{
    const struct sample_series *series = context;

    for (size_t i = 0; i < series->count; i++) {
        if (text_equal(series->metrics[i].name, (struct text){name, length}))
            return series->present & series->before_present & UINT64_C(1) << i ? (int)i : -1;
    }
    return -1;
}

static void print_view(struct printer *page, const struct host_view *view, const struct line *lines,
                       size_t count)
{
    char name[METRIC_NAME_MAX];
    const double scale = view_name(name, "blkin_host_", view);
    bool has_head = false;

    for (size_t i = 0; i < count; i++) {
        const struct sample_series *series = lines[i].series;
        const struct host_interval interval = {
            .from = (uint64_t)series->before_ns,
            .to = (uint64_t)series->time_ns,
            .before = series->before,
            .after = series->values,
            .find = find_metric,
            .context = series,
        };
        double value;

        if (strcmp(series->group, view->group) != 0 || !series->before_ns ||
            !host_view_value(view, &interval, &value))
            continue;
        if (!has_head)
            print(page, "# HELP %s Between the two latest samples.\n# TYPE %s gauge\n", name, name);
        has_head = true;
        print_labels(page, name, "", series);
        print(page, "} %.15g\n", value * scale);
    }
}

static void print_views(struct printer *page, const struct host_board *board)
{
    struct lines lines = {.count = 0};
    size_t count;
    const struct host_view *views = host_views(&count);
    const struct sample_series *series;

    table_for_each(series, samples_all(board->samples), in_table)
        add_line(&lines, (struct line){{"", 0}, series, 0});
    if (lines.count)
        qsort(lines.all, lines.count, sizeof(*lines.all), compare);
    for (size_t i = 0; lines.count && i < count; i++) {
        if (view_is_shown(&views[i]))
            print_view(page, &views[i], lines.all, lines.count);
    }
    page->has_failed |= lines.has_failed;
    free(lines.all);
}

char *host_board_page(void *context)
{
    struct host_board *board = context;
    struct printer page = {.has_failed = false};

    pthread_mutex_lock(&board->lock);
    print_metrics(&page, board);
    print_views(&page, board);
    if (board->fleet)
        fleet_page(&page, board->fleet, board->latest_ns);
    pthread_mutex_unlock(&board->lock);
    return print_end(&page);
}

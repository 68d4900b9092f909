/*
 * What hosts do, as a page.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "host_board.h"

#include "babeltrace-plugin/base/lock.h"
#include "fleet_page.h"
#include "host_view.h"

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

static void board_take(struct host_board *board, const struct sample *sample)
{
    const struct sample_series *known =
        samples_find(board->samples, sample->host, sample->group, sample->instance);

    if (known && samples_is_set_back(known, sample))
        board->latest_ns = board->forgotten_ns = sample->time_ns;
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
    LOCK_GUARD(&board->lock);
    board_take(board, sample);
}

static size_t board_read_names(struct text names, struct sample_metric metrics[SAMPLE_METRICS_MAX])
{
    size_t count = 0;

    while (names.length && count < SAMPLE_METRICS_MAX) {
        if (!history_read_name(&names, &metrics[count++]))
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
        .count = board_read_names(event->names, metrics),
        .metrics = metrics,
        .values = values,
        .present = UINT64_MAX,
    };

    LOCK_GUARD(&board->lock);
    if (event->names.length == 0 &&
        (known = samples_find(board->samples, sample.host, sample.group, sample.instance))) {
        sample.metrics = known->metrics;
        sample.count = known->count;
    }
    if (sample.count &&
        history_read_values(event->values, values, SAMPLE_METRICS_MAX) == sample.count)
        board_take(board, &sample);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void board_print_labels(struct page *page, const struct sample_series *series)
{
    page_label(page, "host", text_of(series->host));
    page_label(page, "name", text_of(series->instance));
}

static void board_print_metrics(struct page *page, const struct sample_series *series)
{
    for (size_t i = 0; i < series->count; i++) {
        const struct sample_metric *metric = &series->metrics[i];
        char name[METRIC_NAME_MAX];
        const double scale = metric_name(name, "blkin_host_", metric->name, metric->unit);

        if (!(series->present >> i & 1))
            continue;
        page_begin(page, metric->is_counter ? PAGE_COUNTER : PAGE_GAUGE, "As the kernel has it.",
                   name, metric->is_counter ? "_total" : "");
        board_print_labels(page, series);
        page_end_whole(page, series->values[i], scale);
    }
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

static void board_print_views(struct page *page, const struct sample_series *series)
{
    const struct host_interval interval = {
        .from = (uint64_t)series->before_ns,
        .to = (uint64_t)series->time_ns,
        .before = series->before,
        .after = series->values,
        .find = find_metric,
        .context = series,
    };
    size_t count;
    const struct host_view *views = host_views(&count);

    for (size_t i = 0; series->before_ns && i < count; i++) {
        char name[METRIC_NAME_MAX];
        double value;

        if (!view_is_shown(&views[i]) || strcmp(series->group, views[i].group) != 0 ||
            !host_view_value(&views[i], &interval, &value))
            continue;
        value *= view_name(name, "blkin_host_", &views[i]);
        page_begin(page, PAGE_GAUGE, "Between the two latest samples.", name, "");
        board_print_labels(page, series);
        page_end(page, value);
    }
}

char *host_board_page(void *context)
{
    struct host_board *board = context;
    const struct sample_series *series;
    struct printer text = {.has_failed = false};
    struct page page = {.count = 0};

    pthread_mutex_lock(&board->lock);
    table_for_each(series, samples_all(board->samples), in_table)
    {
        board_print_metrics(&page, series);
        board_print_views(&page, series);
    }
    if (board->fleet)
        fleet_page(&page, board->fleet, board->latest_ns);
    pthread_mutex_unlock(&board->lock);
    page_print(&page, &text);
    return print_end(&text);
}

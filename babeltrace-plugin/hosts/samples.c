/*
 * Samples of hosts, one after the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "samples.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>

struct samples {
    uint64_t max_bytes;
    samples_point_fn *point;
    void (*gone)(void *context);
    void *context;
    uint64_t bytes;
    uint64_t no_room;
    struct table series;
};

static uint64_t series_hash(uint64_t seed, struct text host, struct text group,
                            struct text instance)
{
    return hash_text(hash_text(hash_text(seed, host), group), instance);
}

struct samples *samples_new(uint64_t max_bytes, samples_point_fn *point, void (*gone)(void *),
                            void *context)
{
    struct samples *table = calloc(1, sizeof(*table));

    if (!table || !table_init(&table->series)) {
        free(table);
        return NULL;
    }
    table->max_bytes = max_bytes;
    table->point = point;
    table->gone = gone;
    table->context = context;
    return table;
}

static size_t sample_bytes(const struct sample *sample)
{
    size_t bytes = sizeof(struct sample_series) + 3 + sample->host.length + sample->group.length +
                   sample->instance.length;

    for (size_t i = 0; i < sample->count; i++)
        bytes += sample->metrics[i].name.length + sample->metrics[i].unit.length;
    return bytes + sample->count * (sizeof(struct sample_metric) + 2 * sizeof(uint64_t));
}

static void remove_series(struct samples *table, struct sample_series *series)
{
    if (table->gone)
        table->gone(table->context);
    table_remove(&table->series, &series->in_table);
    table->bytes -= series->bytes;
    free(series);
}

void samples_forget(struct samples *table, int64_t before_ns)
{
    struct sample_series *series;

    table_for_each(series, &table->series, in_table)
    {
        if (series->time_ns < before_ns)
            remove_series(table, series);
    }
}

void samples_free(struct samples *table)
{
    if (!table)
        return;
    samples_forget(table, INT64_MAX);
    table_destroy(&table->series, NULL);
    free(table);
}

/* ---- finding --------------------------------------------------------------------------------- */

struct sample_series *samples_find(const struct samples *table, struct text host, struct text group,
                                   struct text instance)
{
    const uint64_t hash = series_hash(table->series.seed, host, group, instance);
    struct sample_series *series;

    table_find(series, &table->series, hash, in_table,
               text_is(host, series->host) && text_is(group, series->group) &&
                   text_is(instance, series->instance));
    return series;
}

static bool has_metrics(const struct sample_series *series, const struct sample *sample)
{
    if (series->count != sample->count)
        return false;
    for (size_t i = 0; i < sample->count; i++) {
        const struct sample_metric *own = &series->metrics[i], *other = &sample->metrics[i];

        if (own->is_counter != other->is_counter || !text_equal(own->name, other->name) ||
            !text_equal(own->unit, other->unit))
            return false;
    }
    return true;
}

static char *copy_string(char **at, struct text text)
{
    char *copy = *at;

    *at = text_copy(copy, text);
    *(*at)++ = '\0';
    return copy;
}

/* One block of memory: itself, its numbers, its metrics, its texts. */
static struct sample_series *new_series(struct samples *table, const struct sample *sample)
{
    const size_t bytes = sample_bytes(sample);
    struct sample_series *series = malloc(bytes);
    char *at;

    if (!series)
        return NULL;
    *series = (struct sample_series){.count = sample->count, .bytes = bytes};
    series->values = (uint64_t *)(series + 1);
    series->before = series->values + sample->count;
    series->metrics = (struct sample_metric *)(series->before + sample->count);
    at = (char *)(series->metrics + sample->count);
    series->host = copy_string(&at, sample->host);
    series->group = copy_string(&at, sample->group);
    series->instance = copy_string(&at, sample->instance);
    for (size_t i = 0; i < sample->count; i++) {
        series->metrics[i].is_counter = sample->metrics[i].is_counter;
        series->metrics[i].name = text_keep(&at, sample->metrics[i].name);
        series->metrics[i].unit = text_keep(&at, sample->metrics[i].unit);
    }
    table_add(&table->series, &series->in_table,
              series_hash(table->series.seed, sample->host, sample->group, sample->instance));
    table->bytes += bytes;
    return series;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void give_points(struct samples *table, const struct sample_series *series)
{
    struct fleet_point point = {
        .host = text_of(series->host),
        .instance = text_of(series->instance),
        .start_ns = series->before_ns,
        .end_ns = series->time_ns,
    };

    for (size_t i = 0; i < series->count; i++) {
        const struct sample_metric *metric = &series->metrics[i];

        if (!(series->present & series->before_present & UINT64_C(1) << i))
            continue;
        if (metric->is_counter && series->values[i] < series->before[i])
            continue; /* the counter was reset: nobody knows its growth since the last sample */
        point.metric = metric->name;
        point.unit = metric->unit;
        point.is_counter = metric->is_counter;
        point.value =
            metric->is_counter ? series->values[i] - series->before[i] : series->before[i];
        table->point(table->context, &point);
    }
}

static void store(struct sample_series *series, const struct sample *sample)
{
    uint64_t *values = series->before;

    series->before = series->values;
    series->before_ns = series->time_ns;
    series->before_present = series->present;
    series->values = values;
    series->time_ns = sample->time_ns;
    series->period_ms = sample->period_ms;
    series->present = sample->present;
    if (sample->count)
        memcpy(values, sample->values, sample->count * sizeof(*values));
}

static bool has_nul(struct text text)
{
    return text.length && memchr(text.data, '\0', text.length);
}

/* More than two sessions of a host, or their order, make the same sample differ. */
#define SET_BACK_NS INT64_C(2000000000)

bool samples_is_set_back(const struct sample_series *series, const struct sample *sample)
{
    return sample->time_ns > 0 && sample->time_ns < series->time_ns - SET_BACK_NS;
}

bool samples_take(struct samples *table, const struct sample *sample)
{
    struct sample_series *series =
        samples_find(table, sample->host, sample->group, sample->instance);

    if (series && !has_metrics(series, sample)) { /* other metrics: a new series */
        remove_series(table, series);
        series = NULL;
    }
    if (series && sample->time_ns <= series->time_ns) {
        if (!samples_is_set_back(series, sample))
            return true;
        series->time_ns = 0; /* then there is none before */
    }
    if (!series) {
        if (table->bytes + sample_bytes(sample) > table->max_bytes ||
            sample->count > SAMPLE_METRICS_MAX || sample->time_ns <= 0 || has_nul(sample->host) ||
            has_nul(sample->group) || has_nul(sample->instance)) {
            table->no_room++;
            return true;
        }
        series = new_series(table, sample);
        if (!series)
            return false;
    }
    store(series, sample);
    if (series->before_ns)
        give_points(table, series);
    return true;
}

/* ---- what there is --------------------------------------------------------------------------- */

const struct table *samples_all(const struct samples *table)
{
    return &table->series;
}

uint64_t samples_no_room(const struct samples *table)
{
    return table->no_room;
}

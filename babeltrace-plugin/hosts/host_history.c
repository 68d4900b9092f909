/*
 * Parses names and values of samples, and stores samples in order of time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "host_tags.h"

#include <math.h>
#include <stdlib.h>

#define HISTORY_NAMES_BYTES 4096
#define PERIOD_MAX_MS       300000

/* ---- names ----------------------------------------------------------------------------------- */

/* Takes NAME:UNIT:KIND from names. Returns false for another form. */
static bool history_read_name(struct text *names, struct sample_metric *name)
{
    const struct text word = text_take(names, ' '); /* blanks are single */
    const char *colon;

    if (word.length < 5 || word.data[word.length - 2] != ':')
        return false;
    colon = memchr(word.data, ':', word.length - 2);
    if (!colon || colon == word.data)
        return false;
    name->name = (struct text){word.data, (size_t)(colon - word.data)};
    name->unit = (struct text){colon + 1, word.length - name->name.length - 3};
    name->is_counter = word.data[word.length - 1] == 'c';
    return name->is_counter || word.data[word.length - 1] == 'g';
}

static bool layout_read_names(struct group_layout *layout)
{
    struct text left = {layout->text, layout->length};

    while (left.length) {
        struct sample_metric name;

        if (layout->count == HISTORY_VALUES_MAX || !history_read_name(&left, &name))
            return false;
        layout->names[layout->count].offset = (uint32_t)(name.name.data - layout->text);
        layout->names[layout->count].length = (uint32_t)name.name.length;
        layout->counters |= (uint32_t)name.is_counter << layout->count;
        layout->count++;
    }
    return layout->count > 0;
}

/* Returns NULL if the names are invalid (*is_valid is false), or if there is no room. */
static const struct group_layout *get_layout(struct layouts *layouts, struct text names,
                                             bool *is_valid)
{
    struct group_layout *layout;

    *is_valid = names.length <= HISTORY_NAMES_BYTES;
    for (layout = layouts->first; layout; layout = layout->next) {
        if (text_equal((struct text){layout->text, layout->length}, names))
            return layout;
    }
    if (!*is_valid || layouts->count == LAYOUTS_MAX)
        return NULL;
    layout = calloc(1, sizeof(*layout) + names.length);
    if (!layout)
        return NULL;
    (void)text_copy(layout->text, names);
    layout->length = (uint32_t)names.length;
    *is_valid = layout_read_names(layout);
    if (!*is_valid) {
        free(layout);
        return NULL;
    }
    layout->next = layouts->first;
    layouts->first = layout;
    layouts->count++;
    return layout;
}

void layouts_free(struct layouts *layouts)
{
    while (layouts->first) {
        struct group_layout *next = layouts->first->next;

        free(layouts->first);
        layouts->first = next;
    }
    layouts->count = 0;
}

static int find_name(const void *context, const char *name, size_t length)
{
    const struct group_layout *layout = context;

    for (uint32_t i = 0; i < layout->count; i++) {
        if (layout->names[i].length == length &&
            memcmp(layout->text + layout->names[i].offset, name, length) == 0)
            return (int)i;
    }
    return -1;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Returns the number of values, up to max; 0: the text is invalid. */
static size_t history_read_values(struct text text, uint64_t *values, size_t max)
{
    size_t count = 0;

    while (text.length) {
        if (count == max || !text_read_number(text_take(&text, ' '), &values[count]))
            return 0;
        count++;
    }
    return count;
}

/* ---- samples --------------------------------------------------------------------------------- */

void history_free(struct history *history)
{
    free(history->samples);
    history->samples = NULL;
    history->count = history->room = 0;
}

/* Removes every second sample of the older half. The views of the samples that stay there are
 * computed again on demand, because their steps are longer now. */
static void thin_out(struct history *history)
{
    const size_t size = history_sample_size(history);
    const uint32_t half = history->count / 2;
    uint32_t to = 1;

    for (uint32_t i = 2; i < history->count; i += i < half ? 2 : 1) {
        struct history_sample *sample = history_at(history, i);

        if (i <= half) {
            sample->is_reset |= history_at(history, i - 1)->is_reset;
            sample->is_seen = false;
        }
        memmove(history_at(history, to++), sample, size);
    }
    history->count = to;
}

/* Returns false when out of memory. */
static bool history_begin_again(struct history *history, uint32_t value_count)
{
    history->count = 0;
    if (history->samples && history->value_count == value_count)
        return true;
    history_free(history);
    history->value_count = value_count;
    history->samples = malloc(HISTORY_SAMPLES * history_sample_size(history));
    if (history->samples)
        history->room = (uint32_t)(HISTORY_SAMPLES * history_sample_size(history));
    return history->samples != NULL;
}

/* Returns true if a counter is smaller than before. */
static bool has_smaller_counter(const struct history *history, const struct history_sample *before,
                                const uint64_t *values)
{
    if (!history->layout)
        return false;
    for (uint32_t i = 0; i < history->value_count; i++) {
        if (history->layout->counters >> i & 1 && values[i] < before->values[i])
            return true;
    }
    return false;
}

static bool history_append(struct history *history, int64_t time_ns, bool is_other,
                           const uint64_t *values)
{
    const struct history_sample *last =
        history->count ? history_at(history, history->count - 1) : NULL;
    const bool has_reset = last && has_smaller_counter(history, last, values);
    struct history_sample *sample;

    if (history->count == HISTORY_SAMPLES)
        thin_out(history);
    sample = history_at(history, history->count++);
    *sample = (struct history_sample){.time_ns = time_ns, .is_reset = is_other || has_reset};
    memcpy(sample->values, values, history->value_count * sizeof(*values));
    return has_reset;
}

/* Returns false if the names are invalid. *why: the reason. */
static bool use_names(struct history *history, struct layouts *layouts, struct text names,
                      uint32_t value_count, enum history_added *why)
{
    const struct group_layout *layout;
    bool is_valid;

    if (!names.length)
        return true;
    layout = get_layout(layouts, names, &is_valid);
    if (!layout || layout->count != value_count) {
        *why = layout || !is_valid ? HISTORY_INVALID : HISTORY_NO_ROOM;
        return false;
    }
    if (history->layout && history->layout != layout)
        history->count = 0;
    history->layout = layout;
    return true;
}

enum history_added history_add(struct history *history, struct layouts *layouts,
                               const struct event *event, int64_t time_ns)
{
    const bool is_other = event->thread != history->thread;
    uint64_t values[HISTORY_VALUES_MAX];
    const uint32_t count = (uint32_t)history_read_values(event->values, values, HISTORY_VALUES_MAX);
    enum history_added why = HISTORY_INVALID;

    if (!count || !use_names(history, layouts, event->names, count, &why))
        return why;
    if (history->count && !is_other && event->sequence == history->sequence)
        return HISTORY_TWICE;
    if (!history->samples || count != history->value_count || time_ns <= history_last_ns(history)) {
        if (history->layout && history->layout->count != count)
            history->layout = NULL; /* the names have changed, and the new names are missing */
        if (!history_begin_again(history, count))
            return HISTORY_NO_ROOM;
    }
    history->thread = event->thread;
    history->sequence = event->sequence;
    history->period_ns =
        (event->period_ms < PERIOD_MAX_MS ? event->period_ms : PERIOD_MAX_MS) * 1000000;
    if (history_append(history, time_ns, is_other, values))
        return HISTORY_RESET;
    return history->layout ? HISTORY_ADDED : HISTORY_UNNAMED;
}

/* ---- queries --------------------------------------------------------------------------------- */

/* a is not after b. The difference may exceed int64_t. */
static uint64_t history_distance(int64_t a, int64_t b)
{
    return (uint64_t)b - (uint64_t)a;
}

static void history_compute_views(const struct history *history,
                                  const struct history_sample *before,
                                  struct history_sample *sample)
{
    const struct host_interval interval = {
        .from = 0,
        .to = history_distance(before->time_ns, sample->time_ns),
        .before = before->values,
        .after = sample->values,
        .find = find_name,
        .context = history->layout,
    };

    for (unsigned i = 0; i < HISTORY_VIEWS_MAX; i++) {
        double value;

        sample->views[i] =
            history->views[i] && host_view_value(history->views[i], &interval, &value)
                ? (float)value
                : NAN;
    }
    sample->is_seen = true;
}

/* Returns the time that the step between two samples has in common with the time from start_ns to
 * end_ns. end_ns is later than start_ns. */
static uint64_t overlap(const struct history_sample *before, const struct history_sample *sample,
                        int64_t start_ns, int64_t end_ns)
{
    const int64_t from = before->time_ns > start_ns ? before->time_ns : start_ns;
    const int64_t until = sample->time_ns < end_ns ? sample->time_ns : end_ns;

    return until > from ? history_distance(from, until) : 0;
}

static void take_in(struct range *range, double value, double weight)
{
    if (!range->is_known || value < range->least)
        range->least = value;
    if (!range->is_known || value > range->most)
        range->most = value;
    range->is_known = true;
    range->total += value;
    range->mean += value * weight; /* a sum, which history_range() divides by the weights */
}

struct range history_range(struct history *history, unsigned view, int64_t start_ns, int64_t end_ns)
{
    struct range range = {.is_known = false};
    const int64_t last_ns = end_ns > start_ns ? end_ns : start_ns + (start_ns < INT64_MAX);
    const uint64_t usual = HISTORY_STEP_PERIODS * history->period_ns;
    const uint64_t longest =
        history_distance(start_ns, last_ns) > usual ? history_distance(start_ns, last_ns) : usual;
    double weights = 0;

    for (uint32_t i = history->layout ? history->count : 0; i-- > 1;) {
        const struct history_sample *before = history_at(history, i - 1);
        struct history_sample *sample = history_at(history, i);
        const uint64_t common = overlap(before, sample, start_ns, last_ns);

        if (sample->time_ns <= start_ns)
            break;
        if (!common || sample->is_reset ||
            history_distance(before->time_ns, sample->time_ns) > longest)
            continue;
        if (!sample->is_seen)
            history_compute_views(history, before, sample);
        if (isnan(sample->views[view]))
            continue;
        if (!range.is_known)
            range.until_ns = sample->time_ns;
        range.from_ns = before->time_ns;
        take_in(&range, (double)sample->views[view], (double)common);
        weights += (double)common;
    }
    if (range.is_known)
        range.mean /= weights;
    return range;
}

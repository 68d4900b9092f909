/*
 * Writes and reads statistics as JSON.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "statistics_document.h"

#include "babeltrace-plugin/encode/json.h"

#include <inttypes.h>
#include <math.h>

const struct statistics_array statistics_arrays[] = {
    [STATISTICS_ROWS] = {"rows", "service", "name", "spans"},
    [STATISTICS_EDGES] = {"edges", "client", "server", "calls"},
};

/* ---- writing --------------------------------------------------------------------------------- */

void statistics_print_count(struct printer *printer, const char *before, uint64_t count)
{
    print_string(printer, before);
    print(printer, "%" PRIu64, count & INT64_MAX);
}

static void print_name(struct printer *printer, const char *key, const struct names *names,
                       uint32_t id)
{
    const struct text name = names_text(names, id);
    bool cut;

    print(printer, "\"%s\":", key);
    if (id == NAMES_OTHER) {
        print_string(printer, "null");
        return;
    }
    if (printer->has_failed || !buffer_reserve(&printer->buffer, JSON_STRING_MAX(name.length))) {
        printer->has_failed = true;
        return;
    }
    printer->buffer.length = (size_t)(json_put_string(printer->buffer.data + printer->buffer.length,
                                                      name, name.length, '|', &cut) -
                                      printer->buffer.data);
}

/* An empty histogram is left out. */
static void print_histogram(struct printer *printer, const char *before,
                            const struct histogram *histogram)
{
    struct histogram_bucket bucket = {0};
    const char *comma = "";

    if (histogram->count == 0)
        return;
    print_string(printer, before);
    statistics_print_count(printer, "{\"count\":", histogram->count);
    statistics_print_count(printer, ",\"zeros\":", histogram->zeros);
    print(printer, ",\"sum\":%.17g", isfinite(histogram->sum) ? histogram->sum : 0);
    print(printer, ",\"min\":%" PRId64 ",\"max\":%" PRId64 ",\"buckets\":[", histogram->min,
          histogram->max);
    while (histogram_next(histogram, HISTOGRAM_SCALE, &bucket)) {
        print(printer, "%s%" PRId32, comma, bucket.index);
        statistics_print_count(printer, ",", bucket.count);
        comma = ",";
    }
    print_string(printer, "]}");
}

void statistics_print_row(struct printer *printer, const struct statistics *statistics,
                          enum statistics_kind kind, size_t i)
{
    const struct statistics_row *row = statistics_at(statistics, kind, i);
    const struct names *names = statistics_names(statistics);
    const struct statistics_array *array = &statistics_arrays[kind];

    print_string(printer, "{");
    print_name(printer, array->first, names, row->service);
    print_string(printer, ",");
    print_name(printer, array->second, names, row->name);
    print(printer, ",\"%s\":", array->count);
    statistics_print_count(printer, "", row->spans);
    statistics_print_count(printer, ",\"errors\":", row->errors);
    print_histogram(printer, ",\"duration\":", &row->duration);
    print_histogram(printer, ",\"self\":", &row->self);
    print_string(printer, "}");
}

void statistics_print(struct printer *printer, const struct statistics *statistics)
{
    uint64_t spans = 0, errors = 0;

    for (size_t i = 0; i < statistics_size(statistics, STATISTICS_ROWS); i++) {
        spans += statistics_at(statistics, STATISTICS_ROWS, i)->spans;
        errors += statistics_at(statistics, STATISTICS_ROWS, i)->errors;
    }
    statistics_print_count(printer, ",\"spans\":", spans);
    statistics_print_count(printer, ",\"errors\":", errors);
    for (enum statistics_kind kind = 0; kind < STATISTICS_KINDS; kind++) {
        print(printer, ",\"%s\":[", statistics_arrays[kind].array);
        for (size_t i = 0; i < statistics_size(statistics, kind); i++) {
            print_string(printer, i ? ",\n" : "\n");
            statistics_print_row(printer, statistics, kind, i);
        }
        print_string(printer, "]");
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

struct statistics_reading {
    struct statistics *statistics;
    struct names *names;
    int scale;
    enum statistics_change change;
};

uint64_t statistics_count_at(const json_t *object, const char *key)
{
    const json_int_t value = json_integer_value(json_object_get(object, key));

    return value > 0 ? (uint64_t)value : 0;
}

static uint32_t name_at(const struct statistics_reading *reading, const json_t *object,
                        const char *key)
{
    const json_t *name = json_object_get(object, key);

    return json_is_string(name) ? names_id(reading->names, (struct text){json_string_value(name),
                                                                         json_string_length(name)})
                                : NAMES_OTHER;
}

/* Returns false if the array is invalid, or when out of memory. */
static bool read_buckets(struct histogram *histogram, int scale, const json_t *array)
{
    for (size_t i = 0; i + 1 < json_array_size(array); i += 2) {
        const json_int_t index = json_integer_value(json_array_get(array, i));
        const json_int_t count = json_integer_value(json_array_get(array, i + 1));
        const struct histogram_bucket bucket = {(int32_t)index, (uint64_t)count};

        if (index < INT32_MIN || index > INT32_MAX || count < 0 ||
            !histogram_add_bucket(histogram, scale, &bucket))
            return false;
    }
    return true;
}

/* A missing histogram is empty. After any result, the caller calls histogram_clear(). */
static bool read_histogram(struct histogram *histogram, int scale, const json_t *json)
{
    *histogram = (struct histogram){.count = 0};
    if (!json)
        return true;
    if (!json_is_object(json) || !read_buckets(histogram, scale, json_object_get(json, "buckets")))
        return false;
    histogram->count = statistics_count_at(json, "count");
    histogram->zeros = statistics_count_at(json, "zeros");
    histogram->sum = json_number_value(json_object_get(json, "sum"));
    histogram->min = json_integer_value(json_object_get(json, "min"));
    histogram->max = json_integer_value(json_object_get(json, "max"));
    return isfinite(histogram->sum);
}

static bool change_histogram(enum statistics_change change, struct histogram *to,
                             const struct histogram *by)
{
    if (change == STATISTICS_ADD)
        return histogram_merge(to, by);
    histogram_remove(to, by);
    return true;
}

static void change_count(enum statistics_change change, uint64_t *count, uint64_t by)
{
    *count = change == STATISTICS_ADD ? *count + by : *count - (by < *count ? by : *count);
}

/* Returns false when out of memory. */
static bool change_row(const struct statistics_reading *reading, enum statistics_kind kind,
                       const json_t *json, const struct histogram *duration,
                       const struct histogram *self)
{
    const struct statistics_array *array = &statistics_arrays[kind];
    const uint64_t count = statistics_count_at(json, array->count);
    struct statistics_row *row =
        statistics_add(reading->statistics, kind, name_at(reading, json, array->first),
                       name_at(reading, json, array->second));

    if (!row || !change_histogram(reading->change, &row->duration, duration) ||
        !change_histogram(reading->change, &row->self, self))
        return false;
    change_count(reading->change, &row->spans, count);
    change_count(reading->change, &row->ever, count);
    change_count(reading->change, &row->errors, statistics_count_at(json, "errors"));
    return true;
}

static bool read_row(const struct statistics_reading *reading, enum statistics_kind kind,
                     const json_t *json)
{
    struct histogram duration = {.count = 0}, self = {.count = 0};
    const bool done =
        json_is_object(json) &&
        read_histogram(&duration, reading->scale, json_object_get(json, "duration")) &&
        read_histogram(&self, reading->scale, json_object_get(json, "self")) &&
        (!reading->statistics || change_row(reading, kind, json, &duration, &self));

    histogram_clear(&duration);
    histogram_clear(&self);
    return done;
}

bool statistics_read(struct statistics *statistics, struct names *names, const json_t *document,
                     enum statistics_change change, struct error *error)
{
    const json_int_t scale = json_integer_value(json_object_get(document, "scale"));
    const struct statistics_reading reading = {statistics, names, (int)scale, change};

    if (scale < 0 || scale > 20)
        return error_set(error, "\"scale\": expected 0 to 20");
    for (enum statistics_kind kind = 0; kind < STATISTICS_KINDS; kind++) {
        const char *what = statistics_arrays[kind].array;
        const json_t *array = json_object_get(document, what);

        for (size_t i = 0; i < json_array_size(array); i++) {
            if (!read_row(&reading, kind, json_array_get(array, i)))
                return error_set(error,
                                 "\"%s\", the one at %zu: expected one as `blkin work --root` "
                                 "writes it",
                                 what, i);
        }
    }
    return true;
}

/*
 * Statistics as JSON: written, and read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "statistics_document.h"

#include "babeltrace-plugin/encode/json.h"

#include <inttypes.h>
#include <math.h>

/* ---- writing --------------------------------------------------------------------------------- */

void statistics_print_count(struct printer *printer, const char *before, uint64_t count)
{
    print_string(printer, before);
    print(printer, "%" PRIu64, count & INT64_MAX);
}

static void print_real(struct printer *printer, const char *before, double value)
{
    print_string(printer, before);
    print(printer, "%.17g", isfinite(value) ? value : 0);
}

static void print_name(struct printer *printer, const char *before, const struct names *names,
                       uint32_t id)
{
    const struct text name = names_text(names, id);
    bool cut;

    print_string(printer, before);
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

static void print_histogram(struct printer *printer, const char *before,
                            const struct histogram *histogram)
{
    struct histogram_bucket bucket = {0};
    const char *comma = "";

    print_string(printer, before);
    statistics_print_count(printer, "{\"count\":", histogram->count);
    statistics_print_count(printer, ",\"zeros\":", histogram->zeros);
    print_real(printer, ",\"sum\":", histogram->sum);
    print(printer, ",\"min\":%" PRId64 ",\"max\":%" PRId64 ",\"buckets\":[", histogram->min,
          histogram->max);
    while (histogram_next(histogram, HISTOGRAM_SCALE, &bucket)) {
        print(printer, "%s%" PRId32, comma, bucket.index);
        statistics_print_count(printer, ",", bucket.count);
        comma = ",";
    }
    print_string(printer, "]}");
}

static void print_row(struct printer *printer, const struct names *names,
                      const struct statistics_row *row)
{
    print_name(printer, "{\"service\":", names, row->service);
    print_name(printer, ",\"name\":", names, row->name);
    statistics_print_count(printer, ",\"spans\":", row->spans);
    statistics_print_count(printer, ",\"errors\":", row->errors);
    print_histogram(printer, ",\"duration\":", &row->duration);
    print_histogram(printer, ",\"self\":", &row->self);
    print_string(printer, "}");
}

static void print_edge(struct printer *printer, const struct names *names,
                       const struct statistics_edge *edge)
{
    print_name(printer, "{\"client\":", names, edge->caller);
    print_name(printer, ",\"server\":", names, edge->callee);
    statistics_print_count(printer, ",\"calls\":", edge->calls);
    statistics_print_count(printer, ",\"errors\":", edge->errors);
    print_histogram(printer, ",\"duration\":", &edge->duration);
    print_string(printer, "}");
}

void statistics_print(struct printer *printer, const struct statistics *statistics)
{
    const struct names *names = statistics_names(statistics);
    uint64_t spans = 0, errors = 0;

    for (size_t i = 0; i < statistics_rows(statistics); i++) {
        spans += statistics_row(statistics, i)->spans;
        errors += statistics_row(statistics, i)->errors;
    }
    statistics_print_count(printer, "\"spans\":", spans);
    statistics_print_count(printer, ",\"errors\":", errors);
    print(printer, ",\"scale\":%d,\"rows\":[", HISTOGRAM_SCALE);
    for (size_t i = 0; i < statistics_rows(statistics); i++) {
        print_string(printer, i ? ",\n" : "\n");
        print_row(printer, names, statistics_row(statistics, i));
    }
    print_string(printer, "],\"edges\":[");
    for (size_t i = 0; i < statistics_edges(statistics); i++) {
        print_string(printer, i ? ",\n" : "\n");
        print_edge(printer, names, statistics_edge(statistics, i));
    }
    print_string(printer, "]");
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

/* Returns false if it is none, or when out of memory. */
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

static bool change_histogram(const struct statistics_reading *reading, struct histogram *to,
                             const json_t *json)
{
    struct histogram histogram = {.count = 0};
    bool done = json_is_object(json) &&
                read_buckets(&histogram, reading->scale, json_object_get(json, "buckets"));

    histogram.count = statistics_count_at(json, "count");
    histogram.zeros = statistics_count_at(json, "zeros");
    histogram.sum = json_number_value(json_object_get(json, "sum"));
    histogram.min = json_integer_value(json_object_get(json, "min"));
    histogram.max = json_integer_value(json_object_get(json, "max"));
    done = done && isfinite(histogram.sum);
    if (done && reading->change == STATISTICS_REMOVE)
        histogram_remove(to, &histogram);
    else
        done = done && histogram_merge(to, &histogram);
    histogram_clear(&histogram);
    return done;
}

static void change_count(const struct statistics_reading *reading, uint64_t *count,
                         const json_t *object, const char *key)
{
    const uint64_t value = statistics_count_at(object, key);

    if (reading->change == STATISTICS_ADD)
        *count += value;
    else
        *count -= value < *count ? value : *count;
}

static bool change_row(const struct statistics_reading *reading, const json_t *json)
{
    struct statistics_row *row = statistics_row_of(
        reading->statistics, name_at(reading, json, "service"), name_at(reading, json, "name"));

    if (!row || !change_histogram(reading, &row->duration, json_object_get(json, "duration")) ||
        !change_histogram(reading, &row->self, json_object_get(json, "self")))
        return false;
    change_count(reading, &row->spans, json, "spans");
    change_count(reading, &row->ever, json, "spans");
    change_count(reading, &row->errors, json, "errors");
    return true;
}

static bool change_edge(const struct statistics_reading *reading, const json_t *json)
{
    struct statistics_edge *edge = statistics_edge_of(
        reading->statistics, name_at(reading, json, "client"), name_at(reading, json, "server"));

    if (!edge || !change_histogram(reading, &edge->duration, json_object_get(json, "duration")))
        return false;
    change_count(reading, &edge->calls, json, "calls");
    change_count(reading, &edge->errors, json, "errors");
    return true;
}

typedef bool change_fn(const struct statistics_reading *reading, const json_t *json);

static bool change_all(const struct statistics_reading *reading, const json_t *document,
                       const char *what, change_fn *change, struct error *error)
{
    const json_t *array = json_object_get(document, what), *item;
    size_t i;

    json_array_foreach(array, i, item)
    {
        if (!change(reading, item))
            return error_set(error,
                             "\"%s\", the one at %zu: expected one as `blkin work --root` writes "
                             "it",
                             what, i);
    }
    return true;
}

bool statistics_read(struct statistics *statistics, struct names *names, const json_t *document,
                     enum statistics_change change, struct error *error)
{
    const json_int_t scale = json_integer_value(json_object_get(document, "scale"));
    const struct statistics_reading reading = {statistics, names, (int)scale, change};

    if (scale < 0 || scale > 20)
        return error_set(error, "\"scale\": expected 0 to 20");
    return change_all(&reading, document, "rows", change_row, error) &&
           change_all(&reading, document, "edges", change_edge, error);
}

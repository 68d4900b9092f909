/*
 * What all workers have counted, as a document: written, and read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "merged.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/encode/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

/*
 * Anybody may have written what was added up. A reader of JSON takes no integer above 2^63 - 1 and
 * no number that is not finite: one of them would make all of the document, and so the root's
 * state, unreadable.
 */
static void put_sum(struct printer *printer, const char *before, uint64_t sum)
{
    print_string(printer, before);
    print(printer, "%" PRIu64, sum & INT64_MAX);
}

static void put_real(struct printer *printer, const char *before, double value)
{
    print_string(printer, before);
    print(printer, "%.17g", isfinite(value) ? value : 0);
}

/* before: what stands before the value, such as ",\"name\":". */
static void put_name(struct printer *printer, const char *before, const struct names *names,
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

static void put_time(struct printer *printer, const char *before, int64_t time_ns)
{
    char date[DATE_MAX];

    print_string(printer, before);
    if (date_write(time_ns, date))
        print(printer, "\"%s\"", date);
    else
        print_string(printer, "null");
}

static void document_put_histogram(struct printer *printer, const char *key,
                                   const struct histogram *histogram)
{
    struct histogram_bucket bucket = {0};
    const char *comma = "";

    print(printer, ",\"%s\":{", key);
    put_sum(printer, "\"count\":", histogram->count);
    put_sum(printer, ",\"zeros\":", histogram->zeros);
    put_real(printer, ",\"sum\":", histogram->sum);
    print(printer, ",\"min\":%" PRId64 ",\"max\":%" PRId64 ",\"buckets\":[", histogram->min,
          histogram->max);
    while (histogram_next(histogram, HISTOGRAM_SCALE, &bucket)) {
        print(printer, "%s%" PRId32, comma, bucket.index);
        put_sum(printer, ",", bucket.count);
        comma = ",";
    }
    print_string(printer, "]}");
}

static void document_put_row(struct printer *printer, const struct merged *merged, size_t i)
{
    const struct statistics_row *row = statistics_row(merged->statistics, i);

    put_name(printer, "{\"service\":", merged->names, row->service);
    put_name(printer, ",\"name\":", merged->names, row->name);
    put_sum(printer, ",\"spans\":", row->spans);
    put_sum(printer, ",\"errors\":", row->errors);
    document_put_histogram(printer, "duration", &row->duration);
    document_put_histogram(printer, "self", &row->self);
    print_string(printer, "}");
}

static void put_edge(struct printer *printer, const struct merged *merged, size_t i)
{
    const struct statistics_edge *edge = statistics_edge(merged->statistics, i);

    put_name(printer, "{\"client\":", merged->names, edge->caller);
    put_name(printer, ",\"server\":", merged->names, edge->callee);
    put_sum(printer, ",\"calls\":", edge->calls);
    put_sum(printer, ",\"errors\":", edge->errors);
    document_put_histogram(printer, "duration", &edge->duration);
    print_string(printer, "}");
}

static void put_counts(struct printer *printer, const struct work_counts *counts)
{
    for (size_t i = 0; i < work_counters_count; i++) {
        const struct work_counter *counter = &work_counters[i];
        const double ratio = work_counter_ratio(counter, counts);

        print(printer, ",\"%s\":", counter->name);
        if (counter->kind == WORK_RATIO)
            print(printer, "%.3f", isfinite(ratio) ? ratio : 0);
        else
            put_sum(printer, "", work_counter_value(counter, counts));
    }
}

static void put_worker(struct printer *printer, const struct merged *merged, size_t i,
                       int64_t now_ns)
{
    const struct merged_worker *worker = &merged->workers[i];
    char instance[JSON_STRING_MAX(DELTAS_NAME_MAX)];
    bool cut;
    char *end = json_put_string(instance, text_of(worker->instance), DELTAS_NAME_MAX, '|', &cut);

    print_string(printer, "{\"instance\":");
    print_text(printer, instance, (size_t)(end - instance));
    put_time(printer, ",\"heard\":", worker->heard_ns);
    print(printer, ",\"is_there\":%s", worker_is_there(worker, now_ns) ? "true" : "false");
    put_counts(printer, &worker->counts);
    print_string(printer, "}");
}

static void put_totals(struct printer *printer, const struct merged *merged)
{
    uint64_t spans = 0, errors = 0;

    for (size_t i = 0; i < statistics_rows(merged->statistics); i++) {
        spans += statistics_row(merged->statistics, i)->spans;
        errors += statistics_row(merged->statistics, i)->errors;
    }
    put_time(printer, "{\"blkin\":\"statistics\",\"version\":\"" BLKIN_RELEASE "\",\"from\":",
             merged->from_ns);
    put_time(printer, ",\"to\":", merged->to_ns);
    print(printer, ",\"seconds\":%.3f", (double)(merged->to_ns - merged->from_ns) / 1e9);
    put_sum(printer, ",\"spans\":", spans);
    put_sum(printer, ",\"errors\":", errors);
    print(printer, ",\"scale\":%d", HISTOGRAM_SCALE);
}

char *merged_document(const struct merged *merged, int64_t now_ns)
{
    struct printer printer = {0};

    put_totals(&printer, merged);
    print_string(&printer, ",\"rows\":[");
    for (size_t i = 0; i < statistics_rows(merged->statistics); i++) {
        print_string(&printer, i ? ",\n" : "\n");
        document_put_row(&printer, merged, i);
    }
    print_string(&printer, "],\"edges\":[");
    for (size_t i = 0; i < statistics_edges(merged->statistics); i++) {
        print_string(&printer, i ? ",\n" : "\n");
        put_edge(&printer, merged, i);
    }
    print_string(&printer, "],\"workers\":[");
    for (size_t i = 0; i < merged->worker_count; i++) {
        print_string(&printer, i ? ",\n" : "\n");
        put_worker(&printer, merged, i, now_ns);
    }
    print_string(&printer, "],\"forgotten\":{\"instance\":null");
    put_counts(&printer, &merged->forgotten);
    put_sum(&printer, "},\"messages\":", merged->messages);
    put_sum(&printer, ",\"refused\":", merged->refused);
    put_sum(&printer, ",\"gaps\":", merged->gaps);
    print_string(&printer, "}\n");
    return print_end(&printer);
}

/* ---- reading --------------------------------------------------------------------------------- */

bool merged_is_document(const json_t *json)
{
    const char *kind = json_string_value(json_object_get(json, "blkin"));

    return kind && strcmp(kind, "statistics") == 0;
}

static uint64_t count_of(const json_t *json)
{
    const json_int_t value = json_integer_value(json);

    return value > 0 ? (uint64_t)value : 0;
}

static uint64_t count_at(const json_t *object, const char *key)
{
    return count_of(json_object_get(object, key));
}

static uint32_t name_at(const struct merged *merged, const json_t *object, const char *key)
{
    const json_t *name = json_object_get(object, key);

    return json_is_string(name) ? names_id(merged->names, (struct text){json_string_value(name),
                                                                        json_string_length(name)})
                                : NAMES_OTHER;
}

/* Returns false if it is none, or when out of memory. */
static bool document_read_buckets(struct histogram *histogram, int scale, const json_t *array)
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

static bool add_histogram(struct histogram *to, int scale, const json_t *json)
{
    struct histogram histogram = {.count = 0};
    bool done = json_is_object(json) &&
                document_read_buckets(&histogram, scale, json_object_get(json, "buckets"));

    histogram.count = count_at(json, "count");
    histogram.zeros = count_at(json, "zeros");
    histogram.sum = json_number_value(json_object_get(json, "sum"));
    histogram.min = json_integer_value(json_object_get(json, "min"));
    histogram.max = json_integer_value(json_object_get(json, "max"));
    done = done && isfinite(histogram.sum) && histogram_merge(to, &histogram);
    histogram_clear(&histogram);
    return done;
}

static bool add_row(struct merged *merged, int scale, const json_t *json)
{
    struct statistics_row *row = statistics_row_of(
        merged->statistics, name_at(merged, json, "service"), name_at(merged, json, "name"));

    if (!row || !add_histogram(&row->duration, scale, json_object_get(json, "duration")) ||
        !add_histogram(&row->self, scale, json_object_get(json, "self")))
        return false;
    row->spans += count_at(json, "spans");
    row->ever += count_at(json, "spans");
    row->errors += count_at(json, "errors");
    return true;
}

static bool add_edge(struct merged *merged, int scale, const json_t *json)
{
    struct statistics_edge *edge = statistics_edge_of(
        merged->statistics, name_at(merged, json, "client"), name_at(merged, json, "server"));

    if (!edge || !add_histogram(&edge->duration, scale, json_object_get(json, "duration")))
        return false;
    edge->calls += count_at(json, "calls");
    edge->errors += count_at(json, "errors");
    return true;
}

static int64_t time_at(const json_t *object, const char *key)
{
    return date_read(json_string_value(json_object_get(object, key)));
}

static struct work_counts read_counts(const json_t *json)
{
    struct work_counts counts = {0};

    for (size_t i = 0; i < work_counters_count; i++) {
        const struct work_counter *counter = &work_counters[i];
        void *value = (char *)&counts + counter->offset;

        if (counter->kind == WORK_RATIO)
            *(double *)value = json_number_value(json_object_get(json, counter->name));
        else
            *(uint64_t *)value = count_at(json, counter->name);
    }
    return counts;
}

static bool add_worker(struct merged *merged, int scale, const json_t *json)
{
    const char *instance = json_string_value(json_object_get(json, "instance"));
    const struct work_counts counts = read_counts(json);

    (void)scale;
    if (!instance)
        return false;
    merged_add_worker(merged, instance, &counts, time_at(json, "heard"));
    return true;
}

typedef bool add_fn(struct merged *merged, int scale, const json_t *json);

static bool add_all(struct merged *merged, const json_t *document, const char *what, add_fn *add,
                    struct error *error)
{
    const json_t *array = json_object_get(document, what);
    const int scale = (int)json_integer_value(json_object_get(document, "scale"));

    for (size_t i = 0; i < json_array_size(array); i++) {
        if (add(merged, scale, json_array_get(array, i)))
            continue;
        return error_set(error,
                         "\"%s\", the one at %zu: expected one as `blkin work --root` writes it",
                         what, i);
    }
    return true;
}

bool merged_add_document(struct merged *merged, const json_t *document, struct error *error)
{
    const int64_t from_ns = time_at(document, "from"), to_ns = time_at(document, "to");
    const json_int_t scale = json_integer_value(json_object_get(document, "scale"));
    struct work_counts forgotten;

    if (!merged_is_document(document) || scale < 0 || scale > 20)
        return error_set(error,
                         "expected a document of `blkin work --root`: {\"blkin\": \"statistics\"");
    if (from_ns && to_ns >= from_ns)
        merged_widen(merged, from_ns, to_ns);
    forgotten = read_counts(json_object_get(document, "forgotten"));
    work_counts_add(&merged->forgotten, &forgotten);
    merged->messages += count_at(document, "messages");
    merged->refused += count_at(document, "refused");
    merged->gaps += count_at(document, "gaps");
    return add_all(merged, document, "rows", add_row, error) &&
           add_all(merged, document, "edges", add_edge, error) &&
           add_all(merged, document, "workers", add_worker, error);
}

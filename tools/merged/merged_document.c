/*
 * What workers have counted, as a document: written, and read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "merged.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/encode/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows and edges -------------------------------------------------------------------------- */

static const struct kind {
    const char *array, *first, *second, *count;
} kinds[] = {
    [STATISTICS_ROWS] = {"rows", "service", "name", "spans"},
    [STATISTICS_EDGES] = {"edges", "client", "server", "calls"},
};

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

static void put_name(struct printer *printer, const char *key, const struct names *names,
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

static void put_time(struct printer *printer, const char *before, int64_t time_ns)
{
    char date[DATE_MAX];

    print_string(printer, before);
    if (date_write(time_ns, date))
        print(printer, "\"%s\"", date);
    else
        print_string(printer, "null");
}

/* An empty one is left out. */
static void document_put_histogram(struct printer *printer, const char *key,
                                   const struct histogram *histogram)
{
    struct histogram_bucket bucket = {0};
    const char *comma = "";

    if (histogram->count == 0)
        return;
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

static void document_put_row(struct printer *printer, const struct statistics *statistics,
                             enum statistics_kind kind, size_t i)
{
    const struct statistics_row *row = statistics_at(statistics, kind, i);
    const struct names *names = statistics_names(statistics);

    print_string(printer, "{");
    put_name(printer, kinds[kind].first, names, row->service);
    print_string(printer, ",");
    put_name(printer, kinds[kind].second, names, row->name);
    print(printer, ",\"%s\":", kinds[kind].count);
    put_sum(printer, "", row->spans);
    put_sum(printer, ",\"errors\":", row->errors);
    document_put_histogram(printer, "duration", &row->duration);
    document_put_histogram(printer, "self", &row->self);
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

static void put_worker(struct printer *printer, const char *instance,
                       const struct work_counts *counts)
{
    char text[JSON_STRING_MAX(WORKER_NAME_MAX)];
    bool cut;
    char *end = json_put_string(text, text_of(instance), WORKER_NAME_MAX, '|', &cut);

    print_string(printer, "{\"instance\":");
    print_text(printer, text, (size_t)(end - text));
    put_counts(printer, counts);
}

static void put_head(struct printer *printer, int64_t from_ns, int64_t to_ns)
{
    put_time(printer,
             "{\"blkin\":\"statistics\",\"version\":\"" BLKIN_RELEASE "\",\"from\":", from_ns);
    put_time(printer, ",\"to\":", to_ns);
    print(printer, ",\"seconds\":%.3f", (double)(to_ns - from_ns) / 1e9);
    print(printer, ",\"scale\":%d", HISTOGRAM_SCALE);
}

static void put_totals(struct printer *printer, const struct statistics *statistics)
{
    uint64_t spans = 0, errors = 0;

    for (size_t i = 0; i < statistics_size(statistics, STATISTICS_ROWS); i++) {
        spans += statistics_at(statistics, STATISTICS_ROWS, i)->spans;
        errors += statistics_at(statistics, STATISTICS_ROWS, i)->errors;
    }
    put_sum(printer, ",\"spans\":", spans);
    put_sum(printer, ",\"errors\":", errors);
}

char *merged_document(const struct merged *merged, int64_t now_ns)
{
    const struct statistics *statistics = merged->statistics;
    struct printer printer = {0};

    put_head(&printer, merged->from_ns, merged->to_ns);
    put_totals(&printer, statistics);
    for (enum statistics_kind kind = 0; kind < STATISTICS_KINDS; kind++) {
        print(&printer, "%s,\"%s\":[", kind ? "]" : "", kinds[kind].array);
        for (size_t i = 0; i < statistics_size(statistics, kind); i++) {
            print_string(&printer, i ? ",\n" : "\n");
            document_put_row(&printer, statistics, kind, i);
        }
    }
    print_string(&printer, "],\"workers\":[");
    for (size_t i = 0; i < merged->worker_count; i++) {
        const struct merged_worker *worker = &merged->workers[i];

        print_string(&printer, i ? ",\n" : "\n");
        put_worker(&printer, worker->instance, &worker->counts);
        put_time(&printer, ",\"heard\":", worker->heard_ns);
        print(&printer, ",\"is_there\":%s}", worker_is_there(worker, now_ns) ? "true" : "false");
    }
    print_string(&printer, "],\"forgotten\":{\"instance\":null");
    put_counts(&printer, &merged->forgotten);
    put_sum(&printer, "},\"messages\":", merged->messages);
    put_sum(&printer, ",\"refused\":", merged->refused);
    put_sum(&printer, ",\"gaps\":", merged->gaps);
    print_string(&printer, "}\n");
    return print_end(&printer);
}

/* ---- a worker's messages --------------------------------------------------------------------- */

/* A broker takes 1 MB unless told otherwise; the longest row, of two full histograms, has half of
 * it. */
#define MESSAGE_BYTES 450000

struct deltas_writer {
    const struct deltas_head *head;
    deltas_emit_fn *emit;
    void *context;
    struct printer printer;
    const char *comma; /* NULL: no message is open */
};

static bool deltas_emit(struct deltas_writer *writer)
{
    struct printer *printer = &writer->printer;

    print_string(printer, "]}");
    writer->comma = NULL;
    return !printer->has_failed &&
           writer->emit(writer->context, printer->buffer.data, printer->buffer.length);
}

/* Makes room for one of the array that is called so. */
static void deltas_continue(struct deltas_writer *writer, const char *array)
{
    struct printer *printer = &writer->printer;

    if (!writer->comma) {
        printer->buffer.length = 0;
        put_head(printer, writer->head->start_ns, writer->head->end_ns);
        print(printer, ",\"%s\":[", array);
    }
    print_string(printer, writer->comma ? writer->comma : "");
    writer->comma = ",\n";
}

static bool deltas_write_rows(struct deltas_writer *writer, const struct statistics *statistics,
                              enum statistics_kind kind)
{
    if (writer->comma) { /* the message goes on with this array */
        print(&writer->printer, "],\"%s\":[", kinds[kind].array);
        writer->comma = "";
    }
    for (size_t i = 0; i < statistics_size(statistics, kind); i++) {
        if (statistics_at(statistics, kind, i)->spans == 0)
            continue;
        deltas_continue(writer, kinds[kind].array);
        document_put_row(&writer->printer, statistics, kind, i);
        if (writer->printer.buffer.length > MESSAGE_BYTES && !deltas_emit(writer))
            return false;
    }
    return true;
}

bool deltas_write(const struct deltas_head *head, const struct statistics *statistics,
                  deltas_emit_fn *emit, void *context)
{
    struct deltas_writer writer = {.head = head, .emit = emit, .context = context};
    bool is_written;

    deltas_continue(&writer, "workers");
    put_worker(&writer.printer, head->instance, &head->counts);
    print_string(&writer.printer, "}");
    is_written = deltas_write_rows(&writer, statistics, STATISTICS_ROWS) &&
                 deltas_write_rows(&writer, statistics, STATISTICS_EDGES) &&
                 (!writer.comma || deltas_emit(&writer));
    buffer_free(&writer.printer.buffer);
    return is_written;
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

/* One that is not there is empty. Whatever it returns, histogram_clear() is due. */
static bool document_read_histogram(struct histogram *histogram, int scale, const json_t *json)
{
    *histogram = (struct histogram){.count = 0};
    if (!json)
        return true;
    if (!json_is_object(json) ||
        !document_read_buckets(histogram, scale, json_object_get(json, "buckets")))
        return false;
    histogram->count = count_at(json, "count");
    histogram->zeros = count_at(json, "zeros");
    histogram->sum = json_number_value(json_object_get(json, "sum"));
    histogram->min = json_integer_value(json_object_get(json, "min"));
    histogram->max = json_integer_value(json_object_get(json, "max"));
    return isfinite(histogram->sum);
}

/* merged NULL: it is only looked at. */
static bool add_row(struct merged *merged, enum statistics_kind kind, int scale, const json_t *json)
{
    struct histogram duration = {.count = 0}, self = {.count = 0};
    struct statistics_row *row = NULL;
    bool done = json_is_object(json) &&
                document_read_histogram(&duration, scale, json_object_get(json, "duration")) &&
                document_read_histogram(&self, scale, json_object_get(json, "self"));

    if (done && merged) {
        row = statistics_add(merged->statistics, kind, name_at(merged, json, kinds[kind].first),
                             name_at(merged, json, kinds[kind].second));
        done =
            row && histogram_merge(&row->duration, &duration) && histogram_merge(&row->self, &self);
    }
    if (done && merged) {
        row->spans += count_at(json, kinds[kind].count);
        row->ever += count_at(json, kinds[kind].count);
        row->errors += count_at(json, "errors");
    }
    histogram_clear(&duration);
    histogram_clear(&self);
    return done;
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

static bool add_worker(struct merged *merged, const json_t *json)
{
    const char *instance = json_string_value(json_object_get(json, "instance"));
    const struct work_counts counts = read_counts(json);

    if (instance && merged)
        merged_add_worker(merged, instance, &counts, time_at(json, "heard"));
    return instance != NULL;
}

static bool refuse_element(const char *what, size_t i, struct error *error)
{
    return error_set(error, "\"%s\", the one at %zu: expected one as `blkin work --root` writes it",
                     what, i);
}

static bool add_rows(struct merged *merged, const json_t *document, struct error *error)
{
    const int scale = (int)json_integer_value(json_object_get(document, "scale"));

    for (enum statistics_kind kind = 0; kind < STATISTICS_KINDS; kind++) {
        const json_t *array = json_object_get(document, kinds[kind].array);

        for (size_t i = 0; i < json_array_size(array); i++) {
            if (!add_row(merged, kind, scale, json_array_get(array, i)))
                return refuse_element(kinds[kind].array, i, error);
        }
    }
    return true;
}

static bool add_workers(struct merged *merged, const json_t *document, struct error *error)
{
    const json_t *array = json_object_get(document, "workers");

    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!add_worker(merged, json_array_get(array, i)))
            return refuse_element("workers", i, error);
    }
    return true;
}

static bool check_head(const json_t *document, struct error *error)
{
    const json_int_t scale = json_integer_value(json_object_get(document, "scale"));

    if (merged_is_document(document) && scale >= 0 && scale <= 20)
        return true;
    return error_set(error,
                     "expected a document of `blkin work --root`: {\"blkin\": \"statistics\"");
}

bool merged_add_document(struct merged *merged, const json_t *document, struct error *error)
{
    const int64_t from_ns = time_at(document, "from"), to_ns = time_at(document, "to");
    struct work_counts forgotten;

    if (!check_head(document, error))
        return false;
    if (from_ns && to_ns >= from_ns)
        merged_widen(merged, from_ns, to_ns);
    forgotten = read_counts(json_object_get(document, "forgotten"));
    work_counts_add(&merged->forgotten, &forgotten);
    merged->messages += count_at(document, "messages");
    merged->refused += count_at(document, "refused");
    merged->gaps += count_at(document, "gaps");
    return add_rows(merged, document, error) && add_workers(merged, document, error);
}

/* No transaction takes longer: what says so is a clock that is wrong. */
#define PERIOD_MAX_NS (600 * INT64_C(1000000000))

/* Looks at all of it first: of a message that is refused nothing is added. */
static bool deltas_add(struct merged *merged, const json_t *json, int64_t log_ns,
                       struct error *error)
{
    const int64_t period_ns = time_at(json, "to") - time_at(json, "from");
    const json_t *worker = json_array_get(json_object_get(json, "workers"), 0);
    const struct work_counts counts = read_counts(worker);

    if (!check_head(json, error) || !add_rows(NULL, json, error) || !add_workers(NULL, json, error))
        return false;
    if (worker)
        merged_add_worker(merged, json_string_value(json_object_get(worker, "instance")), &counts,
                          log_ns);
    merged_widen(merged, log_ns - (period_ns > 0 && period_ns < PERIOD_MAX_NS ? period_ns : 0),
                 log_ns);
    return add_rows(merged, json, error);
}

bool merged_add_message(struct merged *merged, const char *data, size_t length, int64_t log_ns,
                        struct error *error)
{
    json_error_t cause;
    json_t *json;
    bool is_added;

    error->text[0] = '\0';
    merged->messages++;
    errno = 0;
    json = json_loadb(data, length, JSON_ALLOW_NUL, &cause);
    is_added = json ? deltas_add(merged, json, log_ns, error)
                    : error_set(error, "expected JSON: %s", cause.text);
    json_decref(json);
    merged->refused += !is_added;
    if (is_added || errno != ENOMEM)
        return true;
    return error_set(error, "out of memory");
}

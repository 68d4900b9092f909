/* Writes and reads the document of the workers' statistics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "merged.h"

#include "babeltrace-plugin/account/statistics_document.h"
#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/encode/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

static void put_time(struct printer *printer, const char *before, int64_t time_ns)
{
    char date[DATE_MAX];

    print_string(printer, before);
    if (date_write(time_ns, date))
        print(printer, "\"%s\"", date);
    else
        print_string(printer, "null");
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
            statistics_print_count(printer, "", work_counter_value(counter, counts));
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

char *merged_document(const struct merged *merged, int64_t now_ns)
{
    struct printer printer = {0};

    put_head(&printer, merged->from_ns, merged->to_ns);
    statistics_print(&printer, merged->statistics);
    print_string(&printer, ",\"workers\":[");
    for (size_t i = 0; i < merged->worker_count; i++) {
        const struct merged_worker *worker = &merged->workers[i];

        print_string(&printer, i ? ",\n" : "\n");
        put_worker(&printer, worker->instance, &worker->counts);
        put_time(&printer, ",\"heard\":", worker->heard_ns);
        print(&printer, ",\"is_there\":%s}", worker_is_there(worker, now_ns) ? "true" : "false");
    }
    print_string(&printer, "],\"forgotten\":{\"instance\":null");
    put_counts(&printer, &merged->forgotten);
    statistics_print_count(&printer, "},\"messages\":", merged->messages);
    statistics_print_count(&printer, ",\"refused\":", merged->refused);
    statistics_print_count(&printer, ",\"gaps\":", merged->gaps);
    print_string(&printer, "}\n");
    return print_end(&printer);
}

/* ---- a worker's messages --------------------------------------------------------------------- */

/* A broker's default limit is 1 MB. The longest row, with two full histograms, takes half of that.
 */
#define MERGED_MESSAGE_BYTES 450000

struct deltas_writer {
    const struct deltas_head *head;
    deltas_emit_fn *emit;
    void *context;
    struct printer printer;
    const char *comma; /* NULL: no open message */
};

static bool deltas_emit(struct deltas_writer *writer)
{
    struct printer *printer = &writer->printer;

    print_string(printer, "]}");
    writer->comma = NULL;
    return !printer->has_failed &&
           writer->emit(writer->context, printer->buffer.data, printer->buffer.length);
}

/* Makes room for an element of the named array. */
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
    if (writer->comma) { /* this array follows in the same message */
        print(&writer->printer, "],\"%s\":[", statistics_arrays[kind].array);
        writer->comma = "";
    }
    for (size_t i = 0; i < statistics_size(statistics, kind); i++) {
        if (statistics_at(statistics, kind, i)->spans == 0)
            continue;
        deltas_continue(writer, statistics_arrays[kind].array);
        statistics_print_row(&writer->printer, statistics, kind, i);
        if (writer->printer.buffer.length > MERGED_MESSAGE_BYTES && !deltas_emit(writer))
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
            *(uint64_t *)value = statistics_count_at(json, counter->name);
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

static bool add_workers(struct merged *merged, const json_t *document, struct error *error)
{
    const json_t *array = json_object_get(document, "workers");

    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!add_worker(merged, json_array_get(array, i)))
            return error_set(
                error, "\"workers\", the one at %zu: expected one as `blkin work --root` writes it",
                i);
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
    merged->messages += statistics_count_at(document, "messages");
    merged->refused += statistics_count_at(document, "refused");
    merged->gaps += statistics_count_at(document, "gaps");
    return statistics_read(merged->statistics, merged->names, document, STATISTICS_ADD, error) &&
           add_workers(merged, document, error);
}

/* The longest transaction. A longer period comes from a wrong clock. */
#define PERIOD_MAX_NS (600 * INT64_C(1000000000))

/* Checks the whole message before it adds anything. */
static bool deltas_add(struct merged *merged, const json_t *json, int64_t log_ns,
                       struct error *error)
{
    const int64_t period_ns = time_at(json, "to") - time_at(json, "from");
    const json_t *worker = json_array_get(json_object_get(json, "workers"), 0);
    const struct work_counts counts = read_counts(worker);

    if (!check_head(json, error) || !statistics_read(NULL, NULL, json, STATISTICS_ADD, error) ||
        !add_workers(NULL, json, error))
        return false;
    if (worker)
        merged_add_worker(merged, json_string_value(json_object_get(worker, "instance")), &counts,
                          log_ns);
    merged_widen(merged, log_ns - (period_ns > 0 && period_ns < PERIOD_MAX_NS ? period_ns : 0),
                 log_ns);
    return statistics_read(merged->statistics, merged->names, json, STATISTICS_ADD, error);
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

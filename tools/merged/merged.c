/* SPDX-License-Identifier: BSD-2-Clause */
#include "merged.h"

#include "babeltrace-plugin/account/statistics_document.h"
#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/encode/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Names for rows and edges, if all differ, and a share for names without a row. */
#define MERGED_NAMES_MAX   32768
#define MERGED_NAMES_BYTES (8U << 20)

struct merged *merged_new(void)
{
    struct merged *merged = calloc(1, sizeof(*merged));

    if (!merged)
        return NULL;
    merged->names = names_new(MERGED_NAMES_MAX, MERGED_NAMES_BYTES);
    merged->statistics = merged->names ? statistics_new(merged->names) : NULL;
    merged->workers = calloc(WORKERS_MAX, sizeof(*merged->workers));
    if (merged->statistics && merged->workers)
        return merged;
    merged_free(merged);
    return NULL;
}

void merged_free(struct merged *merged)
{
    if (!merged)
        return;
    statistics_free(merged->statistics);
    names_free(merged->names);
    free(merged->workers);
    free(merged);
}

/* ---- workers --------------------------------------------------------------------------------- */

bool worker_is_there(const struct merged_worker *worker, int64_t now_ns)
{
    return now_ns - worker->heard_ns < WORKER_AWAY_NS;
}

static void worker_forget(struct merged *merged, size_t i)
{
    work_counts_add(&merged->forgotten, &merged->workers[i].counts);
    merged->workers[i] = merged->workers[--merged->worker_count];
}

/* Forgets workers that are long silent. If there is still no room, forgets the worker that has been
 * silent for longest. */
static void worker_make_room(struct merged *merged, int64_t now_ns)
{
    size_t oldest = 0;

    for (size_t i = merged->worker_count; i-- > 0;) {
        if (now_ns - merged->workers[i].heard_ns > WORKER_FORGET_NS)
            worker_forget(merged, i);
    }
    if (merged->worker_count < WORKERS_MAX)
        return;
    for (size_t i = 1; i < merged->worker_count; i++) {
        if (merged->workers[i].heard_ns < merged->workers[oldest].heard_ns)
            oldest = i;
    }
    worker_forget(merged, oldest);
}

static struct merged_worker *find_worker(struct merged *merged, const char *instance,
                                         int64_t now_ns)
{
    struct merged_worker *worker;

    for (size_t i = 0; i < merged->worker_count; i++) {
        if (strcmp(merged->workers[i].instance, instance) == 0)
            return &merged->workers[i];
    }
    worker_make_room(merged, now_ns);
    worker = &merged->workers[merged->worker_count++];
    *worker = (struct merged_worker){.heard_ns = 0};
    (void)snprintf(worker->instance, sizeof(worker->instance), "%s", instance);
    return worker;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void merged_extend_period(struct merged *merged, int64_t from_ns, int64_t to_ns)
{
    if (merged->from_ns == 0 || from_ns < merged->from_ns)
        merged->from_ns = from_ns;
    if (to_ns > merged->to_ns)
        merged->to_ns = to_ns;
}

void merged_add_worker(struct merged *merged, const char *instance,
                       const struct work_counts *counts, int64_t heard_ns)
{
    char name[WORKER_NAME_MAX];
    struct merged_worker *worker;
    struct work_counts sum = *counts;

    /* replaces unsafe bytes, as the name appears on terminals, in pages and in JSON */
    (void)snprintf(name, sizeof(name), "%s", instance);
    for (char *c = name; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    worker = find_worker(merged, name, heard_ns);

    if (heard_ns >= worker->heard_ns) {
        worker->heard_ns = heard_ns;
        work_counts_add(&worker->counts, counts);
        return;
    }
    work_counts_add(&sum, &worker->counts); /* keeps the gauges of the newer account */
    worker->counts = sum;
}

/* ---- counters -------------------------------------------------------------------------------- */

#define COUNTER(name, help)       {#name, WORK_COUNTER, offsetof(struct work_counts, name), help},
#define GAUGE(name, help)         {#name, WORK_GAUGE, offsetof(struct work_counts, name), help},
#define RATIO(name, member, help) {name, WORK_RATIO, offsetof(struct work_counts, member), help},

const struct work_counter work_counters[] = {
#include "tools/merged/counts.def"
};
#undef COUNTER
#undef GAUGE
#undef RATIO

const size_t work_counters_count = sizeof(work_counters) / sizeof(work_counters[0]);

static const void *counter_in(const struct work_counter *counter, const struct work_counts *counts)
{
    return (const char *)counts + counter->offset;
}

uint64_t work_counter_value(const struct work_counter *counter, const struct work_counts *counts)
{
    uint64_t value;

    memcpy(&value, counter_in(counter, counts), sizeof(value));
    return value;
}

double work_counter_ratio(const struct work_counter *counter, const struct work_counts *counts)
{
    double value;

    memcpy(&value, counter_in(counter, counts), sizeof(value));
    return value;
}

/* Adds or subtracts counters; the gauges are those of `now`. */
static struct work_counts combine(const struct work_counts *now, const struct work_counts *other,
                                  bool subtract)
{
    struct work_counts result = *now;

    for (size_t i = 0; i < work_counters_count; i++) {
        const struct work_counter *counter = &work_counters[i];
        const uint64_t value = work_counter_value(counter, other);
        uint64_t sum = work_counter_value(counter, now);

        if (counter->kind != WORK_COUNTER)
            continue;
        sum = subtract ? sum - value : sum + value;
        memcpy((char *)&result + counter->offset, &sum, sizeof(sum));
    }
    return result;
}

void work_counts_add(struct work_counts *counts, const struct work_counts *delta)
{
    *counts = combine(delta, counts, false);
}

struct work_counts work_counts_since(const struct work_counts *now,
                                     const struct work_counts *before)
{
    return combine(now, before, true);
}

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
        merged_add_worker(merged, instance, &counts, json_time_in(json, "heard"));
    return instance != NULL;
}

static bool add_workers(struct merged *merged, const json_t *document, struct error *error)
{
    const json_t *array = json_object_get(document, "workers");

    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!add_worker(merged, json_array_get(array, i)))
            return error_set(
                error,
                "\"workers\", element %zu: expected an element as `blkin work --root` writes", i);
    }
    return true;
}

static bool check_head(const json_t *document, struct error *error)
{
    const json_int_t scale = json_integer_value(json_object_get(document, "scale"));

    if (merged_is_document(document) && scale >= 0 && scale <= 20)
        return true;
    return error_set(
        error, "expected a document of `blkin work --root`: {\"blkin\": \"statistics\", ...}");
}

bool merged_add_document(struct merged *merged, const json_t *document, struct error *error)
{
    const int64_t from_ns = json_time_in(document, "from"), to_ns = json_time_in(document, "to");
    struct work_counts forgotten;

    if (!check_head(document, error))
        return false;
    if (from_ns && to_ns >= from_ns)
        merged_extend_period(merged, from_ns, to_ns);
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
    const int64_t period_ns = json_time_in(json, "to") - json_time_in(json, "from");
    const json_t *worker = json_array_get(json_object_get(json, "workers"), 0);
    const struct work_counts counts = read_counts(worker);

    if (!check_head(json, error) || !statistics_read(NULL, NULL, json, STATISTICS_ADD, error) ||
        !add_workers(NULL, json, error))
        return false;
    if (worker)
        merged_add_worker(merged, json_string_value(json_object_get(worker, "instance")), &counts,
                          log_ns);
    merged_extend_period(
        merged, log_ns - (period_ns > 0 && period_ns < PERIOD_MAX_NS ? period_ns : 0), log_ns);
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

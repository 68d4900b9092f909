/* SPDX-License-Identifier: BSD-2-Clause */
#include "statistics_document.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/encode/json.h"
#include "babeltrace-plugin/model/open_traces.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

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
        const char *name = statistics_arrays[kind].array;
        const json_t *array = json_object_get(document, name);

        for (size_t i = 0; i < json_array_size(array); i++) {
            if (!read_row(&reading, kind, json_array_get(array, i)))
                return error_set(
                    error, "\"%s\", element %zu: expected an element as `blkin work --root` writes",
                    name, i);
        }
    }
    return true;
}

/* ---- statistics on demand -------------------------------------------------------------------- */

/* A trace is complete this long after its last span. A child arrives before its parent, unless the
 * buffers of another process delay the child. */
#define LIVE_QUIET_MS        2000
#define TRACES_BYTES         ((size_t)64 << 20)
#define LIVE_TRACE_SPANS_MAX 10000
#define LIVE_NAMES_MAX       65536
#define LIVE_NAMES_BYTES     ((size_t)16 << 20)
#define HISTOGRAM_BYTES      ((size_t)64 << 20)

struct live_statistics {
    int64_t begin_ns; /* since 1970 */
    int64_t now_ms;
    struct names *names;
    struct statistics *statistics;
    struct open_traces *traces;
    bool has_no_memory;
};

static void live_statistics_close(void *context, const struct closed_trace *closed)
{
    struct live_statistics *live = context;

    if (!closed->is_linked || !statistics_add_rest(live->statistics, closed->model))
        live->has_no_memory = true;
}

struct live_statistics *live_statistics_new(void)
{
    struct live_statistics *live = calloc(1, sizeof(*live));

    if (!live)
        return NULL;
    live->begin_ns = wall_clock_ns();
    live->now_ms = clock_ms();
    live->names = names_new(LIVE_NAMES_MAX, LIVE_NAMES_BYTES);
    live->statistics = live->names ? statistics_new(live->names) : NULL;
    live->traces = open_traces_new(&(struct open_traces_options){.quiet = LIVE_QUIET_MS,
                                                                 .max_bytes = TRACES_BYTES,
                                                                 .max_spans = LIVE_TRACE_SPANS_MAX,
                                                                 .close = live_statistics_close,
                                                                 .context = live});
    if (live->statistics && live->traces)
        return live;
    live_statistics_free(live);
    return NULL;
}

void live_statistics_free(struct live_statistics *live)
{
    if (!live)
        return;
    open_traces_free(live->traces);
    statistics_free(live->statistics);
    names_free(live->names);
    free(live);
}

void live_statistics_add(struct live_statistics *live, const struct span *span)
{
    const struct trace_span added = trace_span_of(span, live->names);

    if (!statistics_add_span(live->statistics, &added) ||
        !open_traces_add(live->traces, span->trace_id_high, span->trace_id, &added, 0,
                         live->now_ms))
        live->has_no_memory = true;
}

bool live_statistics_advance(struct live_statistics *live, int64_t now_ms)
{
    live->now_ms = now_ms;
    open_traces_advance(live->traces, now_ms);
    return !live->has_no_memory && statistics_bytes(live->statistics) < HISTOGRAM_BYTES;
}

void live_statistics_close_traces(struct live_statistics *live)
{
    (void)open_traces_close_some(live->traces, UINT64_MAX);
}

char *live_statistics_text(const struct live_statistics *live)
{
    const struct open_traces_counts traces = open_traces_counts(live->traces);
    const int64_t now_ns = wall_clock_ns();
    struct printer printer = {.has_failed = false};
    char from[DATE_MAX] = "", to[DATE_MAX] = "";

    (void)date_write(live->begin_ns, from);
    (void)date_write(now_ns, to);
    print(&printer,
          "{\"blkin\":\"statistics\",\"version\":\"" BLKIN_RELEASE "\",\"source\":\"%ld-%" PRId64
          "\",\"from\":\"%s\",\"to\":\"%s\"",
          (long)getpid(), live->begin_ns, from, to);
    print(&printer, ",\"seconds\":%.3f,\"scale\":%d", (double)(now_ns - live->begin_ns) / 1e9,
          HISTOGRAM_SCALE);
    statistics_print_count(&printer, ",\"traces\":", traces.complete);
    statistics_print_count(&printer, ",\"traces_early\":", traces.early);
    statistics_print_count(&printer, ",\"traces_open\":", traces.open);
    statistics_print(&printer, live->statistics);
    print_string(&printer, "}\n");
    return print_end(&printer);
}

/*
 * What all workers have counted, as a document: written, and read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "merged.h"

#include "babeltrace-plugin/account/statistics_document.h"
#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/encode/json.h"

#include <math.h>
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
    put_time(printer, "{\"blkin\":\"statistics\",\"version\":\"" BLKIN_RELEASE "\",\"from\":",
             merged->from_ns);
    put_time(printer, ",\"to\":", merged->to_ns);
    print(printer, ",\"seconds\":%.3f,", (double)(merged->to_ns - merged->from_ns) / 1e9);
    statistics_print(printer, merged->statistics);
}

char *merged_document(const struct merged *merged, int64_t now_ns)
{
    struct printer printer = {0};

    put_totals(&printer, merged);
    print_string(&printer, ",\"workers\":[");
    for (size_t i = 0; i < merged->worker_count; i++) {
        print_string(&printer, i ? ",\n" : "\n");
        put_worker(&printer, merged, i, now_ns);
    }
    print_string(&printer, "],\"forgotten\":{\"instance\":null");
    put_counts(&printer, &merged->forgotten);
    statistics_print_count(&printer, "},\"messages\":", merged->messages);
    statistics_print_count(&printer, ",\"refused\":", merged->refused);
    statistics_print_count(&printer, ",\"gaps\":", merged->gaps);
    print_string(&printer, "}\n");
    return print_end(&printer);
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

static bool add_workers(struct merged *merged, const json_t *document, struct error *error)
{
    const json_t *array = json_object_get(document, "workers"), *worker;
    size_t i;

    json_array_foreach(array, i, worker)
    {
        const char *instance = json_string_value(json_object_get(worker, "instance"));
        const struct work_counts counts = read_counts(worker);

        if (!instance)
            return error_set(
                error,
                "\"workers\", the one at %zu: expected one as `blkin work --root` writes it", i);
        merged_add_worker(merged, instance, &counts, time_at(worker, "heard"));
    }
    return true;
}

bool merged_add_document(struct merged *merged, const json_t *document, struct error *error)
{
    const int64_t from_ns = time_at(document, "from"), to_ns = time_at(document, "to");
    struct work_counts forgotten;

    if (!merged_is_document(document))
        return error_set(error,
                         "expected a document of `blkin work --root`: {\"blkin\": \"statistics\"");
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

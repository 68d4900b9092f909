/* SPDX-License-Identifier: BSD-2-Clause */
#include "summary.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note_times(struct summary *summary)
{
    for (size_t i = 0; i < summary->traces.count; i++) {
        const struct trace *trace = &summary->traces.traces[i];

        if (!trace->start_ns)
            continue;
        if (!summary->start_ns || trace->start_ns < summary->start_ns)
            summary->start_ns = trace->start_ns;
        if (trace->end_ns > summary->end_ns)
            summary->end_ns = trace->end_ns;
    }
    summary->seconds = (double)(summary->end_ns - summary->start_ns) / 1e9;
}

static bool add_statistics(struct summary *summary)
{
    summary->statistics = statistics_new(summary->names);
    if (!summary->statistics)
        return false;
    for (size_t i = 0; i < summary->traces.count; i++) {
        if (!trace_link(&summary->traces.traces[i], summary->names, &summary->model) ||
            !statistics_add_trace(summary->statistics, &summary->model))
            return false;
    }
    note_times(summary);
    summary->spans = summary->list.count;
    summary->traces_count = summary->traces.count;
    return true;
}

/* ---- the document of `blkin work --root` */

/* Returns the document if the bytes are an object with the member "blkin"; if not, NULL. */
static json_t *document_of(const struct buffer *bytes)
{
    size_t begin = 0;
    json_t *json;

    while (begin < bytes->length && strchr(" \t\r\n", bytes->data[begin]) && bytes->data[begin])
        begin++;
    if (begin == bytes->length || bytes->data[begin] != '{')
        return NULL;
    json = json_loadb(bytes->data + begin, bytes->length - begin, JSON_ALLOW_NUL, NULL);
    if (json && merged_is_document(json))
        return json;
    json_decref(json);
    return NULL;
}

static bool add_document(struct summary *summary, const json_t *document, const char *source)
{
    struct error error = {"out of memory"};

    summary->merged = merged_new();
    if (!summary->merged || !merged_add_document(summary->merged, document, &error)) {
        fprintf(stderr, "blkin: %s: %s\n", source_text(source), error.text);
        return false;
    }
    summary->names = summary->merged->names;
    summary->statistics = summary->merged->statistics;
    summary->start_ns = summary->merged->from_ns;
    summary->end_ns = summary->merged->to_ns;
    summary->seconds = (double)(summary->end_ns - summary->start_ns) / 1e9;
    for (size_t i = 0; i < statistics_size(summary->statistics, STATISTICS_ROWS); i++)
        summary->spans += statistics_at(summary->statistics, STATISTICS_ROWS, i)->spans;
    return true;
}

static bool summary_add_spans(struct summary *summary, const struct buffer *bytes,
                              const char *source, bool with_statistics)
{
    if (!spans_parse(bytes, source, &summary->list))
        return false;
    summary->names = names_new(UINT32_MAX, SIZE_MAX);
    if (summary->names && traces_sort(&summary->list, &summary->traces) &&
        (!with_statistics || add_statistics(summary)))
        return true;
    fputs("blkin: out of memory\n", stderr);
    return false;
}

bool summary_load(const char *source, bool with_statistics, struct summary *summary)
{
    struct buffer bytes;
    json_t *document = NULL;
    bool is_done = false;

    *summary = (struct summary){.names = NULL};
    if (read_source(source, &bytes)) {
        document = with_statistics ? document_of(&bytes) : NULL;
        is_done = document
                      ? add_document(summary, document, source)
                      : summary_add_spans(summary, &bytes, source_text(source), with_statistics);
    }
    json_decref(document);
    free(bytes.data);
    return is_done;
}

bool summary_load_bytes(const struct buffer *bytes, const char *source, struct summary *summary)
{
    *summary = (struct summary){.names = NULL};
    return summary_add_spans(summary, bytes, source, false);
}

int summary_end(struct summary *summary, int status)
{
    trace_model_destroy(&summary->model);
    traces_free(&summary->traces);
    if (summary->merged) {
        merged_free(summary->merged);
    } else {
        statistics_free(summary->statistics);
        names_free(summary->names);
    }
    spans_free(&summary->list);
    return source_is_partial ? 1 : status;
}

/* ---- operations */

/* Sorts by key, then by number of spans, then by name, so that the order depends on the spans only.
 */
static int by_key(const void *a, const void *b)
{
    const struct operation *left = a, *right = b;
    int order = (left->key < right->key) - (left->key > right->key);

    if (!order)
        order = (left->row->spans < right->row->spans) - (left->row->spans > right->row->spans);
    if (!order)
        order = strcmp(left->service, right->service);
    return order ? order : strcmp(left->name, right->name);
}

static double key_of(const struct statistics_row *row, enum operations_order order)
{
    switch (order) {
    case OPERATIONS_BY_P99:
        return (double)histogram_quantile(&row->duration, 0.99);
    case OPERATIONS_BY_SELF:
        return row->self.sum;
    case OPERATIONS_BY_ERRORS:
        return (double)row->errors;
    default:
        return (double)row->spans;
    }
}

struct operation *operations(const struct statistics *statistics, enum statistics_kind kind,
                             enum operations_order order, const char *glob, size_t *count)
{
    const struct names *names = statistics_names(statistics);
    const size_t all = statistics_size(statistics, kind);
    struct operation *found = calloc(all + 1, sizeof(*found));

    *count = 0;
    if (!found)
        return NULL;
    for (size_t i = 0; i < all; i++) {
        const struct statistics_row *row = statistics_at(statistics, kind, i);
        const char *service = names_text(names, row->service).data;
        const char *name = names_text(names, row->name).data;

        if (row->spans + (kind == STATISTICS_ROWS ? row->duration.count + row->self.count : 0) &&
            (!glob || statistics_is_other(row) || fnmatch(glob, service, 0) == 0 ||
             (kind == STATISTICS_EDGES && fnmatch(glob, name, 0) == 0)))
            found[(*count)++] = (struct operation){row, service, name, key_of(row, order)};
    }
    qsort(found, *count, sizeof(*found), by_key);
    return found;
}

bool operations_sum(const struct operation *operations, size_t count, struct statistics_row *sum)
{
    for (size_t i = 0; i < count; i++) {
        sum->spans += operations[i].row->spans;
        sum->errors += operations[i].row->errors;
        if (!histogram_merge(&sum->duration, &operations[i].row->duration) ||
            !histogram_merge(&sum->self, &operations[i].row->self))
            return false;
    }
    return true;
}

/* ---- figures */

/* Returns the decimals for three significant digits. */
static int decimals(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

static struct figure scaled(double value, const char *gap, const char *unit)
{
    struct figure figure;

    snprintf(figure.text, sizeof(figure.text), "%.*f%s%s", decimals(value), value, gap, unit);
    return figure;
}

struct figure figure_time(int64_t ns, enum figure_form form)
{
    const double value = (double)ns;
    const char *gap = form == FIGURE_CELL ? "" : " ";
    struct figure figure;

    if (value >= 99999.5e9)
        snprintf(figure.text, sizeof(figure.text), "%.0f%sd", value / 86400e9, gap);
    else if (value >= 999.5e6)
        figure = scaled(value / 1e9, gap, "s");
    else if (value >= 999.5e3)
        figure = scaled(value / 1e6, gap, "ms");
    else if (ns > 0 && ns < 1000)
        snprintf(figure.text, sizeof(figure.text), "%" PRId64 "%sns", ns, gap);
    else
        snprintf(figure.text, sizeof(figure.text), "%.0f%s%ss", value / 1e3, gap,
                 form == FIGURE_PAGE ? "µ" : "u");
    return figure;
}

struct figure figure_quantile(const struct histogram *histogram, double q, enum figure_form form)
{
    struct figure none;

    if (histogram->count)
        return figure_time(histogram_quantile(histogram, q), form);
    snprintf(none.text, sizeof(none.text), "%s", form == FIGURE_PAGE ? "–" : "-");
    return none;
}

struct figure figure_number(double value)
{
    struct figure figure;

    if (value < 999999.5)
        snprintf(figure.text, sizeof(figure.text), "%.*f", value == 0 ? 0 : decimals(value), value);
    else
        snprintf(figure.text, sizeof(figure.text), "%.3gM", value / 1e6);
    return figure;
}

struct figure figure_count(uint64_t value)
{
    char digits[24];
    const size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value);
    struct figure figure = {""};
    char *at = figure.text;

    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return figure;
}

struct figure figure_share(double part, double whole)
{
    const double percent = whole > 0 ? part * 100 / whole : 0;
    struct figure figure = {"<0.1 %"};

    if (percent == 0 || percent >= 0.05)
        snprintf(figure.text, sizeof(figure.text), "%.*f %%", percent > 0 && percent < 9.95 ? 1 : 0,
                 percent);
    return figure;
}

/* Rounds to the nearest us, so values below 185 us are exact: see histogram.h. */
static json_t *quantile_us(const struct histogram *histogram, double q)
{
    const int64_t ns = histogram_quantile(histogram, q);

    return json_integer(ns / 1000 + (ns % 1000 >= 500));
}

json_t *figure_json(const struct histogram *histogram, bool is_whole)
{
    return json_pack(
        "{s:I, s:f, s:o*, s:o, s:o*, s:o, s:o}", "count", (json_int_t)histogram->count, "sum",
        histogram->sum / 1000, "min", is_whole ? quantile_us(histogram, 0) : NULL, "p50",
        quantile_us(histogram, 0.5), "p90", is_whole ? quantile_us(histogram, 0.9) : NULL, "p99",
        quantile_us(histogram, 0.99), "max", quantile_us(histogram, 1));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "summary.h"

#include <fnmatch.h>
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

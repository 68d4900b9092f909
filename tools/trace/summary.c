/* Loads a whole source.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "summary.h"

#include "babeltrace-plugin/model/statistics.h"

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
    summary->names = names_of_file();
    if (summary->names && traces_sort(&summary->list, &summary->traces) &&
        (!with_statistics || add_statistics(summary)))
        return true;
    fputs("blkin: out of memory\n", stderr);
    return false;
}

bool summary_load_traces(const char *source, struct summary *summary)
{
    struct buffer bytes;
    bool is_done;

    *summary = (struct summary){.names = NULL};
    is_done = read_source(source, &bytes) && summary_add_spans(summary, &bytes, source, false);
    free(bytes.data);
    return is_done;
}

bool summary_load(const char *source, struct summary *summary)
{
    struct buffer bytes;
    json_t *document = NULL;
    bool is_done = false;

    *summary = (struct summary){.names = NULL};
    if (read_source(source, &bytes)) {
        document = document_of(&bytes);
        is_done = document ? add_document(summary, document, source)
                           : summary_add_spans(summary, &bytes, source, true);
    }
    json_decref(document);
    free(bytes.data);
    return is_done;
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

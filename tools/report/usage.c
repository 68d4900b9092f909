/*
 * How the threads of a trace's spans spent their time: columns of the timeline, and in words.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include "tools/trace/figures.h"
#include "tools/trace/thread_time.h"
#include "tools/trace/traces.h"

enum usage_columns usage_columns_of(const struct trace_model *model, const bool *is_shown)
{
    enum usage_columns columns = USAGE_NONE;

    for (uint32_t node = 0; node < model->count; node++) {
        const struct thread_time time = thread_time_of(span_of(model, node));

        if (is_shown[node] && time.is_apart)
            return USAGE_APART;
        if (is_shown[node] && time.is_known)
            columns = USAGE_OFF_CPU;
    }
    return columns;
}

static struct figure time_of(int64_t us)
{
    return figure_time(us * 1000, FIGURE_PAGE);
}

static void put_usage_cell(FILE *file, const char *what, int64_t us, bool is_known)
{
    fprintf(file, "<span data-l=\"%s\"><span class=\"vh\">%s </span>%s</span>", what, what,
            is_known ? time_of(us).text : "–");
}

void put_usage(const struct page *page, const struct trace_model *model, uint32_t node,
               enum usage_columns columns)
{
    const struct thread_time time = thread_time_of(span_of(model, node));

    if (columns == USAGE_NONE)
        return;
    fputs("<span class=\"us\">", page->file);
    put_usage_cell(page->file, "on CPU", time.on_cpu_us, time.is_known);
    if (columns == USAGE_APART) {
        put_usage_cell(page->file, "waiting", time.waiting_us, time.is_apart);
        put_usage_cell(page->file, "blocked", time.blocked_us, time.is_apart);
    } else {
        put_usage_cell(page->file, "off CPU", time.blocked_us, time.is_known);
    }
    fputs("</span>", page->file);
}

void put_usage_heads(const struct page *page, enum usage_columns columns)
{
    static const char *const heads[] = {
        [USAGE_OFF_CPU] = "<span>on CPU</span><span>off CPU</span>",
        [USAGE_APART] = "<span>on CPU</span><span>waiting</span><span>blocked</span>",
    };

    if (columns != USAGE_NONE)
        fprintf(page->file, "<span class=\"us\">%s</span>", heads[columns]);
}

void put_usage_words(const struct page *page, const struct trace_model *model, uint32_t longest)
{
    const uint32_t node = thread_time_around(model, longest);
    struct thread_time_part parts[THREAD_TIME_PARTS];
    struct thread_time time;
    size_t count;

    if (node == TRACE_NONE)
        return;
    time = thread_time_of(span_of(model, node));
    count =
        thread_time_parts(&time, node == longest ? model->nodes[node].self_ns / 1000 : 0, parts);
    if (node != longest) {
        fputs("; all of ", page->file);
        put_name(page, model->spans[node].name);
    }
    for (size_t i = 0; i < count; i++)
        fprintf(page->file, "%s%s %s", i ? ", " : ": ", parts[i].what, time_of(parts[i].us).text);
}

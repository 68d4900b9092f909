/* A trace as a timeline: for each span its position in the tree, service, name, start, duration,
 * and a bar.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "show.h"

#include "tools/base/text.h"
#include "tools/trace/summary.h"

#include <stdio.h>
#include <string.h>

#define TIME_COLUMNS   10 /* of a start or a duration */
#define BAR_MIN        8
#define DRAW_LABEL_MIN 14
#define DRAW_INDENT    2
#define DRAW_DEPTH_MAX 12 /* indented levels */
#define NOTE_ROOM_MIN  20 /* columns of a tag or an annotation */
#define USAGE_COLUMNS  21 /* columns of the cells: on a CPU, waiting, blocked */
#define USAGE_CELL     (USAGE_COLUMNS / 3 - 1)

#define HOST_TAG "blkin.host" /* the sink's tag: hosts/host_tags.h */

struct chart {
    const struct trace *trace;
    const struct trace_model *model;
    size_t width;
    size_t label; /* columns of tree, service and name */
    size_t bar;
    bool has_usage;  /* a span has usage tags */
    uint32_t levels; /* indented levels: fewer if names need the room */
};

/* ---- the label */

static const struct trace_node *node_at(const struct chart *chart, uint32_t i)
{
    return &chart->model->nodes[i];
}

static const struct trace_node *ancestor_at(const struct chart *chart, uint32_t i, uint32_t depth)
{
    while (node_at(chart, i)->depth > depth)
        i = node_at(chart, i)->parent;
    return node_at(chart, i);
}

static size_t indent(const struct chart *chart, uint32_t i, uint32_t levels)
{
    const uint32_t depth = node_at(chart, i)->depth;

    return (size_t)(depth < levels ? depth : levels) * DRAW_INDENT;
}

/* Draws the lines from a parent to its children. */
static void put_branches(const struct chart *chart, uint32_t i, bool own)
{
    const bool fancy = has_utf8();
    const uint32_t own_depth = node_at(chart, i)->depth;

    if (own_depth > chart->levels) {
        for (uint32_t level = 0; level < chart->levels; level++)
            fputs(fancy ? "· " : ". ", stdout);
        return;
    }
    for (uint32_t depth = 1; depth <= own_depth; depth++) {
        const bool more = ancestor_at(chart, i, depth)->next != TRACE_NONE;

        if (own && depth == own_depth)
            fputs(fancy ? (more ? "├─" : "└─") : (more ? "|-" : "`-"), stdout);
        else
            fputs(more ? (fancy ? "│ " : "| ") : "  ", stdout);
    }
}

static size_t label_columns(const struct chart *chart, uint32_t i)
{
    const struct json_span *span = span_of(chart->model, i);

    return indent(chart, i, DRAW_DEPTH_MAX) + (span->error ? 2 : 0) + columns(span->service) +
           (span->service[0] && span->name[0] ? 2 : 0) + columns(span->name) +
           (span->service[0] || span->name[0] ? 0 : columns(span->id));
}

static size_t put_part(const char *text, size_t taken, size_t room)
{
    return taken + put_text(text, room > taken ? room - taken : 0);
}

static void put_label(const struct chart *chart, uint32_t i)
{
    const struct json_span *span = span_of(chart->model, i);
    const size_t room = chart->label;
    size_t taken = indent(chart, i, chart->levels);

    put_branches(chart, i, true);
    if (span->error)
        taken = put_part("! ", taken, room);
    taken = put_part(span->service, taken, room);
    if (span->service[0] && span->name[0])
        taken = put_part(": ", taken, room);
    taken = put_part(span->name, taken, room);
    if (!span->service[0] && !span->name[0])
        taken = put_part(span->id, taken, room);
    put_spaces(room > taken ? room - taken : 0);
}

/* ---- the bar */

/* Draws a bar of at least one column. */
static void put_bar(const struct chart *chart, const struct json_span *span)
{
    const int64_t total = chart->trace->end_ns - chart->trace->start_ns;
    const double scale = (double)chart->bar / (double)(total ? total : 1);
    size_t from = (size_t)((double)(span->start_ns - chart->trace->start_ns) * scale);
    size_t to;
    const char *fill = has_utf8() ? "█" : "=";

    if (from >= chart->bar)
        from = chart->bar - 1;
    to = from + (size_t)((double)span->duration_ns * scale + 0.5);
    to = to > chart->bar ? chart->bar : to > from ? to : from + 1;
    if (span->duration_ns == 0)
        fill = ">";
    else if (span->error)
        fill = has_utf8() ? "▒" : "x";
    putchar('|');
    put_spaces(from);
    for (size_t i = from; i < to; i++)
        fputs(fill, stdout);
    put_spaces(chart->bar - to);
    putchar('|');
}

static void put_time(int64_t ns, bool known)
{
    printf(" %*s", TIME_COLUMNS, known ? time_text(ns / 1000).text : "?");
}

/* ---- the times of a span's thread */

static void put_usage_cell(const char *text, bool has_time, int64_t us)
{
    printf(" %*.*s", USAGE_CELL, USAGE_CELL,
           has_time ? figure_time(us * 1000, FIGURE_CELL).text : text);
}

/* ---- tags and annotations below a span ------------------------------------------------------- */

static size_t begin_note(const struct chart *chart, uint32_t i, const char *mark)
{
    size_t taken;

    put_branches(chart, i, false);
    taken = indent(chart, i, chart->levels) + (size_t)printf("   %s", mark);
    return chart->width > taken + NOTE_ROOM_MIN ? chart->width - taken : NOTE_ROOM_MIN;
}

static void put_pair(const struct chart *chart, uint32_t i, const char *key, const char *value)
{
    const size_t room = begin_note(chart, i, "  ");
    const size_t taken = put_text(key, room / 2) + 3;

    if (value[0]) {
        fputs(" = ", stdout);
        put_text(value, room - taken);
    }
    putchar('\n');
}

static void put_endpoint(const struct chart *chart, uint32_t i, const char *what,
                         const char *member)
{
    char text[256];

    if (trace_endpoint(span_of(chart->model, i), member, text))
        put_pair(chart, i, what, text);
}

static void put_annotation(const struct chart *chart, uint32_t i, const json_t *json)
{
    const char *value = json_string_value(json_object_get(json, "value"));
    const int64_t time = json_integer_value(json_object_get(json, "timestamp"));
    const int64_t start = chart->trace->start_ns / 1000;
    const size_t room = begin_note(chart, i, "@ ");
    char offset[32] = "?";

    if (start && time > 0)
        snprintf(offset, sizeof(offset), "%s%s", time < start ? "-" : "+",
                 time_text(time < start ? start - time : time - start).text);
    printf("%-*s ", TIME_COLUMNS + 1, offset);
    put_text(value ? value : "?", room - TIME_COLUMNS - 2);
    putchar('\n');
}

static void put_details(const struct chart *chart, uint32_t i)
{
    const struct json_span *span = span_of(chart->model, i);
    const json_t *tags = json_object_get(span->json, "tags");
    const json_t *annotations = json_object_get(span->json, "annotations");
    const char *key;
    const json_t *item;
    size_t k;

    put_pair(chart, i, "span", span->id);
    if (span->kind[0])
        put_pair(chart, i, "kind", span->kind);
    put_endpoint(chart, i, "endpoint", "localEndpoint");
    put_endpoint(chart, i, "remote", "remoteEndpoint");
    json_array_foreach(annotations, k, item) put_annotation(chart, i, item);
    json_object_foreach((json_t *)tags, key, item)
    {
        if (strcmp(key, "error") != 0)
            put_pair(chart, i, key, json_is_string(item) ? json_string_value(item) : "?");
    }
}

static void put_node(const struct chart *chart, uint32_t i, bool annotations)
{
    const struct json_span *span = span_of(chart->model, i);

    put_label(chart, i);
    put_time(span->start_ns - chart->trace->start_ns, span->start_ns != 0);
    put_time(span->duration_ns, span->duration_ns != 0);
    if (chart->has_usage) {
        const struct thread_time time = thread_time_of(span);

        put_usage_cell("-", time.is_known, time.on_cpu_us);
        put_usage_cell(time.is_known ? "off" : "-", time.is_apart, time.waiting_us);
        put_usage_cell("-", time.is_known, time.blocked_us);
    }
    putchar(' ');
    if (span->start_ns)
        put_bar(chart, span);
    putchar('\n');
    if (node_at(chart, i)->is_orphan)
        put_pair(chart, i, "parent missing", span->parent);
    if (span->error)
        put_pair(chart, i, "! error", span->error);
    if (annotations)
        put_details(chart, i);
}

/* ---- the whole drawing */

static struct chart layout(const struct trace *trace, const struct trace_model *model, size_t width)
{
    struct chart chart = {trace, model, width, DRAW_LABEL_MIN, BAR_MIN, false, DRAW_DEPTH_MAX};
    size_t fixed = 2 * (TIME_COLUMNS + 1) + 3; /* two times, a space, the ends of the bar */
    size_t limit;

    for (uint32_t i = 0; i < model->count; i++) {
        const size_t wanted = label_columns(&chart, i);

        chart.label = wanted > chart.label ? wanted : chart.label;
        chart.has_usage = chart.has_usage || thread_time_of(span_of(model, i)).is_known;
    }
    fixed += chart.has_usage ? USAGE_COLUMNS : 0;
    limit = width > fixed ? (width - fixed) * 2 / 3 : 0;
    if (chart.label > limit) {
        chart.label = limit > DRAW_LABEL_MIN ? limit : DRAW_LABEL_MIN;
        chart.levels = (uint32_t)(chart.label - DRAW_LABEL_MIN) / DRAW_INDENT;
    }
    if (width > fixed + chart.label + BAR_MIN)
        chart.bar = width - fixed - chart.label;
    return chart;
}

/* Prints the parts of the span's self time, or of the whole time of the enclosing span. */
static void put_time_parts(const struct trace_model *model, uint32_t longest)
{
    struct thread_time_part parts[THREAD_TIME_PARTS];
    uint32_t around;
    const size_t count = thread_time_split(model, longest, &around, parts);

    if (count && around != longest) {
        fputs("; all of ", stdout);
        put_text(span_of(model, around)->name, SIZE_MAX);
    }
    for (size_t i = 0; i < count; i++)
        printf("%s%s %s", i ? ", " : ": ", parts[i].what, time_text(parts[i].us).text);
}

/* Prints the whole name, also beyond the width. */
static void put_span(const struct json_span *span)
{
    put_text(span->service, SIZE_MAX);
    fputs(span->service[0] && span->name[0] ? ": " : "", stdout);
    put_text(span->name[0] || span->service[0] ? span->name : span->id, SIZE_MAX);
}

/* Prints the span with the longest self time. */
static void put_longest(const struct trace *trace, const struct trace_model *model)
{
    const uint32_t longest = model->longest_self;
    uint32_t other;

    if (longest == TRACE_NONE || trace->count < 2)
        return;
    other = trace_other_side(model, longest);
    fputs("\nlongest self time: ", stdout);
    put_span(span_of(model, longest));
    printf(", %s of %s", time_text(model->nodes[longest].self_ns / 1000).text,
           time_text((trace->end_ns - trace->start_ns) / 1000).text);
    if (other != TRACE_NONE) {
        fputs(" (on the way to ", stdout);
        put_text(span_of(model, other)->service, SIZE_MAX);
        putchar(')');
    }
    put_time_parts(model, longest);
    putchar('\n');
}

/* Prints the host's unusual values during the span or its enclosing span. Prints nothing if there
 * were none. */
static void put_host(const struct trace_model *model, uint32_t i, const char *before)
{
    const uint32_t service = model->spans[i].service;
    const struct json_span *span;
    const char *found;

    do {
        span = span_of(model, i);
        found = json_string_value(json_object_get(json_object_get(span->json, "tags"), HOST_TAG));
        i = model->nodes[i].parent;
    } while (!found && i != TRACE_NONE && model->spans[i].service == service);
    if (!found)
        return;
    printf("%swhile ", before);
    put_span(span);
    fputs(" ran, ", stdout);
    put_text(found, SIZE_MAX);
    putchar('\n');
}

void draw(const struct trace *trace, const struct trace_model *model, size_t width,
          bool annotations)
{
    const struct chart chart = layout(trace, model, width);
    const size_t services = trace_services(trace);
    const uint32_t longest = model->longest_self;

    printf("trace %s: %zu span%s of %zu service%s, %s, %s", trace->id, trace->count,
           trace->count == 1 ? "" : "s", services, services == 1 ? "" : "s",
           time_text((trace->end_ns - trace->start_ns) / 1000).text,
           date_text(trace->start_ns, 6).text);
    if (trace->errors)
        printf(", %zu with an error", trace->errors);
    fputs("\n\n", stdout);
    put_spaces(chart.label - put_text("service: span", chart.label));
    printf(" %*s %*s", TIME_COLUMNS, "start", TIME_COLUMNS, "duration");
    if (chart.has_usage) {
        put_usage_cell("on CPU", false, 0);
        put_usage_cell("wait", false, 0);
        put_usage_cell("block", false, 0);
    }
    putchar('\n');
    for (uint32_t i = model->first_top; i != TRACE_NONE; i = trace_model_next(model, i))
        put_node(&chart, i, annotations);
    put_longest(trace, model);
    if (longest == TRACE_NONE)
        return;
    put_host(model, longest, trace->count < 2 ? "\n" : "");
    if (trace_other_side(model, longest) != TRACE_NONE) /* network time */
        put_host(model, trace_other_side(model, longest), "");
}

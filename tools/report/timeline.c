/*
 * A trace as a timeline: a line for each span, with a bar, and details that open by a click.
 *
 * A bar is pale while a child is open, and full for the span's self time. Spans with usage tags
 * have columns for their thread's time. For a large trace, shows only failed spans and the longest
 * ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include "tools/base/text.h"
#include "tools/trace/traces.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENTS_MAX        40 /* of self time in a bar */
#define MARKS_MAX           24 /* annotations on a bar */
#define TIMELINE_LEVELS_MAX 12 /* indented levels */
#define KEY_COLUMNS         60
#define TEXT_COLUMNS        240
#define TICKS               4

/* The columns for the threads' time. */
enum usage_columns {
    USAGE_NONE,
    USAGE_OFF_CPU, /* on a CPU, off a CPU */
    USAGE_APART,   /* on a CPU, waiting for one, blocked */
};

struct timeline {
    struct report_page *page;
    const struct trace_model *model;
    double total_ns;
    enum usage_columns usage;
};

static struct figure time_of(int64_t ns)
{
    return figure_time(ns, FIGURE_PAGE);
}

/* ---- the choice of spans */

struct choice {
    uint32_t node;
    bool is_error;
    int64_t duration_ns;
};

static int span_by_duration(const void *a, const void *b)
{
    const struct choice *left = a, *right = b;

    if (left->duration_ns != right->duration_ns)
        return left->duration_ns > right->duration_ns ? -1 : 1;
    return (left->node > right->node) - (left->node < right->node);
}

static int by_error(const void *a, const void *b)
{
    const struct choice *left = a, *right = b;

    if (left->is_error != right->is_error)
        return left->is_error ? -1 : 1;
    return span_by_duration(a, b);
}

/* Chooses spans in order until `max` spans are chosen. Returns the number of chosen spans. */
static size_t choose(const struct choice *choices, size_t count, size_t max, size_t chosen,
                     bool *is_shown)
{
    for (size_t i = 0; i < count && chosen < max; i++) {
        chosen += !is_shown[choices[i].node];
        is_shown[choices[i].node] = true;
    }
    return chosen;
}

/* Chooses at most `max` spans: the longest self time, failed spans up to half of `max`, then the
 * longest spans. Returns a flag for each node, which the caller frees; NULL: out of memory. */
static bool *shown_spans(const struct trace_model *model, size_t max)
{
    struct choice *choices = calloc(model->count + 1, sizeof(*choices));
    bool *is_shown = calloc(model->count + 1, sizeof(*is_shown));
    size_t chosen = 0;

    for (uint32_t i = 0; choices && i < model->count; i++)
        choices[i] = (struct choice){i, model->spans[i].is_error, model->spans[i].duration_ns};
    if (choices && is_shown) {
        if (model->longest_self != TRACE_NONE) {
            is_shown[model->longest_self] = true;
            chosen++;
        }
        qsort(choices, model->count, sizeof(*choices), by_error);
        chosen = choose(choices, model->errors, max / 2, chosen, is_shown);
        qsort(choices, model->count, sizeof(*choices), span_by_duration);
        (void)choose(choices, model->count, max, chosen, is_shown);
    } else {
        free(is_shown);
        is_shown = NULL;
    }
    free(choices);
    return is_shown;
}

/* ---- bars */

static double percent(const struct timeline *timeline, int64_t ns)
{
    const double share = timeline->total_ns > 0 ? (double)ns * 100 / timeline->total_ns : 0;

    return share < 0 ? 0 : share > 100 ? 100 : share;
}

struct segments {
    int64_t least_ns; /* leaves out shorter segments */
    size_t count;
    struct {
        int64_t from, to;
    } all[SEGMENTS_MAX];
};

/* Returns false if the bar has SEGMENTS_MAX segments already. */
static bool add_segment(struct segments *segments, int64_t from, int64_t to)
{
    if (to - from < segments->least_ns || to <= from)
        return true;
    if (segments->count == SEGMENTS_MAX)
        return false;
    segments->all[segments->count].from = from;
    segments->all[segments->count++].to = to;
    return true;
}

/* Finds the times without an open child. Children are sorted by start. Returns false if there are
 * too many of these times. */
static bool find_segments(const struct trace_model *model, uint32_t node, struct segments *segments)
{
    const struct trace_span *span = &model->spans[node];
    const int64_t end = span->start_ns + span->duration_ns;
    int64_t reached = span->start_ns;

    segments->count = 0;
    for (uint32_t i = model->nodes[node].first_child; i != TRACE_NONE; i = model->nodes[i].next) {
        const struct trace_span *child = &model->spans[i];
        const int64_t child_end = child->start_ns + child->duration_ns;

        if (child->start_ns == 0)
            break;
        if (!add_segment(segments, reached, child->start_ns < end ? child->start_ns : end))
            return false;
        if (child_end > reached)
            reached = child_end < end ? child_end : end;
    }
    return add_segment(segments, reached, end);
}

static void put_marks(const struct timeline *timeline, const struct json_span *span)
{
    const json_t *annotations = json_object_get(span->json, "annotations");
    const json_t *annotation;
    size_t i;

    json_array_foreach(annotations, i, annotation)
    {
        const json_int_t us = json_integer_value(json_object_get(annotation, "timestamp"));
        const json_int_t start_us = timeline->model->start_ns / 1000;

        if (i == MARKS_MAX)
            break;
        if (us >= start_us && us <= timeline->model->end_ns / 1000)
            fprintf(timeline->page->file, "<i class=\"mk\" style=\"left:%.2f%%\"></i>",
                    percent(timeline, (us - start_us) * 1000));
    }
}

static void put_bar(const struct timeline *timeline, uint32_t node, unsigned colour)
{
    const struct trace_model *model = timeline->model;
    const struct trace_span *span = &model->spans[node];
    /* a shorter segment is less than a pixel of a bar of 600 pixels */
    struct segments segments = {.least_ns = (int64_t)(timeline->total_ns / 600)};
    FILE *file = timeline->page->file;

    fputs("<span class=\"br\">", file);
    if (span->start_ns) {
        const bool is_own = model->nodes[node].self_ns == span->duration_ns;

        fprintf(file, "<i class=\"%s c%u\" style=\"left:%.2f%%;width:%.2f%%\"></i>",
                is_own ? "bs" : "bb", colour, percent(timeline, span->start_ns - model->start_ns),
                percent(timeline, span->duration_ns));
        while (!find_segments(model, node, &segments))
            segments.least_ns = 2 * segments.least_ns + 1;
        for (size_t i = 0; !is_own && i < segments.count; i++)
            fprintf(file, "<i class=\"bs c%u\" style=\"left:%.2f%%;width:%.2f%%\"></i>", colour,
                    percent(timeline, segments.all[i].from - model->start_ns),
                    percent(timeline, segments.all[i].to - segments.all[i].from));
        put_marks(timeline, span->of);
    }
    fputs("</span>", file);
}

/* ---- the threads' time */

static enum usage_columns usage_columns_of(const struct trace_model *model, const bool *is_shown)
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

static void put_usage_cell(FILE *file, const char *what, int64_t us, bool is_known)
{
    fprintf(file, "<span data-l=\"%s\"><span class=\"vh\">%s </span>%s</span>", what, what,
            is_known ? time_of(us * 1000).text : "–");
}

static void put_usage(const struct report_page *page, const struct trace_model *model,
                      uint32_t node, enum usage_columns columns)
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

static void put_usage_words(const struct report_page *page, const struct trace_model *model,
                            uint32_t longest)
{
    struct thread_time_part parts[THREAD_TIME_PARTS];
    uint32_t around;
    const size_t count = thread_time_split(model, longest, &around, parts);

    if (count && around != longest) {
        fputs("; all of ", page->file);
        put_name(page, model->spans[around].name);
    }
    for (size_t i = 0; i < count; i++)
        fprintf(page->file, "%s%s %s", i ? ", " : ": ", parts[i].what,
                time_of(parts[i].us * 1000).text);
}

/* ---- tags and annotations */

static void put_term(const struct timeline *timeline, const char *term)
{
    fputs("<dt><bdi>", timeline->page->file);
    markup_put(timeline->page->file, term, KEY_COLUMNS);
    fputs("</bdi></dt><dd>", timeline->page->file);
}

static void put_pair(const struct timeline *timeline, const char *term, const char *text)
{
    put_term(timeline, term);
    fputs("<bdi>", timeline->page->file);
    markup_put(timeline->page->file, text, TEXT_COLUMNS);
    fputs("</bdi></dd>", timeline->page->file);
}

static void put_endpoint(const struct timeline *timeline, const struct json_span *span,
                         const char *term, const char *member)
{
    char text[256];

    if (trace_endpoint(span, member, text))
        put_pair(timeline, term, text);
}

/* Counts one more detail. Returns false at the page's limit. */
static bool may_add(const struct timeline *timeline)
{
    struct report_page *page = timeline->page;

    if (page->details_left == 0) {
        page->details_missing++;
        return false;
    }
    page->details_left--;
    return true;
}

static void put_annotation(const struct timeline *timeline, const struct json_span *span,
                           const json_t *annotation)
{
    const char *text = json_string_value(json_object_get(annotation, "value"));
    const json_int_t us = json_integer_value(json_object_get(annotation, "timestamp"));
    const json_int_t start_us = span->start_ns / 1000;
    FILE *file = timeline->page->file;

    if (!may_add(timeline))
        return;
    if (us > 0 && us < INT64_MAX / 1000 && start_us)
        fprintf(file, "<dt>%s%s</dt><dd><bdi>", us < start_us ? "-" : "+",
                time_of((us < start_us ? start_us - us : us - start_us) * 1000).text);
    else
        fputs("<dt>?</dt><dd><bdi>", file);
    markup_put(file, text ? text : "?", TEXT_COLUMNS);
    fputs("</bdi></dd>", file);
}

static void put_details(const struct timeline *timeline, uint32_t node)
{
    const struct trace_node *in_tree = &timeline->model->nodes[node];
    const struct json_span *span = span_of(timeline->model, node);
    const json_t *tags = json_object_get(span->json, "tags");
    const char *key;
    json_t *item;
    size_t i;

    fputs("<dl>", timeline->page->file);
    if (span->error)
        put_pair(timeline, "error", span->error[0] ? span->error : "(no text)");
    if (in_tree->is_orphan)
        put_pair(timeline, "parent missing", span->parent);
    if (span->start_ns && timeline->model->start_ns) {
        put_term(timeline, "begins at");
        fprintf(timeline->page->file, "+%s</dd>",
                time_of(span->start_ns - timeline->model->start_ns).text);
    }
    put_pair(timeline, "span", span->id);
    if (span->kind[0])
        put_pair(timeline, "kind", span->kind);
    put_endpoint(timeline, span, "endpoint", "localEndpoint");
    put_endpoint(timeline, span, "remote", "remoteEndpoint");
    json_array_foreach(json_object_get(span->json, "annotations"), i, item)
        put_annotation(timeline, span, item);
    json_object_foreach((json_t *)tags, key, item)
    {
        if (strcmp(key, "error") != 0 && may_add(timeline))
            put_pair(timeline, key, json_is_string(item) ? json_string_value(item) : "?");
    }
    fputs("</dl>", timeline->page->file);
}

/* ---- lines */

static void put_line(const struct timeline *timeline, uint32_t node)
{
    const struct report_page *page = timeline->page;
    const struct trace_node *in_tree = &timeline->model->nodes[node];
    const struct trace_span *span = &timeline->model->spans[node];
    const unsigned colour = landscape_colour_of_name(&page->landscape, span->service);
    FILE *file = page->file;

    fprintf(file,
            "<details class=\"r\"><summary><span class=\"nm\" style=\"--d:%u\"><i class=\"sw "
            "c%u\"></i>",
            in_tree->depth < TIMELINE_LEVELS_MAX ? in_tree->depth : TIMELINE_LEVELS_MAX, colour);
    if (span->is_error)
        fputs("<b class=\"x\">failed</b> ", file);
    fputs("<span class=\"sv\">", file);
    put_name(page, span->service);
    fputs("</span> ", file);
    put_name(page, span->name);
    fputs("</span>", file);
    put_bar(timeline, node, colour);
    fprintf(file,
            "<span class=\"du\"><span class=\"vh\">duration </span>%s</span>"
            "<span class=\"se\"><span class=\"vh\">self </span>%s</span>",
            span->duration_ns ? time_of(span->duration_ns).text : "?",
            span->duration_ns ? time_of(in_tree->self_ns).text : "?");
    put_usage(page, timeline->model, node, timeline->usage);
    fputs("</summary>", file);
    put_details(timeline, node);
    fputs("</details>\n", file);
}

static void put_axis(const struct timeline *timeline)
{
    FILE *file = timeline->page->file;

    fputs("<div class=\"r ah\" aria-hidden=\"true\"><span class=\"nm\">service and span</span>"
          "<span class=\"br\">",
          file);
    for (int i = 0; i <= TICKS; i++)
        fprintf(file, "<span class=\"tk%s\" style=\"left:%d%%\">%s</span>",
                i == 0       ? " tf"
                : i == TICKS ? " te"
                             : "",
                i * 100 / TICKS, time_of((int64_t)(timeline->total_ns * i / TICKS)).text);
    fputs("</span><span class=\"du\">duration</span><span class=\"se\">self</span>", file);
    if (timeline->usage != USAGE_NONE)
        fprintf(file, "<span class=\"us\"><span>on CPU</span>%s</span>",
                timeline->usage == USAGE_APART ? "<span>waiting</span><span>blocked</span>"
                                               : "<span>off CPU</span>");
    fputs("</div>\n", file);
}

static void put_longest_self(const struct timeline *timeline)
{
    const struct report_page *page = timeline->page;
    const struct trace_model *model = timeline->model;
    const uint32_t node = model->longest_self;
    uint32_t other;

    if (node == TRACE_NONE || model->count < 2)
        return;
    other = trace_other_side(model, node);
    fputs("<p class=\"cu\">Longest self time: <b>", page->file);
    put_name(page, model->spans[node].service);
    fputs(" ", page->file);
    put_name(page, model->spans[node].name);
    fprintf(page->file, "</b>, %s of %s", time_of(model->nodes[node].self_ns).text,
            time_of((int64_t)timeline->total_ns).text);
    if (other != TRACE_NONE) {
        fputs(" (on the way to ", page->file);
        put_name(page, model->spans[other].service);
        fputs(")", page->file);
    }
    put_usage_words(page, model, node);
    fputs("</p>\n", page->file);
}

bool put_timeline(struct report_page *page, const char *trace_id, const struct trace_model *linked,
                  size_t max_spans, bool is_open)
{
    struct timeline timeline = {
        .page = page, .model = linked, .total_ns = (double)(linked->end_ns - linked->start_ns)};
    bool *is_shown = shown_spans(linked, max_spans);
    const struct trace_span *root = &linked->spans[linked->first_top];

    if (!is_shown)
        return false;
    timeline.usage = usage_columns_of(linked, is_shown);
    fprintf(page->file, "<details class=\"tr\"%s><summary><b>%s</b> ", is_open ? " open" : "",
            time_of(linked->end_ns - linked->start_ns).text);
    put_name(page, root->service);
    fputs(" ", page->file);
    put_name(page, root->name);
    fprintf(page->file, " <span class=\"fg\">%s span%s", figure_count(linked->count).text,
            linked->count == 1 ? "" : "s");
    if (linked->errors)
        fprintf(page->file, ", <span class=\"x\">%s failed</span>",
                figure_count(linked->errors).text);
    if (!trace_model_is_whole(linked))
        fputs(", incomplete", page->file);
    fprintf(page->file, " · %s</span></summary>\n<p class=\"fg\">trace <code>%s</code></p>\n",
            date_text(linked->start_ns, 3).text, trace_id);
    put_longest_self(&timeline);
    fprintf(page->file, "<div class=\"tl%s\">\n",
            timeline.usage == USAGE_NONE    ? ""
            : timeline.usage == USAGE_APART ? " u3"
                                            : " u2");
    put_axis(&timeline);
    for (uint32_t node = linked->first_top; node != TRACE_NONE;
         node = trace_model_next(linked, node)) {
        if (is_shown[node])
            put_line(&timeline, node);
    }
    fputs("</div>\n", page->file);
    if (timeline.usage != USAGE_NONE)
        fputs("<p class=\"fg\">The times on and off a CPU are those of the span's thread, without "
              "children that have such times of their own. –: unknown.</p>\n",
              page->file);
    if (linked->count > max_spans)
        fprintf(page->file,
                "<p class=\"fg\">Shown are %s of %s spans: failed ones, and the longest."
                "</p>\n",
                figure_count(max_spans).text, figure_count(linked->count).text);
    fputs("</details>\n", page->file);
    free(is_shown);
    return true;
}

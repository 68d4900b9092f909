/*
 * blkin report: a page of HTML about traces. This file has the command, and the page except its
 * histograms (latencies.c) and timelines (timeline.c). The page loads nothing and has no scripts.
 * Its content security policy forbids scripts, in case a text of a trace is not escaped.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include "tools/base/commands.h"
#include "tools/base/output.h"
#include "tools/base/text.h"
#include "tools/trace/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_SERVICES_MAX 40   /* in the graph */
#define PAGE_SPANS_MAX    200  /* of a trace */
#define DETAILS_MAX       6000 /* tags and annotations of the page */
#define SOURCE_COLUMNS    200

/* Light or dark as the browser prefers, for a width of 400 pixels or more. */
static const char page_style[] =
#include "tools/report/page.css.inc"
    ;

void put_name(const struct report_page *page, uint32_t name)
{
    const struct text text = names_text(statistics_names(page->statistics), name);

    if (name == NAMES_OTHER) {
        fputs("(other names)", page->file);
    } else if (text.length == 0) {
        fputs("(no name)", page->file);
    } else {
        fputs("<bdi>", page->file);
        markup_put(page->file, text.data, REPORT_NAME_COLUMNS);
        fputs("</bdi>", page->file);
    }
}

/* ---- head */

static void put_tile(FILE *file, const char *title, struct figure figure, bool is_bad,
                     const char *more)
{
    fprintf(file, "<div><dt>%s</dt><dd%s>%s<small>%s</small></dd></div>", title,
            is_bad ? " class=\"x\"" : "", figure.text, more);
}

static void put_tiles(const struct report_page *page)
{
    const struct landscape *landscape = &page->landscape;
    const bool has_rates = graph_has_rates(landscape);
    FILE *file = page->file;
    char text[96] = "";

    fputs("<dl class=\"ti\">", file);
    if (has_rates)
        snprintf(text, sizeof(text), "%s a second",
                 figure_number((double)landscape->traces / landscape->seconds).text);
    if (landscape->traces)
        put_tile(file, "traces", figure_count(landscape->traces), false, text);
    if (has_rates)
        snprintf(text, sizeof(text), "%s a second",
                 figure_number((double)landscape->spans / landscape->seconds).text);
    put_tile(file, "spans", figure_count(landscape->spans), false, text);
    snprintf(text, sizeof(text), "%s of the spans",
             figure_share((double)landscape->errors, (double)landscape->spans).text);
    put_tile(file, "failed spans", figure_count(landscape->errors), landscape->errors > 0, text);
    snprintf(text, sizeof(text), "%zu pair%s with calls", landscape->calls_count,
             landscape->calls_count == 1 ? "" : "s");
    put_tile(file, "services", figure_count(landscape->services_count), false, text);
    if (page->traces.count) {
        snprintf(text, sizeof(text), "p99 %s",
                 figure_quantile(&page->traces, 0.99, FIGURE_PAGE).text);
        put_tile(file, "p50 of traces", figure_quantile(&page->traces, 0.5, FIGURE_PAGE), false,
                 text);
        put_tile(file, "slowest trace", figure_quantile(&page->traces, 1, FIGURE_PAGE), false, "");
    }
    fputs("</dl>\n", file);
}

static void put_head(const struct report_page *page, bool has_traces)
{
    FILE *file = page->file;

    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" "
          "content=\"default-src 'none';style-src 'unsafe-inline'\">\n<title>BlkKin: ",
          file);
    markup_put(file, page->source, SOURCE_COLUMNS);
    fputs("</title>\n", file);
    fprintf(file, "<style>%s</style>\n", page_style);
    fputs("</head>\n<body>\n<header>\n<h1><bdi>", file);
    markup_put(file, page->source, SOURCE_COLUMNS);
    fputs("</bdi></h1>\n", file);
    if (page->start_ns)
        fprintf(file, "<div class=\"fg\">%s to %s, %s</div>\n", date_text(page->start_ns, 3).text,
                date_text(page->end_ns, 3).text,
                figure_time(page->end_ns - page->start_ns, FIGURE_PAGE).text);
    put_tiles(page);
    fputs("<nav aria-label=\"sections\"><a href=\"#self\">Where the time goes</a>"
          "<a href=\"#graph\">Who calls whom</a><a href=\"#latency\">How long it takes</a>",
          file);
    if (has_traces)
        fputs("<a href=\"#traces\">The slowest traces</a>", file);
    fputs("</nav>\n</header>\n<main>\n", file);
}

/* ---- graph */

/* Puts a cell; a narrow screen shows the cell's title beside it. */
static void put_cell(const struct report_page *page, const char *title, struct figure figure,
                     bool is_bad)
{
    fprintf(page->file, "<td role=\"cell\" data-l=\"%s\"%s>%s</td>", title,
            is_bad ? " class=\"x\"" : "", figure.text);
}

static void put_table(const struct report_page *page, const char *kind, const char *const *titles,
                      size_t count)
{
    fprintf(page->file,
            "<table class=\"%s\" role=\"table\"><thead role=\"rowgroup\"><tr role=\"row\">", kind);
    for (size_t i = 0; i < count; i++)
        fprintf(page->file, "<th role=\"columnheader\" scope=\"col\">%s</th>", titles[i]);
    fputs("</tr></thead>\n<tbody role=\"rowgroup\">\n", page->file);
}

static void put_call(const struct report_page *page, const struct landscape_call *call)
{
    const struct landscape *landscape = &page->landscape;
    FILE *file = page->file;

    fputs("<tr role=\"row\"><th role=\"rowheader\" scope=\"row\"><bdi>", file);
    markup_put(file, landscape->services[call->from].name, REPORT_NAME_COLUMNS);
    fputs("</bdi> → <bdi>", file);
    markup_put(file, landscape->services[call->to].name, REPORT_NAME_COLUMNS);
    fputs("</bdi></th>", file);
    put_cell(page, "calls", figure_count(call->calls), false);
    put_cell(page, "errors", figure_count(call->errors), call->errors > 0);
    put_cell(page, "p50", figure_quantile(&call->duration, 0.5, FIGURE_PAGE), false);
    put_cell(page, "p99", figure_quantile(&call->duration, 0.99, FIGURE_PAGE), false);
    put_cell(page, "max", figure_quantile(&call->duration, 1, FIGURE_PAGE), false);
    fputs("</tr>\n", file);
}

static void put_calls(const struct report_page *page, bool is_open)
{
    static const char *const titles[] = {"caller → callee", "calls", "errors", "p50", "p99", "max"};
    FILE *file = page->file;

    if (page->landscape.calls_count == 0)
        return;
    fprintf(file, "<details%s><summary>The calls as a table</summary>\n", is_open ? " open" : "");
    put_table(page, "cl", titles, sizeof(titles) / sizeof(titles[0]));
    for (size_t i = 0; i < page->landscape.calls_count; i++)
        put_call(page, &page->landscape.calls[i]);
    fputs("</tbody></table></details>", file);
}

static void put_graph(const struct report_page *page)
{
    FILE *file = page->file;
    enum graph_drawn drawn;

    fputs("<section id=\"graph\"><h2>Who calls whom</h2><p>On the arrows: calls, and the duration "
          "that the called "
          "service measured. In the boxes: the service's share of all self time. Red lines: 1 % or "
          "more of the calls or spans fail.</p>\n"
          "<div class=\"gr\" tabindex=\"0\" role=\"group\" aria-label=\"service graph\">\n",
          file);
    drawn = graph_draw(file, &page->landscape, true);
    if (drawn == GRAPH_WITHOUT_DOT)
        fputs("<p>No picture: the command <code>dot</code> was not on the PATH. The package "
              "graphviz has it.</p>\n",
              file);
    else if (drawn == GRAPH_NOT_DRAWN)
        fputs("<p>No picture: <code>dot -Tsvg</code> failed.</p>\n", file);
    fputs("</div>\n", file);
    put_calls(page, drawn != GRAPH_DRAWN);
    fputs("</section>\n", file);
}

/* ---- the table of operations: a row for each service and span name --------------------------- */

#define ROWS_MAX 50

/* Writes all columns except the first. The longest self time has the longest bar. */
static void put_cells(const struct report_page *page, const struct statistics_row *row,
                      double longest_ns)
{
    const double share = longest_ns > 0 ? row->self.sum / longest_ns : 0;
    FILE *file = page->file;

    fprintf(file,
            "<td role=\"cell\" data-l=\"share of all self time\" class=\"sh\">"
            "<span class=\"bar\"><i class=\"c%u\" style=\"width:%.2f%%\"></i></span>%s</td>",
            row->service == NAMES_OTHER ? LANDSCAPE_COLOURS - 1
                                        : landscape_colour_of_name(&page->landscape, row->service),
            share * 100, figure_share(row->self.sum, page->landscape.self_ns).text);
    put_cell(page, "self p50", figure_quantile(&row->self, 0.5, FIGURE_PAGE), false);
    put_cell(page, "self p99", figure_quantile(&row->self, 0.99, FIGURE_PAGE), false);
    put_cell(page, "spans", figure_count(row->spans), false);
    put_cell(page, "errors", figure_count(row->errors), row->errors > 0);
    put_cell(page, "p50", figure_quantile(&row->duration, 0.5, FIGURE_PAGE), false);
    put_cell(page, "p99", figure_quantile(&row->duration, 0.99, FIGURE_PAGE), false);
    put_cell(page, "max", figure_quantile(&row->duration, 1, FIGURE_PAGE), false);
    fputs("</tr>\n", file);
}

static void operation_put_row(const struct report_page *page, const struct statistics_row *row,
                              double longest_ns)
{
    fprintf(page->file,
            "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\"><i class=\"sw c%u\"></i>"
            "<span class=\"sv\">",
            landscape_colour_of_name(&page->landscape, row->service));
    put_name(page, row->service);
    fputs("</span> ", page->file);
    put_name(page, row->name);
    fputs("</th>", page->file);
    put_cells(page, row, longest_ns);
}

/* Writes the operations beyond the limit as one row. */
static bool put_rest(const struct report_page *page, const struct operation *rows, size_t count,
                     double longest_ns)
{
    struct statistics_row rest = {.service = NAMES_OTHER, .name = NAMES_OTHER};
    const bool is_done = operations_sum(rows, count, &rest);

    if (is_done) {
        fprintf(page->file,
                "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\"><i class=\"sw c%d\"></i>"
                "%s more</th>",
                LANDSCAPE_COLOURS - 1, figure_count(count).text);
        put_cells(page, &rest, rest.self.sum > longest_ns ? rest.self.sum : longest_ns);
    }
    histogram_clear(&rest.duration);
    histogram_clear(&rest.self);
    return is_done;
}

/* Writes the table of operations, the most self time first. Returns false when out of memory. */
static bool put_operations(const struct report_page *page)
{
    static const char *const titles[] = {"service and span",
                                         "share of all self time",
                                         "self p50",
                                         "self p99",
                                         "spans",
                                         "errors",
                                         "p50",
                                         "p99",
                                         "max"};
    size_t count, shown;
    struct operation *rows =
        operations(page->statistics, STATISTICS_ROWS, OPERATIONS_BY_SELF, NULL, &count);
    const double longest_ns = rows && count ? rows[0].row->self.sum : 0;
    bool is_done = rows != NULL;

    if (!is_done)
        return false;
    fputs("<section id=\"self\"><h2>Where the time goes</h2>"
          "<p>Self time is the duration of a span without the times in which a child was running. "
          "For a span that calls another service, self time is the time on the network and in that "
          "service's queues.</p>\n",
          page->file);
    put_table(page, "ops", titles, sizeof(titles) / sizeof(titles[0]));
    shown = count > ROWS_MAX + 1 ? ROWS_MAX : count;
    for (size_t i = 0; i < shown; i++)
        operation_put_row(page, rows[i].row, longest_ns);
    if (shown < count)
        is_done = put_rest(page, rows + shown, count - shown, longest_ns);
    fputs("</tbody></table></section>\n", page->file);
    free(rows);
    return is_done;
}

/* ---- traces */

static int64_t duration_of(const struct trace *trace)
{
    return trace->end_ns - trace->start_ns;
}

static int trace_by_duration(const void *a, const void *b)
{
    const struct trace *left = *(const struct trace *const *)a;
    const struct trace *right = *(const struct trace *const *)b;

    if (duration_of(left) != duration_of(right))
        return duration_of(left) > duration_of(right) ? -1 : 1;
    return strcmp(left->id, right->id);
}

static bool put_trace(struct report_page *page, struct summary *summary, const struct trace *trace,
                      bool is_open)
{
    return trace_link(trace, summary->names, &summary->model) &&
           put_timeline(page, trace->id, &summary->model, PAGE_SPANS_MAX, is_open);
}

/* Shows failed traces that are not shown yet. */
static bool put_failed(struct report_page *page, struct summary *summary,
                       const struct trace **traces, size_t from, size_t max)
{
    size_t shown = 0;

    for (size_t i = from; i < summary->traces.count && shown < max; i++) {
        if (!traces[i]->errors)
            continue;
        if (shown++ == 0)
            fputs("<section id=\"failed\"><h2>Other traces that failed</h2>"
                  "<p>The slowest of them.</p>\n",
                  page->file);
        if (!put_trace(page, summary, traces[i], false))
            return false;
    }
    if (shown)
        fputs("</section>\n", page->file);
    return true;
}

/* Shows the slowest traces, then at most half as many other traces that failed. */
static bool put_chosen(struct report_page *page, struct summary *summary,
                       const struct trace **traces, size_t max)
{
    const size_t count = summary->traces.count;
    size_t shown = 0;

    fputs("<section id=\"traces\"><h2>The slowest traces</h2><p>Full colour: the span takes the "
          "time by itself. Pale: a child is running. Marks: annotations. A line can be opened: it "
          "then shows tags and annotations.</p>\n",
          page->file);
    for (; shown < count && shown < max; shown++) {
        if (!put_trace(page, summary, traces[shown], shown == 0))
            return false;
    }
    fputs("</section>\n", page->file);
    return put_failed(page, summary, traces, shown, max / 2);
}

static bool put_traces(struct report_page *page, struct summary *summary, size_t max)
{
    const size_t count = summary->traces.count;
    const struct trace **traces = calloc(count + 1, sizeof(*traces));
    bool is_done = traces != NULL;

    for (size_t i = 0; is_done && i < count; i++)
        traces[i] = &summary->traces.traces[i];
    if (is_done) {
        qsort(traces, count, sizeof(*traces), trace_by_duration);
        is_done = put_chosen(page, summary, traces, max);
    }
    free(traces);
    return is_done;
}

/* ---- the whole page */

static void put_end(const struct report_page *page)
{
    fputs("</main>\n<footer>", page->file);
    if (page->details_missing)
        fprintf(page->file, "%s tags and annotations are left out: the page would be too large. ",
                figure_count(page->details_missing).text);
    fputs("Quantiles are off by 0.54&nbsp;% at most, counts are exact. Made by blkin "
          "report " BLKIN_RELEASE ".</footer>\n</body>\n</html>\n",
          page->file);
}

/* Returns false when out of memory. */
static bool page_put(FILE *file, const char *source, struct summary *summary, size_t max_traces)
{
    struct report_page page = {
        .file = file,
        .source = source,
        .start_ns = summary->start_ns,
        .end_ns = summary->end_ns,
        .statistics = summary->statistics,
        .details_left = DETAILS_MAX,
    };
    bool is_done = landscape_make(&page.landscape, summary, PAGE_SERVICES_MAX);

    for (size_t i = 0; is_done && i < summary->traces.count; i++)
        is_done = histogram_add(&page.traces, duration_of(&summary->traces.traces[i]));
    if (is_done) {
        put_head(&page, summary->traces.count > 0 && max_traces > 0);
        is_done = put_operations(&page);
        if (is_done)
            put_graph(&page);
        is_done = is_done && put_latencies(&page) &&
                  (summary->traces.count == 0 || max_traces == 0 ||
                   put_traces(&page, summary, max_traces));
        put_end(&page);
    }
    histogram_clear(&page.traces);
    landscape_destroy(&page.landscape);
    return is_done;
}

/* ---- the command ----------------------------------------------------------------------------- */

#define TRACES_DEFAULT    10
#define REPORT_TRACES_MAX 50

static const char usage[] =
#include "tools/report/usage.txt.inc"
    ;

struct report_options {
    const char *output; /* NULL: standard output */
    const char *title;
    size_t traces;
};

int report_command(int argc, char *argv[])
{
    struct report_options options = {.traces = TRACES_DEFAULT};
    const struct view_option list[] = {
        {"output", VIEW_TEXT, 'o', .value = &options.output},
        {"traces", VIEW_NUMBER, 'n', .value = &options.traces, .min = 0, .max = REPORT_TRACES_MAX},
        {"title", VIEW_TEXT, 0, .value = &options.title},
    };
    const struct view_command command = {usage, list, sizeof(list) / sizeof(list[0]),
                                         1,     1,    "one FILE, FOLDER or URL"};
    int status = view_options(argc, argv, &command);
    const char *source;
    struct summary summary;
    struct output output;

    if (status >= 0)
        return status;
    if (!options.output && isatty(STDOUT_FILENO)) {
        fprintf(stderr, "%s: the output is a terminal, which shows no pages: give --output=FILE\n",
                argv[0]);
        return 2;
    }
    source = argv[optind];
    status = 1;
    if (summary_load(source, true, &summary) && output_open(&output, argv[0], options.output)) {
        const char *title = options.title              ? options.title
                            : strcmp(source, "-") == 0 ? "blkin report"
                                                       : source;

        status = page_put(output.file, title, &summary, options.traces) ? 0 : 1;
        if (status)
            fprintf(stderr, "%s: out of memory\n", argv[0]);
        if (!output_close(&output, status == 0))
            status = 1;
    }
    status = summary_end(&summary, status);
    return status;
}

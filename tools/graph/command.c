/* blkin graph: the calls between services.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include "tools/base/commands.h"
#include "tools/base/output.h"
#include "tools/base/text.h"
#include "tools/trace/options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     200 /* larger pictures are unreadable */

static const char usage[] =
#include "tools/graph/usage.txt.inc"
    ;

enum format { FORMAT_TEXT, FORMAT_SVG, FORMAT_DOT, FORMAT_JSON };

static const char *const formats[] = {"text", "svg", "dot", "json", NULL};

struct graph_options {
    unsigned format;
    size_t limit;
    size_t width;
};

/* ---- the graph in a terminal ----------------------------------------------------------------- */

/*
 * A tree of calls, then a table of the services. Each call, and each root of a tree, is one line,
 * also in a graph with many paths or cycles: a service whose calls are shown elsewhere has a mark.
 */

#define GRAPH_INDENT     3
#define GRAPH_LEVELS_MAX 12 /* indented levels */
#define GRAPH_LABEL_MIN  9
#define CELL             9
#define CELLS            5

struct drawing {
    const struct landscape *landscape;
    size_t label;
    size_t levels;  /* indented levels: fewer if names need the room */
    bool *is_shown; /* for each service: its calls are shown */
    bool *has_more; /* for each level of the tree: further calls follow */
};

static void put_cell(struct figure figure)
{
    printf("%*s", CELL, figure.text);
}

static struct figure rate(const struct drawing *drawing, uint64_t count)
{
    return drawing->landscape->seconds > 0
               ? figure_number((double)count / drawing->landscape->seconds)
               : (struct figure){"-"};
}

static void put_figures(const struct drawing *drawing, uint64_t count, uint64_t errors,
                        const struct histogram *duration)
{
    put_cell(rate(drawing, count));
    put_cell(figure_count(errors));
    put_cell(figure_quantile(duration, 0.5, FIGURE_TEXT));
    put_cell(figure_quantile(duration, 0.99, FIGURE_TEXT));
}

static void put_titles(const struct drawing *drawing, const char *label, const char *last)
{
    put_spaces(drawing->label - put_text(label, drawing->label));
    printf("%*s%*s%*s%*s%*s\n", CELL, "rate/s", CELL, "errors", CELL, "p50", CELL, "p99", CELL,
           last);
}

/* ---- the tree of calls */

/* Does not indent levels beyond the limit. Returns the columns taken. */
static size_t put_branches(const struct drawing *drawing, size_t level)
{
    const bool fancy = has_utf8();
    const size_t shown = level < drawing->levels ? level : drawing->levels;

    for (size_t i = 1; i < shown; i++) {
        if (shown < level)
            fputs(fancy ? "·  " : ".  ", stdout);
        else
            fputs(drawing->has_more[i] ? (fancy ? "│  " : "|  ") : "   ", stdout);
    }
    if (shown)
        fputs(drawing->has_more[level] ? (fancy ? "├─ " : "|- ") : (fancy ? "└─ " : "`- "), stdout);
    return shown * GRAPH_INDENT;
}

static void tree_put_service(const struct drawing *drawing, size_t service, size_t level,
                             bool is_again)
{
    const size_t taken = put_branches(drawing, level);
    const size_t room = drawing->label > taken ? drawing->label - taken : 0;
    const size_t mark = is_again ? 2 : 0;
    const size_t name =
        put_text(drawing->landscape->services[service].name, room > mark ? room - mark : room);

    if (is_again)
        fputs(" *", stdout);
    put_spaces(room > name + mark ? room - name - mark : 0);
}

/* Prints the calls below a service. Returns the number of calls to services that were shown before.
 */
static size_t put_below(struct drawing *drawing, size_t from, size_t level)
{
    const struct landscape *landscape = drawing->landscape;
    const struct landscape_service *caller = &landscape->services[from];
    size_t again = 0;

    drawing->is_shown[from] = true;
    for (size_t i = caller->first_call; i < caller->end_call; i++) {
        const size_t to = landscape->calls[i].to;
        const bool is_again = drawing->is_shown[to] && landscape->services[to].end_call > 0;

        drawing->has_more[level] = i + 1 < caller->end_call;
        tree_put_service(drawing, to, level, is_again);
        put_figures(drawing, landscape->calls[i].calls, landscape->calls[i].errors,
                    &landscape->calls[i].duration);
        put_cell(figure_quantile(&landscape->calls[i].duration, 1, FIGURE_TEXT));
        putchar('\n');
        again += is_again;
        if (!drawing->is_shown[to])
            again += put_below(drawing, to, level + 1);
    }
    return again;
}

/* Prints the trees of the services without callers. For a cycle without a caller, begins with the
 * service with the most spans. */
static void put_calls(struct drawing *drawing)
{
    const struct landscape *landscape = drawing->landscape;
    size_t again = 0;

    if (landscape->calls_count == 0) {
        puts("no service calls another one");
        return;
    }
    put_titles(drawing, "who calls whom", "max");
    for (int is_called = 0; is_called < 2; is_called++) {
        for (size_t i = 0; i < landscape->services_count; i++) {
            if (landscape->services[i].is_called <= (is_called != 0) && !drawing->is_shown[i] &&
                landscape->services[i].end_call > 0) {
                tree_put_service(drawing, i, 0, false);
                putchar('\n');
                again += put_below(drawing, i, 1);
            }
        }
    }
    if (again)
        puts("* the calls of this service are shown above");
}

/* ---- the services */

static void put_services(const struct drawing *drawing)
{
    const struct landscape *landscape = drawing->landscape;

    put_titles(drawing, "service (all its spans)", "self");
    for (size_t i = 0; i < landscape->services_count; i++) {
        const struct landscape_service *service = &landscape->services[i];

        put_spaces(drawing->label - put_text(service->name, drawing->label));
        put_figures(drawing, service->spans, service->errors, &service->duration);
        put_cell(figure_share(service->self_ns, landscape->self_ns));
        putchar('\n');
    }
}

/* ---- the whole text */

/* Makes the tree wide enough for its names at half of the indented levels, if the line has room. */
static void tree_lay_out(struct drawing *drawing, size_t width)
{
    const size_t room = width - CELLS * CELL;
    size_t longest = GRAPH_LABEL_MIN;

    for (size_t i = 0; i < drawing->landscape->services_count; i++) {
        const size_t wanted = columns(drawing->landscape->services[i].name);

        longest = wanted > longest ? wanted : longest;
    }
    drawing->label = longest + (GRAPH_LEVELS_MAX / 2) * GRAPH_INDENT;
    drawing->label = drawing->label < room ? drawing->label : room;
    drawing->levels =
        drawing->label > GRAPH_LABEL_MIN ? (drawing->label - GRAPH_LABEL_MIN) / GRAPH_INDENT : 0;
}

/* Prints a tree and a table in lines of at most `width` columns. Returns false when out of memory.
 */
static bool graph_text(const struct landscape *landscape, size_t width)
{
    const size_t count = landscape->services_count + 3;
    struct drawing drawing = {
        .landscape = landscape,
        .is_shown = calloc(count, sizeof(bool)),
        .has_more = calloc(count, sizeof(bool)),
    };
    const bool has_memory = drawing.is_shown && drawing.has_more;

    if (has_memory) {
        tree_lay_out(&drawing, width);
        printf("%" PRIu64 " span%s", landscape->spans, landscape->spans == 1 ? "" : "s");
        if (landscape->traces)
            printf(" of %" PRIu64 " trace%s", landscape->traces, landscape->traces == 1 ? "" : "s");
        printf(" in %.1f s, %" PRIu64 " with an error\n\n", landscape->seconds, landscape->errors);
        put_calls(&drawing);
        putchar('\n');
        put_services(&drawing);
    }
    free(drawing.is_shown);
    free(drawing.has_more);
    return has_memory;
}

/* ---- the formats ----------------------------------------------------------------------------- */

static bool show_svg(const char *command, const struct landscape *landscape)
{
    switch (graph_draw(stdout, landscape, false)) {
    case GRAPH_DRAWN:
        return true;
    case GRAPH_WITHOUT_DOT:
        fprintf(stderr,
                "%s: --format=svg needs the command \"dot\", which is not on the PATH: install the "
                "package graphviz\n",
                command);
        return false;
    default:
        fprintf(stderr, "%s: \"dot -Tsvg\" did not draw the graph; --format=dot shows its input\n",
                command);
        return false;
    }
}

static bool show(const char *command, const struct graph_options *options,
                 const struct landscape *landscape)
{
    bool is_done;

    switch (options->format) {
    case FORMAT_SVG:
        return show_svg(command, landscape);
    case FORMAT_DOT:
        is_done = graph_dot(stdout, landscape);
        break;
    case FORMAT_JSON:
        is_done = graph_json(landscape);
        break;
    default:
        is_done = graph_text(landscape, options->width ? options->width : screen().width);
        break;
    }
    if (!is_done && !ferror(stdout))
        fprintf(stderr, "%s: out of memory\n", command);
    return is_done;
}

int graph_command(int argc, char *argv[])
{
    struct graph_options options = {.limit = LIMIT_DEFAULT};
    const struct view_option list[] = {
        {"format", VIEW_CHOICE, 'f', .value = &options.format, .choices = formats},
        {"limit", VIEW_NUMBER, 'n', .value = &options.limit, .min = 1, .max = LIMIT_MAX},
        VIEW_WIDTH(&options.width),
        VIEW_ONLY_ASCII,
    };
    const struct view_command command = {usage, list, sizeof(list) / sizeof(list[0]),
                                         1,     1,    "one FILE, FOLDER or URL"};
    int status = view_options(argc, argv, &command);
    struct summary summary;
    struct landscape landscape = {.services = NULL};

    if (status >= 0)
        return status;
    status = 1;
    if (summary_load(argv[optind], true, &summary)) {
        if (!landscape_make(&landscape, &summary, options.limit))
            fprintf(stderr, "%s: out of memory\n", argv[0]);
        else if (show(argv[0], &options, &landscape))
            status = 0;
    }
    landscape_destroy(&landscape);
    status = summary_end(&summary, status);
    return output_flush(argv[0], status);
}

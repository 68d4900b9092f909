/*
 * The service graph for graphviz.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include "markup.h"

#include <stdlib.h>

#define NAME_COLUMNS 100
#define BAD          ", color=\"#c62828\", class=bad"

/* Inside double quotes. dot knows the entities of HTML, and escapes that begin with a backslash. */
static bool dot_put_name(FILE *file, const char *name)
{
    char *safe = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&safe, &size);
    bool is_done;

    if (!memory)
        return false;
    markup_put(memory, name, NAME_COLUMNS);
    is_done = fclose(memory) == 0;
    for (const char *at = safe; is_done && *at; at++)
        fprintf(file, *at == '\\' ? "\\\\" : "%c", *at);
    free(safe);
    return is_done;
}

static void dot_put_times(FILE *file, const struct histogram *duration)
{
    if (duration->count)
        fprintf(file, "\\np50 %s, p99 %s", figure_quantile(duration, 0.5, FIGURE_TEXT).text,
                figure_quantile(duration, 0.99, FIGURE_TEXT).text);
}

static void dot_put_errors(FILE *file, uint64_t errors)
{
    if (errors)
        fprintf(file, ", %s error%s", figure_count(errors).text, errors == 1 ? "" : "s");
}

static bool dot_put_service(FILE *file, const struct landscape *landscape, size_t i)
{
    const struct landscape_service *service = &landscape->services[i];

    fprintf(file, "  s%zu [label=\"", i + 1);
    if (!dot_put_name(file, service->name))
        return false;
    if (service->spans == 0) {
        fputs("\\nnot traced itself\"];\n", file);
        return true;
    }
    fprintf(file, "\\n%s", graph_rate(landscape, service->spans, " spans").text);
    dot_put_errors(file, service->errors);
    dot_put_times(file, &service->duration);
    fprintf(file, "\\nself %s\"%s];\n", figure_share(service->self_ns, landscape->self_ns).text,
            graph_is_bad(service->spans, service->errors) ? BAD : "");
    return true;
}

bool graph_dot(FILE *file, const struct landscape *landscape)
{
    fputs("digraph blkin {\n"
          "  bgcolor=transparent;\n"
          "  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n"
          "  edge [fontname=\"sans-serif\", fontsize=9];\n",
          file);
    for (size_t i = 0; i < landscape->services_count; i++) {
        if (!dot_put_service(file, landscape, i))
            return false;
    }
    for (size_t i = 0; i < landscape->calls_count; i++) {
        const struct landscape_call *call = &landscape->calls[i];

        fprintf(file, "  s%zu -> s%zu [label=\"%s", call->from + 1, call->to + 1,
                graph_rate(landscape, call->calls, "").text);
        dot_put_errors(file, call->errors);
        dot_put_times(file, &call->duration);
        fprintf(file, "\"%s];\n", graph_is_bad(call->calls, call->errors) ? BAD : "");
    }
    fputs("}\n", file);
    return ferror(file) == 0;
}

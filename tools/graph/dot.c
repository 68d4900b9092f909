/*
 * The service graph for graphviz.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include <string.h>

/* In double quotes; a backslash would begin one of graphviz' own escapes. */
static void put_text(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\')
            printf("\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            printf("\\\\x%02x", *at);
        else
            putchar(*at);
    }
}

static void put_times(const struct histogram *duration)
{
    if (duration->count)
        printf("\\np50 %s, p99 %s", figure_quantile(duration, 0.5, FIGURE_TEXT).text,
               figure_quantile(duration, 0.99, FIGURE_TEXT).text);
}

static void dot_put_errors(uint64_t errors)
{
    if (errors)
        printf(", %s error%s", figure_count(errors).text, errors == 1 ? "" : "s");
}

static void dot_put_service(const struct landscape *landscape, size_t i)
{
    const struct landscape_service *service = &landscape->services[i];

    printf("  s%zu [label=\"", i + 1);
    put_text(service->name);
    if (service->spans == 0) {
        puts("\\nnot traced itself\"];");
        return;
    }
    fputs("\\n", stdout);
    fputs(graph_rate(landscape, service->spans, " spans").text, stdout);
    dot_put_errors(service->errors);
    put_times(&service->duration);
    printf("\\nself %s\"%s];\n", figure_share(service->self_ns, landscape->self_ns).text,
           graph_is_bad(service->spans, service->errors) ? ", color=\"#c62828\"" : "");
}

void graph_dot(const struct landscape *landscape)
{
    puts("digraph blkin {\n"
         "  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n"
         "  edge [fontname=\"sans-serif\", fontsize=9];");
    for (size_t i = 0; i < landscape->services_count; i++)
        dot_put_service(landscape, i);
    for (size_t i = 0; i < landscape->calls_count; i++) {
        const struct landscape_call *call = &landscape->calls[i];

        printf("  s%zu -> s%zu [label=\"", call->from + 1, call->to + 1);
        fputs(graph_rate(landscape, call->calls, "").text, stdout);
        dot_put_errors(call->errors);
        put_times(&call->duration);
        printf("\"%s];\n", graph_is_bad(call->calls, call->errors) ? ", color=\"#c62828\"" : "");
    }
    puts("}");
}

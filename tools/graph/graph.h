/*
 * The service graph in its forms. Functions write to the standard output or to `file`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_GRAPH_H
#define BLKIN_TOOLS_GRAPH_H

#include "landscape.h"
#include "tools/trace/figures.h"

#include <stdio.h>

/* Of less than a second a rate says nothing. */
static inline bool graph_has_rates(const struct landscape *landscape)
{
    return landscape->seconds >= 1;
}

/* "120 spans/s", or how many they are where there are no rates. what: "", for calls, or " spans" */
static inline struct figure graph_rate(const struct landscape *landscape, uint64_t count,
                                       const char *what)
{
    const bool has_rates = graph_has_rates(landscape);
    struct figure figure;

    snprintf(figure.text, sizeof(figure.text), "%.20s%s%s",
             has_rates ? figure_number((double)count / landscape->seconds).text
                       : figure_count(count).text,
             *what || has_rates ? what : " calls", has_rates ? "/s" : "");
    return figure;
}

/* So many of them fail that it is shown red: 1 %. */
static inline bool graph_is_bad(uint64_t count, uint64_t errors)
{
    return errors > 0 && errors >= count / 100;
}

/* As a tree and a table in lines of at most `width` columns. Out of memory: returns false. */
bool graph_text(const struct landscape *landscape, size_t width);

/* Input for dot(1) of graphviz. Out of memory, or file cannot be written: returns false. */
bool graph_dot(FILE *file, const struct landscape *landscape);

/* An object in a line, as blkin-graph(1) has it. Out of memory: returns false. */
bool graph_json(const struct landscape *landscape);

enum graph_drawn {
    GRAPH_DRAWN,
    GRAPH_WITHOUT_DOT, /* graphviz is not installed: nothing was written */
    GRAPH_FAILED,      /* dot failed, or there is no memory or room for temporary files */
};

/* Writes SVG that dot(1) draws: a file by itself, or (is_page) an element of a page. */
enum graph_drawn graph_draw(FILE *file, const struct landscape *landscape, bool is_page);

/* argv[0] is how messages begin. Returns the exit status. */
int graph_command(int argc, char *argv[]);

#endif

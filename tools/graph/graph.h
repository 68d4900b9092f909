/* Writes the service graph to the standard output or to `file`, in several formats.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_GRAPH_H
#define BLKIN_TOOLS_GRAPH_H

#include "landscape.h"
#include "tools/trace/figures.h"

#include <stdio.h>

/* A rate needs at least one second of data. */
static inline bool graph_has_rates(const struct landscape *landscape)
{
    return landscape->seconds >= 1;
}

/* Returns "120 spans/s", or the count if there are no rates. what: "" for calls, or " spans" */
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

/* Returns whether at least 1 % failed, which is shown red. */
static inline bool graph_is_bad(uint64_t count, uint64_t errors)
{
    return errors > 0 && errors >= count / 100;
}

/* Prints a tree and a table in lines of at most `width` columns. Returns false when out of memory.
 */
bool graph_text(const struct landscape *landscape, size_t width);

/* Writes input for dot(1) of graphviz. Returns false when out of memory or on a write error. */
bool graph_dot(FILE *file, const struct landscape *landscape);

/* Prints one line of JSON: see blkin-graph(1). Returns false when out of memory. */
bool graph_json(const struct landscape *landscape);

enum graph_drawn {
    GRAPH_DRAWN,
    GRAPH_WITHOUT_DOT, /* graphviz is not installed; nothing was written */
    GRAPH_NOT_DRAWN,   /* dot failed, or no memory or disk space was left */
};

/* Writes SVG by dot(1): a whole file, or (is_page) an element of a page. */
enum graph_drawn graph_draw(FILE *file, const struct landscape *landscape, bool is_page);

/* argv[0]: the prefix of messages. Returns the exit status. */
int graph_command(int argc, char *argv[]);

#endif

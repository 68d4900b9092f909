/* Writes the service graph to the standard output or to `file`, in several formats.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_GRAPH_H
#define BLKIN_TOOLS_GRAPH_H

#include "tools/trace/summary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ---- services and the calls between them, made from statistics ------------------------------- */

/* Times in ns. */
struct landscape_service {
    const char *name; /* for display */
    uint64_t spans;
    uint64_t errors;
    struct histogram duration;   /* of all spans */
    double self_ns;              /* the sum of the spans' self times */
    bool is_called;              /* by another service */
    uint32_t id;                 /* of the name */
    size_t first_call, end_call; /* calls[first_call] to calls[end_call - 1] */
};

struct landscape_call {
    size_t from; /* index of services */
    size_t to;   /* may equal from */
    uint64_t calls;
    uint64_t errors;
    struct histogram duration; /* of the callee's spans; without them, as the caller sees it */
};

struct landscape {
    struct landscape_service *services; /* the most spans first */
    size_t services_count;
    struct landscape_call *calls; /* sorted by from, then most calls first */
    size_t calls_count;
    uint64_t spans; /* this and the next two: of all services */
    uint64_t errors;
    double self_ns;
    uint64_t traces;         /* 0: unknown */
    double seconds;          /* the period; 0: unknown, so there are no rates */
    size_t *service_of_name; /* name id to index of services + 1; 0: none */
    char rest_name[32];
};

/* The number of colours. The last one is for all further services. */
#define LANDSCAPE_COLOURS 8

/* Makes the graph of the `limit` services with most spans, and merges all others into one more
 * service. limit 0: all services. The names live as long as the summary and the landscape. Returns
 * false when out of memory; the caller calls landscape_destroy() in any case. */
bool landscape_make(struct landscape *landscape, const struct summary *summary, size_t limit);
void landscape_destroy(struct landscape *landscape);

unsigned landscape_colour_of_name(const struct landscape *landscape, uint32_t name);

/* ---- writing the graph ----------------------------------------------------------------------- */

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

/* Returns whether the graph shows the errors in red: at least one error, and at least 1 % (rounded
 * down) of the count. */
static inline bool graph_is_bad(uint64_t count, uint64_t errors)
{
    return errors > 0 && errors >= count / 100;
}

/* Writes input for dot(1) of graphviz. Returns false when out of memory or on a write error. */
bool graph_dot(FILE *file, const struct landscape *landscape);

/* Prints one line of JSON: see blkin-graph(1). Returns false when out of memory. */
bool graph_json(const struct landscape *landscape);

/* ---- foreign text in HTML and SVG ------------------------------------------------------------ */

/*
 * Writes any bytes, also for an attribute in double quotes, so that no part is markup or changes
 * the direction of the line. A text of more than max characters ends with an ellipsis. Writes
 * characters that are invisible or forbidden in XML as escapes.
 */
void markup_put(FILE *file, const char *text, size_t max);

enum graph_drawn {
    GRAPH_DRAWN,
    GRAPH_WITHOUT_DOT, /* graphviz is not installed; nothing was written */
    GRAPH_NOT_DRAWN,   /* dot failed, or no memory or disk space was left */
};

/* Writes SVG by dot(1): a whole file, or (is_page) an element of a page. */
enum graph_drawn graph_draw(FILE *file, const struct landscape *landscape, bool is_page);

#endif

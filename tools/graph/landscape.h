/* The service graph: services and the calls between them, made from statistics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LANDSCAPE_H
#define BLKIN_TOOLS_LANDSCAPE_H

#include "tools/trace/summary.h"

#include <stdbool.h>
#include <stddef.h>

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
    struct histogram duration; /* of the server's spans */
};

struct landscape {
    struct landscape_service *services; /* the most spans first */
    size_t services_count;
    struct landscape_call *calls; /* sorted by from, then most calls first */
    size_t calls_count;
    uint64_t spans; /* this and the next two: of all services */
    uint64_t errors;
    double self_ns;
    uint64_t traces; /* 0: unknown */
    double seconds;  /* the period; 0: unknown, so there are no rates */
    size_t *places;  /* name id to index of services + 1; 0: none */
    char rest_name[32];
};

/* The number of colours. The last one is for all further services. */
#define LANDSCAPE_COLOURS 8

/* Makes the graph of the `limit` services with most spans and one for all others; limit 0: all
 * services. The names live as long as the summary. Returns false when out of memory; the caller
 * calls landscape_destroy() in any case. */
bool landscape_make(struct landscape *landscape, const struct summary *summary, size_t limit);
void landscape_destroy(struct landscape *landscape);

unsigned landscape_colour_of_name(const struct landscape *landscape, uint32_t name);

#endif

/*
 * The service graph: services, and who calls whom, made of statistics.
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
    const char *name; /* as it is shown */
    uint64_t spans;
    uint64_t errors;
    struct histogram duration;   /* of all its spans */
    double self_ns;              /* that all of these take by themselves */
    bool is_called;              /* by another service */
    uint32_t id;                 /* of the name */
    size_t first_call, end_call; /* its calls are calls[first_call] to calls[end_call - 1] */
};

struct landscape_call {
    size_t from; /* index of services */
    size_t to;   /* may be the same one */
    uint64_t calls;
    uint64_t errors;
    struct histogram duration; /* of the spans by which they are answered */
};

struct landscape {
    struct landscape_service *services; /* that of most spans first */
    size_t services_count;
    struct landscape_call *calls; /* sorted by from, then most calls first */
    size_t calls_count;
    uint64_t spans; /* these three of all services */
    uint64_t errors;
    double self_ns;
    uint64_t traces; /* 0: not known */
    double seconds;  /* that these took; 0: not known, so there are no rates */
    size_t *places;  /* of services by the number of their name, + 1; 0: not there */
    char rest_name[32];
};

/* How many colours pictures have for services. The last one is for all that have none. */
#define LANDSCAPE_COLOURS 8

/*
 * The limit services of most spans, and the others as one; 0: all of them. The names live as long
 * as the summary. Out of memory: returns false. landscape_destroy() is for both cases.
 */
bool landscape_make(struct landscape *landscape, const struct summary *summary, size_t limit);
void landscape_destroy(struct landscape *landscape);

unsigned landscape_colour_of_name(const struct landscape *landscape, uint32_t name);

#endif

/*
 * Where the services of a graph lie: in layers, callers above whom they call.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LAYOUT_H
#define BLKIN_TOOLS_LAYOUT_H

#include "landscape.h"

struct layout_sizes {
    double box_width;
    double gap; /* between boxes of a layer */
    double way; /* what a call takes in a layer that it only passes */
};

/* A service, or a place where a call passes a layer. */
struct layout_place {
    double x; /* of its middle, from 0 on */
    size_t layer;
    size_t service; /* LAYOUT_NONE: only a way */
};

#define LAYOUT_NONE SIZE_MAX

struct layout {
    /* the first ones are the services */
    struct layout_place *places;
    size_t places_count;
    /* The way of call i, from its upper end to its lower one: places[ways[i]..ways[i + 1] - 1] lie
     * between the ends. */
    size_t *ways;
    bool *is_upwards; /* by call: it closes a circle, its caller is the lower end */
    size_t layers;
    double width;
};

/* The services at the ends of a call, as they lie. */
static inline size_t layout_upper(const struct layout *layout, const struct landscape *landscape,
                                  size_t call)
{
    return layout->is_upwards[call] ? landscape->calls[call].to : landscape->calls[call].from;
}

static inline size_t layout_lower(const struct layout *layout, const struct landscape *landscape,
                                  size_t call)
{
    return layout->is_upwards[call] ? landscape->calls[call].from : landscape->calls[call].to;
}

/* Calls of a service to itself have no way. Out of memory: returns false; layout_destroy() is for
 * both cases. */
bool layout_make(struct layout *layout, const struct landscape *landscape,
                 const struct layout_sizes *sizes);
void layout_destroy(struct layout *layout);

#endif

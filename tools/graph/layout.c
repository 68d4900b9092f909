/*
 * A layered drawing, after Sugiyama: circles are cut, a service's layer is its longest way from the
 * top, in each layer the order is by where the neighbours are (barycenters), and places are as
 * near to their neighbours as that order allows, which is exact for one layer (isotonic
 * regression). Parts that have no calls between them lie side by side.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "layout.h"

#include <stdlib.h>

#define SWEEPS 12 /* downwards and upwards in turn */

struct link {
    size_t upper; /* places, of layers next to each other */
    size_t lower;
};

struct block { /* places side by side, without a gap more than is needed */
    double sum;
    double weight;
    size_t count;
};

/* What is known of a place while it is looked for. */
struct aim {
    double sum; /* of the neighbours' x, and how many there are */
    size_t count;
    double wish;        /* their mean, or where it is if it has none */
    size_t part;        /* a place of the same part, the same one for all of it */
    double left, right; /* of the part that has this number */
};

enum visit { VISIT_NEW, VISIT_OPEN, VISIT_DONE };

struct work {
    const struct landscape *landscape;
    const struct layout_sizes *sizes;
    struct layout *layout;
    enum visit *visits; /* by service */
    size_t *finished;   /* services in the order in which they are done */
    size_t finished_count;
    struct aim *aims;    /* by place */
    size_t *order;       /* places, layer by layer */
    size_t *layer_begin; /* by layer: where it begins in order, and one more */
    struct link *links;  /* layer by layer, by that of their lower ends */
    size_t links_count;
    size_t *link_begin; /* by that layer: where it begins in links, and one more */
    struct block *blocks;
};

static size_t layer_of(const struct work *work, size_t place)
{
    return work->layout->places[place].layer;
}

/* ---- layers */

/*
 * Depth first from a service on: as deep as there are services at most, which are few in a picture.
 * A call to one that is open closes a circle. The reverse of finished is an order from the top.
 */
static void visit(struct work *work, size_t service)
{
    const struct landscape *landscape = work->landscape;
    const struct landscape_service *caller = &landscape->services[service];

    work->visits[service] = VISIT_OPEN;
    for (size_t call = caller->first_call; call < caller->end_call; call++) {
        const size_t to = landscape->calls[call].to;

        if (work->visits[to] == VISIT_OPEN)
            work->layout->is_upwards[call] = to != service;
        else if (work->visits[to] == VISIT_NEW)
            visit(work, to);
    }
    work->visits[service] = VISIT_DONE;
    work->finished[work->finished_count++] = service;
}

/* Each below whom it is called by. Returns whether that has moved any. */
static bool push_down(struct work *work)
{
    const struct landscape *landscape = work->landscape;
    struct layout *layout = work->layout;
    bool has_moved = false;

    for (size_t i = landscape->services_count; i-- > 0;) {
        const struct landscape_service *caller = &landscape->services[work->finished[i]];

        for (size_t call = caller->first_call; call < caller->end_call; call++) {
            struct layout_place *upper = &layout->places[layout_upper(layout, landscape, call)];
            struct layout_place *lower = &layout->places[layout_lower(layout, landscape, call)];

            if (upper != lower && lower->layer <= upper->layer) {
                lower->layer = upper->layer + 1;
                has_moved = true;
            }
        }
    }
    return has_moved;
}

/* From who is not called, and then, for circles that nobody calls, from the others. */
static void find_layers(struct work *work)
{
    const size_t count = work->landscape->services_count;

    for (int called = 0; called < 2; called++) {
        for (size_t i = 0; i < count; i++) {
            if (work->visits[i] == VISIT_NEW &&
                work->landscape->services[i].is_called == (called != 0))
                visit(work, i);
        }
    }
    while (push_down(work))
        continue;
    for (size_t i = 0; i < count; i++) {
        if (layer_of(work, i) + 1 > work->layout->layers)
            work->layout->layers = layer_of(work, i) + 1;
    }
}

/* ---- ways: a call that passes layers has a place in each */

static size_t layers_between(const struct work *work, size_t call)
{
    const size_t upper = layer_of(work, layout_upper(work->layout, work->landscape, call));
    const size_t lower = layer_of(work, layout_lower(work->layout, work->landscape, call));

    return lower > upper ? lower - upper - 1 : 0;
}

static bool make_ways(struct work *work)
{
    const struct landscape *landscape = work->landscape;
    struct layout *layout = work->layout;
    size_t count = landscape->services_count;
    struct layout_place *places;

    for (size_t call = 0; call < landscape->calls_count; call++) {
        layout->ways[call] = count;
        count += layers_between(work, call);
    }
    layout->ways[landscape->calls_count] = count;
    places = reallocarray(layout->places, count + 1, sizeof(*places));
    if (!places)
        return false;
    layout->places = places;
    layout->places_count = count;
    for (size_t call = 0; call < landscape->calls_count; call++) {
        size_t layer = places[layout_upper(layout, landscape, call)].layer;

        for (size_t i = layout->ways[call]; i < layout->ways[call + 1]; i++) {
            layer++;
            places[i] = (struct layout_place){.layer = layer, .service = LAYOUT_NONE};
        }
    }
    return true;
}

static int by_layer(const void *a, const void *b, void *context)
{
    const struct link *left = a, *right = b;
    const size_t one = layer_of(context, left->upper), other = layer_of(context, right->upper);

    if (one != other)
        return one < other ? -1 : 1;
    if (left->upper != right->upper)
        return left->upper < right->upper ? -1 : 1;
    return (left->lower > right->lower) - (left->lower < right->lower);
}

static void make_links(struct work *work)
{
    const struct landscape *landscape = work->landscape;
    const struct layout *layout = work->layout;

    for (size_t call = 0; call < landscape->calls_count; call++) {
        size_t upper = layout_upper(layout, landscape, call);
        const size_t lower = layout_lower(layout, landscape, call);

        if (upper == lower)
            continue;
        for (size_t i = layout->ways[call]; i < layout->ways[call + 1]; i++) {
            work->links[work->links_count++] = (struct link){upper, i};
            upper = i;
        }
        work->links[work->links_count++] = (struct link){upper, lower};
    }
    qsort_r(work->links, work->links_count, sizeof(*work->links), by_layer, work);
    for (size_t i = 0; i < work->links_count; i++)
        work->link_begin[layer_of(work, work->links[i].lower) + 1] = i + 1;
    for (size_t layer = 1; layer <= layout->layers + 1; layer++) {
        if (work->link_begin[layer] < work->link_begin[layer - 1])
            work->link_begin[layer] = work->link_begin[layer - 1];
    }
}

/* ---- parts: what hangs together */

/* The least place of a part stands for it: it is handed on along the links until nothing changes.
 */
static void find_parts(struct work *work)
{
    bool has_changed = true;

    for (size_t i = 0; i < work->layout->places_count; i++)
        work->aims[i].part = i;
    while (has_changed) {
        has_changed = false;
        for (size_t i = 0; i < work->links_count; i++) {
            size_t *upper = &work->aims[work->links[i].upper].part;
            size_t *lower = &work->aims[work->links[i].lower].part;

            has_changed |= *upper != *lower;
            *upper = *lower = *upper < *lower ? *upper : *lower;
        }
    }
}

/* ---- order and places */

static double width_of(const struct work *work, size_t place)
{
    return work->layout->places[place].service == LAYOUT_NONE ? work->sizes->way
                                                              : work->sizes->box_width;
}

/* Between the middles of two neighbours. */
static double distance(const struct work *work, size_t left, size_t right)
{
    return (width_of(work, left) + width_of(work, right)) / 2 + work->sizes->gap;
}

/* Where the places of a layer would be, by those above or below. */
static void wish(struct work *work, size_t layer, bool is_downwards)
{
    const struct layout_place *places = work->layout->places;
    const size_t links = is_downwards ? layer : layer + 1;

    for (size_t i = work->layer_begin[layer]; i < work->layer_begin[layer + 1]; i++) {
        work->aims[work->order[i]].sum = 0;
        work->aims[work->order[i]].count = 0;
    }
    for (size_t i = work->link_begin[links]; i < work->link_begin[links + 1]; i++) {
        const struct link *link = &work->links[i];
        struct aim *aim = &work->aims[is_downwards ? link->lower : link->upper];

        aim->sum += places[is_downwards ? link->upper : link->lower].x;
        aim->count++;
    }
    for (size_t i = work->layer_begin[layer]; i < work->layer_begin[layer + 1]; i++) {
        struct aim *aim = &work->aims[work->order[i]];

        aim->wish = aim->count ? aim->sum / (double)aim->count : places[work->order[i]].x;
    }
}

static int by_wish(const void *a, const void *b, void *context)
{
    const struct aim *aims = context;
    const size_t one = *(const size_t *)a, other = *(const size_t *)b;

    if (aims[one].part != aims[other].part)
        return aims[one].part < aims[other].part ? -1 : 1;
    if (aims[one].wish != aims[other].wish)
        return aims[one].wish < aims[other].wish ? -1 : 1;
    return (one > other) - (one < other);
}

/*
 * Each as near to its wish as the order and the distances allow, by least squares: without the
 * distances it is a rising sequence that is looked for, and who would overtake another is put into
 * a block with it. Ways count more, so that they are straight.
 */
static void place_layer(const struct work *work, size_t layer)
{
    const size_t *order = work->order + work->layer_begin[layer];
    const size_t count = work->layer_begin[layer + 1] - work->layer_begin[layer];
    struct block *blocks = work->blocks, *end = blocks;
    double shift = 0;

    for (size_t i = 0; i < count; i++) {
        const double weight = work->layout->places[order[i]].service == LAYOUT_NONE ? 4 : 1;

        if (i)
            shift += distance(work, order[i - 1], order[i]);
        *end++ = (struct block){(work->aims[order[i]].wish - shift) * weight, weight, 1};
        while (end - blocks > 1 && end[-1].sum * end[-2].weight <= end[-2].sum * end[-1].weight) {
            end--;
            end[-1].sum += end->sum;
            end[-1].weight += end->weight;
            end[-1].count += end->count;
        }
    }
    shift = 0;
    for (size_t i = 0; i < count; i++) {
        if (i)
            shift += distance(work, order[i - 1], order[i]);
        work->layout->places[order[i]].x = blocks->sum / blocks->weight + shift;
        if (--blocks->count == 0)
            blocks++;
    }
}

/* Layer by layer, in the order of their numbers and side by side. */
static void fill_layers(const struct work *work)
{
    const struct layout *layout = work->layout;
    size_t count = 0;

    for (size_t layer = 0; layer < layout->layers; layer++) {
        double x = 0;

        work->layer_begin[layer] = count;
        for (size_t i = 0; i < layout->places_count; i++) {
            if (layout->places[i].layer != layer)
                continue;
            work->order[count++] = i;
            layout->places[i].x = x;
            x += width_of(work, i) + work->sizes->gap;
        }
    }
    work->layer_begin[layout->layers] = count;
}

static void sweep(struct work *work, bool is_downwards, bool may_sort)
{
    const size_t layers = work->layout->layers;

    for (size_t i = 0; i < layers; i++) {
        const size_t layer = is_downwards ? i : layers - 1 - i;

        wish(work, layer, is_downwards);
        if (may_sort)
            qsort_r(work->order + work->layer_begin[layer],
                    work->layer_begin[layer + 1] - work->layer_begin[layer], sizeof(*work->order),
                    by_wish, work->aims);
        place_layer(work, layer);
    }
}

/* No part is between places of another one, so each can be moved as a whole. */
static void move_parts(struct work *work)
{
    struct layout *layout = work->layout;
    struct aim *aims = work->aims;
    double reached = 0;

    for (size_t i = 0; i < layout->places_count; i++) {
        struct aim *part = &aims[aims[i].part];
        const double x = layout->places[i].x, half = width_of(work, i) / 2;

        part->left = aims[i].part == i || x - half < part->left ? x - half : part->left;
        part->right = aims[i].part == i || x + half > part->right ? x + half : part->right;
    }
    for (size_t i = 0; i < layout->places_count; i++) {
        if (aims[i].part != i)
            continue;
        aims[i].left -= reached; /* what all of it moves by */
        reached = aims[i].right - aims[i].left + 2 * work->sizes->gap;
        layout->width = aims[i].right - aims[i].left;
    }
    for (size_t i = 0; i < layout->places_count; i++)
        layout->places[i].x -= aims[aims[i].part].left;
}

/* ---- all of it */

static bool make_room(struct work *work)
{
    const size_t places = work->layout->places_count;
    const size_t links = places + work->landscape->calls_count; /* at least */

    work->aims = calloc(places + 1, sizeof(*work->aims));
    work->order = calloc(places + 1, sizeof(*work->order));
    work->layer_begin = calloc(work->layout->layers + 2, sizeof(*work->layer_begin));
    work->links = calloc(links + 1, sizeof(*work->links));
    work->link_begin = calloc(work->layout->layers + 3, sizeof(*work->link_begin));
    work->blocks = calloc(places + 1, sizeof(*work->blocks));
    return work->aims && work->order && work->layer_begin && work->links && work->link_begin &&
           work->blocks;
}

static bool layout_all(struct work *work)
{
    find_layers(work);
    if (!make_ways(work) || !make_room(work))
        return false;
    make_links(work);
    find_parts(work);
    fill_layers(work);
    for (int i = 0; i < SWEEPS; i++)
        sweep(work, i % 2 == 0, i < SWEEPS - 4);
    move_parts(work);
    return true;
}

bool layout_make(struct layout *layout, const struct landscape *landscape,
                 const struct layout_sizes *sizes)
{
    const size_t services = landscape->services_count;
    struct work work = {
        .landscape = landscape,
        .sizes = sizes,
        .layout = layout,
        .visits = calloc(services + 1, sizeof(*work.visits)),
        .finished = calloc(services + 1, sizeof(*work.finished)),
    };
    bool is_done = false;

    *layout = (struct layout){
        .places = calloc(services + 1, sizeof(*layout->places)),
        .ways = calloc(landscape->calls_count + 1, sizeof(*layout->ways)),
        .is_upwards = calloc(landscape->calls_count + 1, sizeof(*layout->is_upwards)),
    };
    if (work.visits && work.finished && layout->places && layout->ways && layout->is_upwards) {
        for (size_t i = 0; i < services; i++)
            layout->places[i].service = i;
        is_done = layout_all(&work);
    }
    free(work.visits);
    free(work.finished);
    free(work.aims);
    free(work.order);
    free(work.layer_begin);
    free(work.links);
    free(work.link_begin);
    free(work.blocks);
    return is_done;
}

void layout_destroy(struct layout *layout)
{
    free(layout->places);
    free(layout->ways);
    free(layout->is_upwards);
    *layout = (struct layout){.places = NULL};
}

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
#include <string.h>

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

struct work {
    const struct landscape *landscape;
    const struct layout_sizes *sizes;
    struct layout *layout;
    size_t *order; /* places, layer by layer */
    size_t *layer_begin;
    struct link *links;
    size_t links_count;
    size_t *upper_begin; /* by place: where its links begin in by_lower */
    size_t *lower_begin; /* the same in by_upper */
    size_t *by_lower;    /* upper ends */
    size_t *by_upper;    /* lower ends */
    struct block *blocks;
    double *left; /* of parts */
    double *right;
    size_t *part; /* by place: a place of the same part, the same one for all of it */
};

/* ---- layers */

static size_t upper_end(const struct layout *layout, const struct landscape *landscape, size_t call)
{
    return layout->is_upwards[call] ? landscape->calls[call].to : landscape->calls[call].from;
}

static size_t lower_end(const struct layout *layout, const struct landscape *landscape, size_t call)
{
    return layout->is_upwards[call] ? landscape->calls[call].from : landscape->calls[call].to;
}

enum visit { VISIT_NEW, VISIT_OPEN, VISIT_DONE };

/*
 * Depth first from a service on. A call to one that is open closes a circle. finished: the services
 * in the order in which they are done, so the reverse is an order from the top.
 */
static void visit(struct work *work, size_t top, char *state, size_t *stack, size_t *next_call,
                  size_t *finished, size_t *finished_count)
{
    const struct landscape *landscape = work->landscape;
    size_t depth = 0;

    stack[0] = top;
    state[top] = VISIT_OPEN;
    next_call[top] = landscape_first_call(landscape, top);
    while (depth != SIZE_MAX) {
        const size_t service = stack[depth];
        const size_t call = next_call[service];
        size_t to;

        if (call == landscape->calls_count || landscape->calls[call].from != service) {
            state[service] = VISIT_DONE;
            finished[(*finished_count)++] = service;
            depth--;
            continue;
        }
        next_call[service]++;
        to = landscape->calls[call].to;
        if (state[to] == VISIT_OPEN) {
            work->layout->is_upwards[call] = to != service;
        } else if (state[to] == VISIT_NEW) {
            state[to] = VISIT_OPEN;
            next_call[to] = landscape_first_call(landscape, to);
            stack[++depth] = to;
        }
    }
}

/* All ways to a service are known when it comes, as finished is walked from its end. */
static void number_layers(struct work *work, const size_t *finished)
{
    const struct landscape *landscape = work->landscape;
    struct layout *layout = work->layout;

    for (bool is_changing = true; is_changing;) {
        is_changing = false;
        for (size_t i = landscape->services_count; i-- > 0;) {
            const size_t from = finished[i];

            for (size_t call = landscape_first_call(landscape, from);
                 call < landscape->calls_count && landscape->calls[call].from == from; call++) {
                struct layout_place *upper = &layout->places[upper_end(layout, landscape, call)];
                struct layout_place *lower = &layout->places[lower_end(layout, landscape, call)];

                if (upper != lower && lower->layer <= upper->layer) {
                    lower->layer = upper->layer + 1;
                    is_changing = true;
                }
            }
        }
    }
    for (size_t i = 0; i < landscape->services_count; i++) {
        if (layout->places[i].layer + 1 > layout->layers)
            layout->layers = layout->places[i].layer + 1;
    }
}

static bool find_layers(struct work *work)
{
    const struct landscape *landscape = work->landscape;
    const size_t count = landscape->services_count;
    char *state = calloc(count + 1, 1);
    size_t *memory = calloc(3 * count + 1, sizeof(*memory));
    size_t finished_count = 0;
    const bool has_memory = state && memory;

    for (int called = 0; has_memory && called < 2; called++) {
        for (size_t i = 0; i < count; i++) {
            if (state[i] == VISIT_NEW && landscape->services[i].is_called == (called != 0))
                visit(work, i, state, memory, memory + count, memory + 2 * count, &finished_count);
        }
    }
    if (has_memory)
        number_layers(work, memory + 2 * count);
    free(state);
    free(memory);
    return has_memory;
}

/* ---- ways: a call that passes layers has a place in each */

static size_t layers_between(const struct work *work, size_t call)
{
    const struct layout_place *places = work->layout->places;
    const size_t upper = places[upper_end(work->layout, work->landscape, call)].layer;
    const size_t lower = places[lower_end(work->layout, work->landscape, call)].layer;

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
        size_t layer = places[upper_end(layout, landscape, call)].layer;

        for (size_t i = layout->ways[call]; i < layout->ways[call + 1]; i++) {
            layer++;
            places[i] = (struct layout_place){.layer = layer, .service = LAYOUT_NONE};
        }
    }
    return true;
}

static void make_links(struct work *work)
{
    const struct landscape *landscape = work->landscape;
    const struct layout *layout = work->layout;

    for (size_t call = 0; call < landscape->calls_count; call++) {
        size_t upper = upper_end(layout, landscape, call);
        const size_t lower = lower_end(layout, landscape, call);

        if (upper == lower)
            continue;
        for (size_t i = layout->ways[call]; i < layout->ways[call + 1]; i++) {
            work->links[work->links_count++] = (struct link){upper, i};
            upper = i;
        }
        work->links[work->links_count++] = (struct link){upper, lower};
    }
}

/* Counting sort: to[begin[place]..begin[place + 1] - 1] are the other ends of a place's links. */
static void index_links(const struct work *work, bool by_lower, size_t *begin, size_t *to)
{
    const size_t places = work->layout->places_count;

    for (size_t i = 0; i < work->links_count; i++)
        begin[(by_lower ? work->links[i].lower : work->links[i].upper) + 1]++;
    for (size_t i = 0; i < places; i++)
        begin[i + 1] += begin[i];
    for (size_t i = work->links_count; i-- > 0;) {
        const struct link *link = &work->links[i];
        const size_t place = by_lower ? link->lower : link->upper;

        /* from the end of its part on; put right below */
        to[--begin[place + 1]] = by_lower ? link->upper : link->lower;
    }
    /* begin[place + 1] is where the part of place begins by now */
    memmove(begin, begin + 1, places * sizeof(*begin));
    begin[places] = work->links_count;
}

/* ---- parts: what hangs together */

/* The least place of a part stands for it. */
static size_t part_of(size_t *part, size_t place)
{
    while (part[place] != place)
        place = part[place] = part[part[place]];
    return place;
}

static void find_parts(struct work *work)
{
    size_t *part = work->part;

    for (size_t i = 0; i < work->layout->places_count; i++)
        part[i] = i;
    for (size_t i = 0; i < work->links_count; i++) {
        const size_t upper = part_of(part, work->links[i].upper);
        const size_t lower = part_of(part, work->links[i].lower);

        part[upper > lower ? upper : lower] = upper < lower ? upper : lower;
    }
    for (size_t i = 0; i < work->layout->places_count; i++)
        part[i] = part_of(part, i);
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

/* The mean of the neighbours above or below, or where it is if it has none. */
static double wish(const struct work *work, size_t place, bool is_downwards)
{
    const size_t *begin = is_downwards ? work->upper_begin : work->lower_begin;
    const size_t *ends = is_downwards ? work->by_lower : work->by_upper;
    const size_t count = begin[place + 1] - begin[place];
    double sum = 0;

    for (size_t i = begin[place]; i < begin[place + 1]; i++)
        sum += work->layout->places[ends[i]].x;
    return count ? sum / (double)count : work->layout->places[place].x;
}

struct keyed {
    size_t part;
    double key;
    size_t place;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *left = a, *right = b;

    if (left->part != right->part)
        return left->part < right->part ? -1 : 1;
    if (left->key != right->key)
        return left->key < right->key ? -1 : 1;
    return (left->place > right->place) - (left->place < right->place);
}

static bool sort_layer(const struct work *work, size_t layer, bool is_downwards)
{
    const size_t begin = work->layer_begin[layer];
    const size_t count = work->layer_begin[layer + 1] - begin;
    struct keyed *keyed = calloc(count + 1, sizeof(*keyed));

    if (!keyed)
        return false;
    for (size_t i = 0; i < count; i++)
        keyed[i] = (struct keyed){work->part[work->order[begin + i]],
                                  wish(work, work->order[begin + i], is_downwards),
                                  work->order[begin + i]};
    qsort(keyed, count, sizeof(*keyed), by_key);
    for (size_t i = 0; i < count; i++)
        work->order[begin + i] = keyed[i].place;
    free(keyed);
    return true;
}

/*
 * Each as near to its wish as the order and the distances allow, by least squares: without the
 * distances it is a rising sequence that is looked for, and who would overtake another is put into
 * a block with it. Ways count more, so that they are straight.
 */
static void place_layer(const struct work *work, size_t layer, bool is_downwards)
{
    const size_t *order = work->order + work->layer_begin[layer];
    const size_t count = work->layer_begin[layer + 1] - work->layer_begin[layer];
    struct block *blocks = work->blocks;
    size_t blocks_count = 0, i = 0;
    double shift = 0;

    for (i = 0; i < count; i++) {
        const double weight = work->layout->places[order[i]].service == LAYOUT_NONE ? 4 : 1;

        if (i)
            shift += distance(work, order[i - 1], order[i]);
        blocks[blocks_count++] =
            (struct block){(wish(work, order[i], is_downwards) - shift) * weight, weight, 1};
        while (blocks_count > 1 &&
               blocks[blocks_count - 1].sum * blocks[blocks_count - 2].weight <=
                   blocks[blocks_count - 2].sum * blocks[blocks_count - 1].weight) {
            blocks_count--;
            blocks[blocks_count - 1].sum += blocks[blocks_count].sum;
            blocks[blocks_count - 1].weight += blocks[blocks_count].weight;
            blocks[blocks_count - 1].count += blocks[blocks_count].count;
        }
    }
    shift = 0;
    i = 0;
    for (size_t block = 0; block < blocks_count; block++) {
        for (size_t k = 0; k < blocks[block].count; k++, i++) {
            if (i)
                shift += distance(work, order[i - 1], order[i]);
            work->layout->places[order[i]].x = blocks[block].sum / blocks[block].weight + shift;
        }
    }
}

static void fill_layers(const struct work *work)
{
    const struct layout *layout = work->layout;

    for (size_t i = 0; i < layout->places_count; i++)
        work->layer_begin[layout->places[i].layer + 1]++;
    for (size_t i = 0; i < layout->layers; i++)
        work->layer_begin[i + 1] += work->layer_begin[i];
    for (size_t i = layout->places_count; i-- > 0;)
        work->order[--work->layer_begin[layout->places[i].layer + 1]] = i;
    memmove(work->layer_begin, work->layer_begin + 1, layout->layers * sizeof(size_t));
    work->layer_begin[layout->layers] = layout->places_count;
    for (size_t layer = 0; layer < layout->layers; layer++) {
        double x = 0;

        for (size_t i = work->layer_begin[layer]; i < work->layer_begin[layer + 1]; i++) {
            layout->places[work->order[i]].x = x;
            x += width_of(work, work->order[i]) + work->sizes->gap;
        }
    }
}

static bool sweep(const struct work *work, bool is_downwards, bool may_sort)
{
    const size_t layers = work->layout->layers;

    for (size_t i = 0; i < layers; i++) {
        const size_t layer = is_downwards ? i : layers - 1 - i;

        if (may_sort && !sort_layer(work, layer, is_downwards))
            return false;
        place_layer(work, layer, is_downwards);
    }
    return true;
}

/* No part is between places of another one, so each can be moved as a whole. */
static void move_parts(struct work *work)
{
    struct layout *layout = work->layout;
    double *left = work->left, *right = work->right;
    double reached = 0;

    for (size_t i = 0; i < layout->places_count; i++) {
        const size_t part = work->part[i];
        const double x = layout->places[i].x, half = width_of(work, i) / 2;

        left[part] = part == i || x - half < left[part] ? x - half : left[part];
        right[part] = part == i || x + half > right[part] ? x + half : right[part];
    }
    for (size_t i = 0; i < layout->places_count; i++) {
        if (work->part[i] != i)
            continue;
        left[i] -= reached; /* what all of it moves by */
        reached = right[i] - left[i] + 2 * work->sizes->gap;
        layout->width = right[i] - left[i];
    }
    for (size_t i = 0; i < layout->places_count; i++)
        layout->places[i].x -= left[work->part[i]];
}

static bool place_all(struct work *work)
{
    fill_layers(work);
    for (int i = 0; i < SWEEPS; i++) {
        if (!sweep(work, i % 2 == 0, i < SWEEPS - 4))
            return false;
    }
    move_parts(work);
    return true;
}

/* ---- all of it */

static bool make_room(struct work *work)
{
    const size_t places = work->layout->places_count;
    const size_t links = places + work->landscape->calls_count; /* at least */

    work->order = calloc(places + 1, sizeof(*work->order));
    work->layer_begin = calloc(work->layout->layers + 2, sizeof(*work->layer_begin));
    work->links = calloc(links + 1, sizeof(*work->links));
    work->upper_begin = calloc(places + 2, sizeof(*work->upper_begin));
    work->lower_begin = calloc(places + 2, sizeof(*work->lower_begin));
    work->by_lower = calloc(links + 1, sizeof(*work->by_lower));
    work->by_upper = calloc(links + 1, sizeof(*work->by_upper));
    work->blocks = calloc(places + 1, sizeof(*work->blocks));
    work->part = calloc(places + 1, sizeof(*work->part));
    work->left = calloc(places + 1, sizeof(*work->left));
    work->right = calloc(places + 1, sizeof(*work->right));
    return work->order && work->layer_begin && work->links && work->upper_begin &&
           work->lower_begin && work->by_lower && work->by_upper && work->blocks && work->part &&
           work->left && work->right;
}

static bool lay_out(struct work *work)
{
    if (!find_layers(work) || !make_ways(work) || !make_room(work))
        return false;
    make_links(work);
    index_links(work, true, work->upper_begin, work->by_lower);
    index_links(work, false, work->lower_begin, work->by_upper);
    find_parts(work);
    return place_all(work);
}

bool layout_make(struct layout *layout, const struct landscape *landscape,
                 const struct layout_sizes *sizes)
{
    struct work work = {.landscape = landscape, .sizes = sizes, .layout = layout};
    bool is_done = false;

    *layout = (struct layout){
        .places = calloc(landscape->services_count + 1, sizeof(*layout->places)),
        .ways = calloc(landscape->calls_count + 1, sizeof(*layout->ways)),
        .is_upwards = calloc(landscape->calls_count + 1, sizeof(*layout->is_upwards)),
    };
    if (layout->places && layout->ways && layout->is_upwards) {
        for (size_t i = 0; i < landscape->services_count; i++)
            layout->places[i].service = i;
        is_done = lay_out(&work);
    }
    free(work.order);
    free(work.layer_begin);
    free(work.links);
    free(work.upper_begin);
    free(work.lower_begin);
    free(work.by_lower);
    free(work.by_upper);
    free(work.blocks);
    free(work.part);
    free(work.left);
    free(work.right);
    return is_done;
}

void layout_destroy(struct layout *layout)
{
    free(layout->places);
    free(layout->ways);
    free(layout->is_upwards);
    *layout = (struct layout){.places = NULL};
}

/*
 * The service graph, made of statistics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "landscape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct work {
    struct landscape *landscape;
    const struct statistics *statistics;
};

/* ---- services */

static const char *shown_name(const struct work *work, uint32_t service)
{
    const struct text name = names_text(statistics_names(work->statistics), service);

    if (name.length)
        return name.data;
    return service == NAMES_OTHER ? "(other names)" : "(no name)";
}

static struct landscape_service *service_of(struct work *work, uint32_t service)
{
    struct landscape *landscape = work->landscape;

    if (!landscape->places[service]) {
        landscape->services[landscape->services_count].name = shown_name(work, service);
        landscape->places[service] = ++landscape->services_count;
    }
    return &landscape->services[landscape->places[service] - 1];
}

static bool add_service(struct landscape_service *service, const struct landscape_service *other)
{
    service->spans += other->spans;
    service->errors += other->errors;
    service->self_ns += other->self_ns;
    return histogram_merge(&service->duration, &other->duration);
}

static bool add_rows(struct work *work)
{
    for (size_t i = 0; i < statistics_rows(work->statistics); i++) {
        const struct statistics_row *row = statistics_row(work->statistics, i);
        struct landscape_service *service = service_of(work, row->service);

        service->spans += row->spans;
        service->errors += row->errors;
        service->self_ns += row->self.sum;
        work->landscape->self_ns += row->self.sum;
        if (!histogram_merge(&service->duration, &row->duration))
            return false;
    }
    return true;
}

/* The same spans give the same order, in whatever order they come. */
static int by_spans(const void *a, const void *b)
{
    const struct landscape_service *left = a, *right = b;
    const int order = (left->spans < right->spans) - (left->spans > right->spans);

    return order ? order : strcmp(left->name, right->name);
}

/* ---- calls */

static int by_ends(const void *a, const void *b)
{
    const struct landscape_call *left = a, *right = b;

    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    return (left->to > right->to) - (left->to < right->to);
}

static int by_from_and_calls(const void *a, const void *b)
{
    const struct landscape_call *left = a, *right = b;

    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    if (left->calls != right->calls)
        return left->calls > right->calls ? -1 : 1;
    return (left->to > right->to) - (left->to < right->to);
}

/* Those of the same two services are next to each other. */
static bool unite_calls(struct landscape *landscape)
{
    size_t count = 0;

    for (size_t i = 0; i < landscape->calls_count; i++) {
        struct landscape_call *call = &landscape->calls[i];
        struct landscape_call *last = count ? &landscape->calls[count - 1] : NULL;
        bool is_done = true;

        if (!last || by_ends(last, call) != 0) {
            if (count != i) {
                landscape->calls[count] = *call;
                call->duration = (struct histogram){.count = 0};
            }
            count++;
            continue;
        }
        last->calls += call->calls;
        last->errors += call->errors;
        is_done = histogram_merge(&last->duration, &call->duration);
        histogram_clear(&call->duration);
        if (!is_done)
            return false;
    }
    landscape->calls_count = count;
    return true;
}

static bool add_edges(struct work *work)
{
    struct landscape *landscape = work->landscape;

    for (size_t i = 0; i < statistics_edges(work->statistics); i++) {
        const struct statistics_edge *edge = statistics_edge(work->statistics, i);
        struct landscape_call *call;

        if (edge->calls == 0)
            continue;
        call = &landscape->calls[landscape->calls_count++];
        *call = (struct landscape_call){
            .from = (size_t)(service_of(work, edge->caller) - landscape->services),
            .to = (size_t)(service_of(work, edge->callee) - landscape->services),
            .calls = edge->calls,
            .errors = edge->errors,
        };
        if (!histogram_merge(&call->duration, &edge->duration))
            return false;
    }
    return true;
}

/* ---- order, and what is beyond the limit */

/* new_place[i] is where the service goes that is at i now. */
static void sort_services(struct landscape *landscape, size_t *new_place)
{
    struct landscape_service *services = landscape->services;

    for (size_t i = 0; i < landscape->services_count; i++)
        services[i].place = i;
    qsort(services, landscape->services_count, sizeof(*services), by_spans);
    for (size_t i = 0; i < landscape->services_count; i++)
        new_place[services[i].place] = i;
}

static bool unite_rest(struct landscape *landscape, size_t limit)
{
    struct landscape_service *rest = &landscape->services[limit];

    for (size_t i = limit + 1; i < landscape->services_count; i++) {
        const bool is_done = add_service(rest, &landscape->services[i]);

        histogram_clear(&landscape->services[i].duration);
        if (!is_done)
            return false;
    }
    snprintf(landscape->rest_name, sizeof(landscape->rest_name), "(%zu more)",
             landscape->services_count - limit);
    rest->name = landscape->rest_name;
    landscape->services_count = limit + 1;
    return true;
}

static bool sort_all(struct landscape *landscape, size_t names, size_t last)
{
    size_t *new_place = calloc(landscape->services_count + 1, sizeof(*new_place));

    if (!new_place)
        return false;
    sort_services(landscape, new_place);
    for (size_t i = 0; i < landscape->services_count; i++)
        new_place[i] = new_place[i] < last ? new_place[i] : last;
    for (size_t i = 0; i < landscape->calls_count; i++) {
        landscape->calls[i].from = new_place[landscape->calls[i].from];
        landscape->calls[i].to = new_place[landscape->calls[i].to];
    }
    for (size_t i = 0; i < names; i++) {
        if (landscape->places[i])
            landscape->places[i] = new_place[landscape->places[i] - 1] + 1;
    }
    free(new_place);
    return true;
}

static bool arrange(struct landscape *landscape, size_t names, size_t limit)
{
    const size_t last = limit && limit < landscape->services_count ? limit : SIZE_MAX;

    if (!sort_all(landscape, names, last))
        return false;
    if (last != SIZE_MAX && !unite_rest(landscape, last))
        return false;
    qsort(landscape->calls, landscape->calls_count, sizeof(*landscape->calls), by_ends);
    if (!unite_calls(landscape))
        return false;
    qsort(landscape->calls, landscape->calls_count, sizeof(*landscape->calls), by_from_and_calls);
    for (size_t i = 0; i < landscape->calls_count; i++) {
        if (landscape->calls[i].from != landscape->calls[i].to)
            landscape->services[landscape->calls[i].to].is_called = true;
    }
    return true;
}

bool landscape_make(struct landscape *landscape, const struct statistics *statistics, size_t limit)
{
    const size_t names = names_count(statistics_names(statistics));
    struct work work = {landscape, statistics};

    *landscape = (struct landscape){
        .services = calloc(names + 1, sizeof(*landscape->services)),
        .calls = calloc(statistics_edges(statistics) + 1, sizeof(*landscape->calls)),
        .places = calloc(names + 1, sizeof(*landscape->places)),
    };
    return landscape->services && landscape->calls && landscape->places && add_rows(&work) &&
           add_edges(&work) && arrange(landscape, names, limit);
}

void landscape_destroy(struct landscape *landscape)
{
    for (size_t i = 0; landscape->services && i < landscape->services_count; i++)
        histogram_clear(&landscape->services[i].duration);
    for (size_t i = 0; landscape->calls && i < landscape->calls_count; i++)
        histogram_clear(&landscape->calls[i].duration);
    free(landscape->services);
    free(landscape->calls);
    free(landscape->places);
    *landscape = (struct landscape){.services = NULL};
}

unsigned landscape_colour(const struct landscape *landscape, size_t service)
{
    const bool has_own = service < LANDSCAPE_COLOURS - 1 && service < landscape->services_count;

    return has_own ? (unsigned)service : LANDSCAPE_COLOURS - 1;
}

unsigned landscape_colour_of_name(const struct landscape *landscape, uint32_t name)
{
    return landscape_colour(landscape, landscape->places[name] - 1);
}

size_t landscape_first_call(const struct landscape *landscape, size_t service)
{
    size_t low = 0, count = landscape->calls_count;

    while (low < count) {
        const size_t middle = low + (count - low) / 2;

        if (landscape->calls[middle].from < service)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* Makes the service graph from statistics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- services */

static const char *shown_name(const struct statistics *statistics, uint32_t id)
{
    const struct text name = names_text(statistics_names(statistics), id);

    if (name.length)
        return name.data;
    return id == NAMES_OTHER ? "(other names)" : "(no name)";
}

/* Returns the service with this name id; a new one has no spans. */
static struct landscape_service *service_of(struct landscape *landscape,
                                            const struct statistics *statistics, uint32_t id)
{
    if (!landscape->service_of_name[id]) {
        landscape->services[landscape->services_count].name = shown_name(statistics, id);
        landscape->services[landscape->services_count].id = id;
        landscape->service_of_name[id] = ++landscape->services_count;
    }
    return &landscape->services[landscape->service_of_name[id] - 1];
}

static bool add_services(struct landscape *landscape, const struct statistics *statistics)
{
    for (size_t i = 0; i < statistics_size(statistics, STATISTICS_ROWS); i++) {
        const struct statistics_row *row = statistics_at(statistics, STATISTICS_ROWS, i);
        struct landscape_service *service = service_of(landscape, statistics, row->service);

        service->spans += row->spans;
        service->errors += row->errors;
        service->self_ns += row->self.sum;
        landscape->spans += row->spans;
        landscape->errors += row->errors;
        landscape->self_ns += row->self.sum;
        if (!histogram_merge(&service->duration, &row->duration))
            return false;
    }
    for (size_t i = 0; i < statistics_size(statistics, STATISTICS_EDGES); i++) {
        const struct statistics_row *edge = statistics_at(statistics, STATISTICS_EDGES, i);

        if (edge->calls) {
            (void)service_of(landscape, statistics, edge->caller);
            (void)service_of(landscape, statistics, edge->callee);
        }
    }
    return true;
}

/* The order does not depend on the order of the input. */
static int by_spans(const void *a, const void *b)
{
    const struct landscape_service *left = a, *right = b;
    const int order = (left->spans < right->spans) - (left->spans > right->spans);

    return order ? order : strcmp(left->name, right->name);
}

/* Merges the services after index `last` into the service at `last`. */
static bool merge_services_from(struct landscape *landscape, size_t last)
{
    struct landscape_service *rest = &landscape->services[last];
    bool is_done = true;

    (void)snprintf(landscape->rest_name, sizeof(landscape->rest_name), "(%zu more)",
                   landscape->services_count - last);
    rest->name = landscape->rest_name;
    for (size_t i = last + 1; i < landscape->services_count; i++) {
        struct landscape_service *service = &landscape->services[i];

        rest->spans += service->spans;
        rest->errors += service->errors;
        rest->self_ns += service->self_ns;
        is_done = is_done && histogram_merge(&rest->duration, &service->duration);
        histogram_clear(&service->duration);
    }
    landscape->services_count = last + 1;
    return is_done;
}

static bool sort_services(struct landscape *landscape, size_t limit)
{
    const bool is_cut = limit && limit < landscape->services_count;

    qsort(landscape->services, landscape->services_count, sizeof(*landscape->services), by_spans);
    for (size_t i = 0; i < landscape->services_count; i++)
        landscape->service_of_name[landscape->services[i].id] =
            (is_cut && i > limit ? limit : i) + 1;
    return !is_cut || merge_services_from(landscape, limit);
}

/* ---- calls */

/* Returns the call from one service to the other; a new call if needed. */
static struct landscape_call *call_between(struct landscape *landscape, size_t from, size_t to)
{
    struct landscape_call *call = landscape->calls;

    while (call < landscape->calls + landscape->calls_count &&
           (call->from != from || call->to != to))
        call++;
    if (call == landscape->calls + landscape->calls_count) {
        *call = (struct landscape_call){.from = from, .to = to};
        landscape->calls_count++;
    }
    return call;
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

static bool add_calls(struct landscape *landscape, const struct statistics *statistics)
{
    for (size_t i = 0; i < statistics_size(statistics, STATISTICS_EDGES); i++) {
        const struct statistics_row *edge = statistics_at(statistics, STATISTICS_EDGES, i);
        struct landscape_call *call;

        if (edge->calls == 0)
            continue;
        call = call_between(landscape, landscape->service_of_name[edge->caller] - 1,
                            landscape->service_of_name[edge->callee] - 1);
        call->calls += edge->calls;
        call->errors += edge->errors;
        if (!histogram_merge(&call->duration, &edge->duration))
            return false;
        if (call->from != call->to)
            landscape->services[call->to].is_called = true;
    }
    qsort(landscape->calls, landscape->calls_count, sizeof(*landscape->calls), by_from_and_calls);
    for (size_t i = 0; i < landscape->calls_count; i++) {
        struct landscape_service *service = &landscape->services[landscape->calls[i].from];

        if (service->end_call == 0)
            service->first_call = i;
        service->end_call = i + 1;
    }
    return true;
}

/* ---- the whole landscape */

bool landscape_make(struct landscape *landscape, const struct summary *summary, size_t limit)
{
    const struct statistics *statistics = summary->statistics;
    const size_t names = names_count(statistics_names(statistics));

    *landscape = (struct landscape){
        .services = calloc(names + 1, sizeof(*landscape->services)),
        .calls =
            calloc(statistics_size(statistics, STATISTICS_EDGES) + 1, sizeof(*landscape->calls)),
        .service_of_name = calloc(names + 1, sizeof(*landscape->service_of_name)),
        .traces = summary->traces_count,
        .seconds = summary->seconds,
    };
    return landscape->services && landscape->calls && landscape->service_of_name &&
           add_services(landscape, statistics) && sort_services(landscape, limit) &&
           add_calls(landscape, statistics);
}

void landscape_destroy(struct landscape *landscape)
{
    for (size_t i = 0; landscape->services && i < landscape->services_count; i++)
        histogram_clear(&landscape->services[i].duration);
    for (size_t i = 0; landscape->calls && i < landscape->calls_count; i++)
        histogram_clear(&landscape->calls[i].duration);
    free(landscape->services);
    free(landscape->calls);
    free(landscape->service_of_name);
    *landscape = (struct landscape){.services = NULL};
}

unsigned landscape_colour_of_name(const struct landscape *landscape, uint32_t name)
{
    const size_t service = landscape->service_of_name[name] - 1;
    const bool has_own = service < LANDSCAPE_COLOURS - 1 && service < landscape->services_count;

    return has_own ? (unsigned)service : LANDSCAPE_COLOURS - 1;
}

/*
 * The service graph as an object: "calls" as Zipkin's list of dependencies has them, with times.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "graph.h"

#include <jansson.h>

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *service_json(const struct landscape_service *service)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", service->name, "spans",
                     integer(service->spans), "errors", integer(service->errors), "self",
                     json_real(service->self_ns / 1000), "duration",
                     figure_json(&service->duration, false));
}

static json_t *call_json(const struct landscape *landscape, const struct landscape_call *call)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "parent", landscape->services[call->from].name,
                     "child", landscape->services[call->to].name, "callCount", integer(call->calls),
                     "errorCount", integer(call->errors), "duration",
                     figure_json(&call->duration, false));
}

bool graph_json(const struct landscape *landscape)
{
    json_t *services = json_array(), *calls = json_array(), *json;
    bool is_done = services && calls;

    for (size_t i = 0; is_done && i < landscape->services_count; i++)
        is_done = json_array_append_new(services, service_json(&landscape->services[i])) == 0;
    for (size_t i = 0; is_done && i < landscape->calls_count; i++)
        is_done = json_array_append_new(calls, call_json(landscape, &landscape->calls[i])) == 0;
    json = json_pack("{s:f, s:o, s:o, s:o, s:o}", "seconds", landscape->seconds, "spans",
                     integer(landscape->spans), "traces", integer(landscape->traces), "services",
                     services, "calls", calls);
    is_done =
        is_done && json && json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0;
    json_decref(json);
    putchar('\n');
    return is_done;
}

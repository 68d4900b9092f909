/* SPDX-License-Identifier: BSD-2-Clause */
#include "status.h"

#include "babeltrace-plugin/account/stats_file.h"
#include "babeltrace-plugin/base/http_client.h"
#include "export.h"
#include "tools/base/metrics.h"
#include "tools/base/saver.h"

#include <stdlib.h>

static struct counts agent_counts(const struct agent_parts *parts)
{
    struct counts sum = parts->agent.totals.sinks;

    export_add_account(parts->agent.export, &sum, false);
    return sum;
}

static json_t *agent_endpoint_json(const struct agent *agent)
{
    const char *file = export_file(agent->export);
    const char *endpoint = file[0] ? file : config_text(agent->config, "endpoint");
    char *shown = endpoint_shown(endpoint ? endpoint : "");
    json_t *text = shown ? json_string(shown) : NULL;

    free(shown);
    return text;
}

static json_t *status_rings_json(const struct agent_parts *parts)
{
    json_t *rings = agent_rings_json(parts->agent_rings);

    if (parts->all) {
        json_t *read = send_all_json(parts->all);

        (void)json_object_update(rings, read);
        json_decref(read);
    }
    return rings;
}

json_t *agent_status_json(const struct agent_parts *parts)
{
    const struct agent *agent = &parts->agent;
    const struct counts counts = agent_counts(parts);

    return json_pack(
        "{ss, ss, ss, so, so, so*, sI, sb, sI, so*, so, so, so, sI, so}", "state", "recording",
        "send", parts->all ? "all" : "slow", "host", agent->host, "endpoint",
        agent_endpoint_json(agent), "rings", status_rings_json(parts), "otlp",
        parts->otlp ? otlp_in_json(parts->otlp) : NULL, "pending_traces",
        (json_int_t)agent->scan_queue.traces, "is_scanning", scans_is_busy(parts->scans),
        "open_traces", (json_int_t)wants_open_count(parts->wants), "cluster",
        cluster_json(parts->wants->cluster), "shares", askers_json(&agent->askers), "totals",
        totals_own_json(&agent_table, &agent->totals), "host_metrics", sampler_json(parts->sampler),
        "saving_ms", (json_int_t)saver_busy_ms(), "counters", counts_json(&counts));
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

static void agent_print_own(struct printer *printer, const struct agent_parts *parts)
{
    const struct agent *agent = &parts->agent;
    json_t *hosts = wants_hosts(parts->wants);

    agent_rings_print(parts->agent_rings, printer);
    print_metric(printer, "blkin_agent_pending_traces", "gauge",
                 "Traces that wait for a scan of the rings.", agent->scan_queue.traces);
    print_metric(printer, "blkin_agent_open_traces", "gauge",
                 "Traces that are asked for and not judged yet.", wants_open_count(parts->wants));
    print_metric(printer, "blkin_agent_hosts", "gauge",
                 "Known hosts of the cluster: this one, and others, also if they are away.",
                 json_array_size(hosts));
    if (parts->otlp)
        otlp_in_print(parts->otlp, printer);
    totals_own_print(printer, &agent_table, &agent->totals);
    sampler_print(parts->sampler, printer);
    json_decref(hosts);
}

char *agent_status_page(const struct agent_parts *parts)
{
    const struct counts counts = agent_counts(parts);
    struct printer printer = {.has_failed = false};

    agent_print_own(&printer, parts);
    return metrics_page_text(&counts, config_text(parts->agent.config, "endpoint"),
                             print_end(&printer));
}

/*
 * What `blkin record` tells of itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "status.h"

#include "babeltrace-plugin/account/prometheus.h"
#include "babeltrace-plugin/base/http_url.h"
#include "tools/base/metrics.h"
#include "tools/base/reader_account.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const states[] = {
    [RECORDS] = "recording",
    [RECORDS_NO_DAEMON] = "no session daemon",
    [RECORDS_NO_CONSUMER] = "no consumer daemon",
    [RECORDS_FAILED] = "no session",
};

static bool records(const struct agent *agent)
{
    return agent->has_looked && agent->last.state == RECORDS;
}

static struct counts counts_of(const struct agent *agent)
{
    struct counts counts = agent->totals.readers.sinks;
    struct reader_account run;

    if (reader_account(&agent->kept.sender, &run))
        totals_add(&counts, &run);
    return counts;
}

/* As long as that the ring lasts at the rate of now; 0: not known. */
static uint64_t holds_s(const struct agent *agent)
{
    const struct session_spec *spec = &agent->sessions.specs[SESSION_RING];
    const uint64_t bytes = spec->subbuf_bytes * spec->subbuf_count * agent->look.streams;

    return agent->look.bytes_per_s ? bytes / agent->look.bytes_per_s : 0;
}

static json_t *ring_json(const struct agent *agent)
{
    const struct session_spec *spec = &agent->sessions.specs[SESSION_RING];
    const uint64_t bytes = spec->subbuf_bytes * spec->subbuf_count;

    return json_pack("{ss, ss, sI, sI, sI, sI, sI, sI}", "session", spec->name, "alarm_session",
                     agent->sessions.specs[SESSION_ALARM].name, "bytes_per_stream",
                     (json_int_t)bytes, "streams", (json_int_t)agent->look.streams, "bytes_per_s",
                     (json_int_t)agent->look.bytes_per_s, "holds_s", (json_int_t)holds_s(agent),
                     "last_snapshot_bytes", (json_int_t)agent->snapshot_bytes,
                     "last_snapshot_held_ms", (json_int_t)(agent->held_ns / 1000000));
}

static json_t *rules_json(const struct agent *agent)
{
    json_t *list = json_array();

    for (size_t i = 0; i < agent->rule_count; i++) {
        const struct rule *rule = &agent->rules[i];

        (void)json_array_append_new(
            list, json_pack("{ss%, sI, sI, sI}", "rule", rule->why, strlen(rule->why), "alarms",
                            (json_int_t)rule->alarms, "held_back", (json_int_t)rule->held_back,
                            "dropped", (json_int_t)rule->dropped));
    }
    return list;
}

static json_t *kept_json(const struct agent *agent)
{
    return json_pack("{ss, sI, sI, sI, sI}", "folder", agent->folder, "waiting",
                     (json_int_t)kept_count(&agent->kept), "bytes", (json_int_t)agent->kept.bytes,
                     "incomplete_waiting", (json_int_t)agent->incomplete.count, "saving_ms",
                     (json_int_t)saver_busy_ms());
}

static json_t *endpoint_json(const struct agent *agent)
{
    const char *endpoint = config_text(agent->config, "endpoint");
    char *shown = endpoint_shown(endpoint ? endpoint : "");
    json_t *text = shown ? json_string(shown) : NULL;

    free(shown);
    return text;
}

json_t *record_status_json(const struct agent *agent)
{
    const struct counts counts = counts_of(agent);

    return json_pack(
        "{ss, ss, sI, ss, ss, ss*, so, so, so, sI, sI, so*, so, so, s{sI, sI}, so, so, so}", "mode",
        "record", "version", BLKIN_RELEASE, "pid", (json_int_t)getpid(), "state",
        agent->has_looked ? states[agent->last.state] : "starting", "host", agent->host, "problem",
        records(agent) || !agent->has_looked ? NULL : agent->last.error.text, "endpoint",
        endpoint_json(agent), "ring", ring_json(agent), "kept", kept_json(agent), "pending_traces",
        (json_int_t)agent->pending.traces, "open_traces", (json_int_t)ledger_open(agent->ledger),
        "exchange", agent->exchange ? exchange_json(agent->exchange) : NULL, "rules",
        rules_json(agent), "totals", totals_own_json(&record_table, &agent->totals), "lttng",
        "discarded_events", (json_int_t)agent->last.discarded_events, "lost_packets",
        (json_int_t)agent->last.lost_packets, "host_metrics", host_child_json(&agent->host_child),
        "counters", counts_json(&counts), "messages", say_last());
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

static void print_own(struct printer *printer, const struct agent *agent)
{
    json_t *hosts = asking_hosts(agent);

    print_metric(printer, "blkin_record_recording", "gauge", "1: the ring is recorded.",
                 records(agent));
    print_metric(printer, "blkin_record_ring_bytes_per_second", "gauge",
                 "Written into the ring, at the last look.", agent->look.bytes_per_s);
    print_metric(printer, "blkin_record_ring_holds_seconds", "gauge",
                 "So long the ring lasts at this rate; 0: not known.", holds_s(agent));
    print_metric(printer, "blkin_record_pending_traces", "gauge",
                 "Traces that wait for a snapshot.", agent->pending.traces);
    print_metric(printer, "blkin_record_open_traces", "gauge",
                 "Traces that are asked for and not judged yet.", ledger_open(agent->ledger));
    print_metric(printer, "blkin_record_kept_waiting", "gauge",
                 "Kept folders that the collector has not taken yet.", kept_count(&agent->kept));
    print_metric(printer, "blkin_record_kept_bytes", "gauge", "Bytes of them.", agent->kept.bytes);
    print_metric(printer, "blkin_record_hosts", "gauge", "Recorders that are there, this one too.",
                 json_array_size(hosts));
    totals_own_print(printer, &record_table, &agent->totals);
    json_decref(hosts);
}

char *record_status_page(const struct agent *agent)
{
    const struct counts counts = counts_of(agent);
    struct printer printer = {.has_failed = false};

    print_own(&printer, agent);
    return metrics_page(&counts, config_text(agent->config, "endpoint"), print_end(&printer));
}

void record_status_print(const struct record_totals *totals)
{
    totals_say(&totals->readers, &record_table, totals, record_table.own[0].name);
}

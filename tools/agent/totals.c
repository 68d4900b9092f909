/* SPDX-License-Identifier: BSD-2-Clause */
#include "totals.h"

#include "tools/base/json.h"

#define OWN(member, help)                                    \
    {                                                        \
#member, offsetof(struct agent_totals, member), help \
    }

static const struct total own[] = {
    OWN(alarms, "Alarms that name a trace, of this host's programs and SDKs: each counts once."),
    OWN(alarms_double, "Alarms whose trace was wanted already, was fetched after the alarm, or "
                       "goes out by send = all."),
    OWN(alarms_dropped, "Alarms beyond fetch-traces: their traces are not fetched."),
    OWN(alarms_lost, "Alarms that were overwritten before they were seen."),
    OWN(alarms_newer, "Alarms of a newer version than this program reads."),
    OWN(alarms_held_back, "Spans that fit a rule and were held back by the cap of the program."),
    OWN(traces_asked, "Traces that this host asked all hosts for: for alarms, for joins, and again "
                      "after a restart or for an earlier begin."),
    OWN(traces_asked_by_hand, "Traces that persons on this host asked for."),
    OWN(traces_asked_by_others, "Traces that other hosts asked for."),
    OWN(traces_dropped, "Traces that others or persons asked for, and fetch-traces did not allow."),
    OWN(fetches, "Scans of the rings for wanted traces."),
    OWN(fetches_failed, "Scans of the rings that failed."),
    OWN(fetched_bytes, "Bytes of the rings that these scans looked at."),
    OWN(picked_bytes, "Bytes of these that were found."),
    OWN(rings_damaged, "Times that a program damaged a ring."),
    OWN(foreign_fetched, "Spans of OpenTelemetry's SDKs that were fetched."),
    OWN(foreign_dropped, "Spans of OpenTelemetry's SDKs that were dropped: memory ran out."),
    OWN(traces_complete, "Traces that this host has asked for, and that are complete."),
    OWN(traces_incomplete,
        "Traces that this host has asked for, and that are incomplete: a span says so."),
    OWN(traces_not_found, "Traces that a person asked for, but that no host has."),
    OWN(traces_of_others, "Traces that this host has asked for, and another host judges."),
    OWN(traces_asked_again, "Traces that this host has asked for again before that."),
    OWN(incomplete_untold, "Incomplete traces without a span that says so: too many were open."),
    OWN(traces_apart,
        "Traces that are incomplete, as a part of the request is a trace of its own: a span says "
        "so."),
    OWN(halves_dropped, "Halves of requests between servers for which there was no room."),
    OWN(rings_grown, "Times that programs got larger rings."),
    OWN(traces_skipped, "Traces that are not looked for again, as the agent crashed twice while it "
                        "looked for them."),
    OWN(skipped_bytes, "Bytes of the rings that are not read (send = all), as the agent crashed "
                       "twice while it read them."),
};

const struct totals_table agent_table = {"agent", own, sizeof(own) / sizeof(own[0])};

json_t *agent_totals_load(struct agent_totals *totals, const char *path)
{
    json_t *json = json_read(path), *alarms_seen = NULL;

    *totals = (struct agent_totals){.alarms = 0};
    if (totals_read(json, &totals->sinks, &agent_table, totals))
        alarms_seen = json_incref(json_object_get(json, "heard"));
    totals->ring_bytes = (uint64_t)number_in(json, "ring_bytes");
    totals->deaths = (uint64_t)number_in(json, "deaths");
    totals->deaths_at_ns = number_in(json, "deaths_at");
    totals->read = json_incref(json_object_get(json, "read"));
    totals->file = json_incref(json_object_get(json, "file"));
    json_decref(json);
    return alarms_seen;
}

char *agent_totals_text(const struct agent_totals *totals, json_t *alarms_seen, size_t *length)
{
    json_t *json = totals_json(&totals->sinks, &agent_table, totals);
    char *text;

    if (json_object_set_new(json, "heard", alarms_seen) != 0 ||
        json_object_set_new(json, "ring_bytes", json_integer((json_int_t)totals->ring_bytes)) !=
            0 ||
        json_object_set_new(json, "deaths", json_integer((json_int_t)totals->deaths)) != 0 ||
        json_object_set_new(json, "deaths_at", json_integer(totals->deaths_at_ns)) != 0 ||
        (totals->read && json_object_set(json, "read", totals->read) != 0) ||
        (totals->file && json_object_set(json, "file", totals->file) != 0)) {
        json_decref(json);
        json = NULL;
    }
    text = json_text(json, length);
    json_decref(json);
    return text;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "export.h"
#include "tools/base/folders.h"
#include "tools/base/json.h"
#include "tools/base/notify.h"
#include "tools/base/saver.h"
#include "tools/cluster/broker.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AGENT_AGAIN_MS 60000 /* the service logs the same state again only after this time */

/* ---- the totals ------------------------------------------------------------------------------ */

#define OWN(member, help)                                    \
    {                                                        \
#member, offsetof(struct agent_totals, member), help \
    }

static const struct total own[] = {
    OWN(alarms, "Alarms that name a trace, of this host's programs and SDKs: each counts once."),
    OWN(alarms_double, "Alarms whose trace was wanted already, was fetched after the alarm, or "
                       "is sent by send = all."),
    OWN(alarms_dropped, "Alarms beyond the asker's share of fetch-traces, or without memory, or at "
                        "the agent's end: their traces are not fetched."),
    OWN(alarms_lost, "Alarms that were overwritten before they were read."),
    OWN(alarms_newer, "Alarms of a newer version than this program reads."),
    OWN(alarms_held_back, "Alarms that the cap of their rule suppressed."),
    OWN(traces_asked,
        "Traces in this host's requests to all hosts: for alarms and joins, and repeated after a "
        "restart, or if a trace began earlier than known."),
    OWN(traces_asked_by_hand, "Traces that persons on this host asked for."),
    OWN(traces_asked_by_others, "Traces that other hosts asked for."),
    OWN(traces_dropped, "Traces of requests that fetch-traces left out of the queue of scans."),
    OWN(fetches, "Scans of the rings for wanted traces."),
    OWN(fetches_failed, "Scans of the rings that failed."),
    OWN(fetched_bytes, "Bytes of the rings that scans read."),
    OWN(picked_bytes, "Bytes of the records that scans found."),
    OWN(rings_damaged, "Damaged rings: a ring counts in each scan that reaches the damage."),
    OWN(foreign_fetched, "Spans of OpenTelemetry's SDKs that were fetched."),
    OWN(foreign_dropped, "Spans of OpenTelemetry's SDKs that were dropped: their buffer was full, "
                         "or memory ran out."),
    OWN(traces_complete, "Traces that this host has asked for, and that are complete."),
    OWN(traces_incomplete,
        "Traces that this host has asked for, and that are incomplete: a span reports it."),
    OWN(traces_not_found, "Traces that a person asked for, but that no host has."),
    OWN(traces_of_others, "Traces that this host has asked for, and another host judges."),
    OWN(traces_asked_again, "Traces that this host has asked for again before a verdict."),
    OWN(incomplete_untold,
        "Incomplete traces that no span reports, because too many requests were open."),
    OWN(traces_apart,
        "Incomplete traces whose request has a part that was sent as a separate trace: a span "
        "reports it."),
    OWN(halves_dropped,
        "Halves of requests between servers for which there was no room or no memory."),
    OWN(windows_refused, "Requests for the last seconds that keep-minute-bytes refused."),
    OWN(rings_grown, "Times that programs got larger rings."),
    OWN(traces_skipped, "Traces that are not looked for again, as the agent crashed twice while it "
                        "looked for them."),
    OWN(skipped_bytes, "Bytes of the rings that are not read (send = all), as the agent crashed "
                       "twice while it read them, or as they were overwritten before it started "
                       "again."),
};

const struct totals_table agent_table = {"agent", own, sizeof(own) / sizeof(own[0])};

/* Returns the list of read alarms (watcher.h), which the caller frees. A missing or damaged
 * file gives zeros and NULL. */
static json_t *agent_totals_load(struct agent_totals *totals, const char *path)
{
    json_t *json = json_read(path), *alarms_seen = NULL;

    *totals = (struct agent_totals){.alarms = 0};
    if (totals_read(json, &totals->sinks, &agent_table, totals)) {
        alarms_seen = json_incref(json_object_get(json, "heard"));
        totals->ring_bytes = (uint64_t)number_in(json, "ring_bytes");
        totals->deaths = (uint64_t)number_in(json, "deaths");
        totals->deaths_at_ns = number_in(json, "deaths_at");
        totals->read = json_incref(json_object_get(json, "read"));
        totals->file = json_incref(json_object_get(json, "file"));
    }
    json_decref(json);
    return alarms_seen;
}

/* Returns the text of the file; NULL: out of memory. Takes ownership of alarms_seen. */
static char *agent_totals_text(const struct agent_totals *totals, json_t *alarms_seen,
                               size_t *length)
{
    json_t *json = totals_json(&totals->sinks, &agent_table, totals);
    json_t *state =
        json_pack("{so, sI, sI, sI, sO*, sO*}", "heard", alarms_seen, "ring_bytes",
                  (json_int_t)totals->ring_bytes, "deaths", (json_int_t)totals->deaths, "deaths_at",
                  (json_int_t)totals->deaths_at_ns, "read", totals->read, "file", totals->file);
    char *text = json_object_update(json, state) == 0 ? json_text(json, length) : NULL;

    json_decref(state);
    json_decref(json);
    return text;
}

/* ---- the files ------------------------------------------------------------------------------- */

void agent_path(const struct agent *agent, const char *name, char path[4096])
{
    (void)snprintf(path, 4096, "%.4000s/%s", config_text(agent->config, "state-dir"), name);
}

void agent_limit_requests(struct agent *agent)
{
    const struct config *config = agent->config;
    const int64_t wants_per_s = config_integer(config, "cluster-wants-per-s");

    agent->scan_queue.max = (size_t)config_integer(config, "fetch-traces");
    /* when this agent connects again, the broker delivers at once all wants that it stored
     * meanwhile */
    agent->scan_queue.more_for_others =
        config_text(config, "cluster")[0] ? (size_t)(wants_per_s * BROKER_EXPIRY_S) : 0;
}

bool agent_open(struct agent *agent, struct error *error)
{
    askers_begin(&agent->askers);
    agent_path(agent, "agent.json", agent->totals_file);
    agent_path(agent, "agent.fetched", agent->collected_file);
    agent_path(agent, "agent.fetched-new", agent->changed_file);
    if (!folder_make_private(config_text(agent->config, "state-dir"), error))
        return false;
    agent_limit_requests(agent);
    agent->alarms_seen = agent_totals_load(&agent->totals, agent->totals_file);
    agent->read_on = json_incref(agent->totals.read);
    if (!agent->alarms_seen && access(agent->totals_file, F_OK) == 0)
        say(BK4001, "%s is damaged: the totals begin at 0 again", agent->totals_file);
    if (!agent->alarms_seen)
        agent->alarms_seen = json_array();
    agent->collected = collected_new();
    if (!agent->collected)
        return error_set(error, "out of memory");
    collected_load(agent->collected, agent->collected_file);
    collected_load(agent->collected, agent->changed_file);
    return true;
}

void agent_forget_place(struct agent *agent)
{
    json_decref(agent->read_on);
    json_decref(agent->totals.read);
    agent->read_on = agent->totals.read = NULL;
}

void agent_close(struct agent *agent)
{
    requests_free(agent->scan_queue.list);
    requests_free(agent->scan_queue.taken);
    payers_end(&agent->askers);
    json_decref(agent->alarms_seen);
    json_decref(agent->totals.file);
    agent_forget_place(agent);
    if (agent->collected)
        collected_free(agent->collected);
}

bool agent_sends_all(const struct agent *agent)
{
    return agent->fetches_until_ms && clock_ms() >= agent->fetches_until_ms;
}

void agent_step(struct agent *agent)
{
    timer_set(agent->loop, &agent->step, 0);
}

void agent_save(struct agent *agent)
{
    struct agent_totals totals = agent->totals;
    size_t length = 0;
    char *text;

    if (agent->export)
        export_add_account(agent->export, &totals.sinks, true);
    text = agent_totals_text(&totals, json_incref(agent->alarms_seen), &length);
    /* written after changed_file: each alarm in totals_file must have its trace there */
    saver_write_in_turn(agent->totals_file, text, length);
}

static void agent_saved_all(void *context, const char *problem)
{
    struct agent *agent = context;

    if (problem)
        say(BK1040, "%s", problem);
    else
        collected_saved_all(agent->collected, agent->changes_in_all);
}

static void agent_save_all(struct agent *agent, uint64_t settled)
{
    size_t length = 0;
    char *text = collected_text_of_all(agent->collected, settled, &length, &agent->changes_in_all);

    saver_write(agent->collected_file, text, length);
    agent->all_due_ms = clock_ms() + COLLECTED_ALL_MS;
    agent->all_saved = (struct saver_wait){.done = agent_saved_all, .context = agent};
    if (text)
        saver_then(&agent->all_saved);
}

void agent_save_collected(struct agent *agent)
{
    const uint64_t settled = agent->export ? export_settled(agent->export) : UINT64_MAX;
    size_t length = 0;
    char *text;

    if (clock_ms() >= agent->all_due_ms && !agent->all_saved.is_set)
        agent_save_all(agent, settled);
    text = collected_text(agent->collected, settled, &length);
    saver_write_often(agent->changed_file, text, length);
}

void agent_say_state(struct agent *agent, enum message_id id, const char *text)
{
    if (strcmp(agent->said, text) == 0 && clock_ms() - agent->said_ms < AGENT_AGAIN_MS)
        return;
    (void)snprintf(agent->said, sizeof(agent->said), "%s", text);
    agent->said_ms = clock_ms();
    say(id, "%s", text);
    notify("STATUS=%s", text);
}

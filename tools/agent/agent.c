/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "export.h"
#include "tools/base/folders.h"
#include "tools/base/notify.h"
#include "tools/base/saver.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AGENT_AGAIN_MS 60000

void agent_path(const struct agent *agent, const char *key, const char *name, char path[4096])
{
    (void)snprintf(path, 4096, "%.4000s/%s", config_text(agent->config, key), name);
}

/* Renames a state file that has the name of an earlier version. */
static void agent_take_over(const struct agent *agent, const char *name, const char *path)
{
    char before[4096];

    agent_path(agent, "state-dir", name, before);
    if (access(path, F_OK) != 0)
        (void)rename(before, path);
}

bool agent_open(struct agent *agent, struct error *error)
{
    char folder[4096];

    askers_begin(&agent->askers);
    agent_path(agent, "state-dir", "agent.json", agent->totals_file);
    agent_path(agent, "state-dir", "agent.fetched", agent->collected_file);
    if (!folder_own(config_text(agent->config, "state-dir"), "state-dir", error))
        return false;
    agent_take_over(agent, "record.json", agent->totals_file);
    agent_take_over(agent, "record.fetched", agent->collected_file);
    agent_path(agent, "state-dir", "record", folder);
    if (access(folder, F_OK) == 0)
        say(BK4045,
            "%s has slow traces of an earlier version, which are not sent: delete the folder",
            folder);
    agent->scan_queue.max = (size_t)config_integer(agent->config, "fetch-traces");
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
    /* written after the file of traces, which must have the trace of each alarm in this file */
    saver_write_in_turn(agent->totals_file, text, length);
}

void agent_save_collected(struct agent *agent)
{
    size_t length = 0;
    char *text = collected_text(
        agent->collected, agent->export ? export_settled(agent->export) : UINT64_MAX, &length);

    saver_write(agent->collected_file, text, length);
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

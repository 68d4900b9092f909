/*
 * The agent's alarms: what the watcher has seen.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAID_AGAIN_MS 60000

void alarms_begin(void *context)
{
    struct agent *agent = context;

    heard_begin(&agent->heard);
}

static struct rule *rule_of(struct agent *agent, const char *why)
{
    size_t i = 0;

    while (i < agent->rule_count && strcmp(agent->rules[i].why, why) != 0)
        i++;
    if (i == RULES_MAX) /* the last one is for all that have no place */
        return &agent->rules[RULES_MAX - 1];
    if (i == agent->rule_count) {
        agent->rule_count++;
        (void)snprintf(agent->rules[i].why, sizeof(agent->rules[i].why), "%s",
                       i == RULES_MAX - 1 ? "(others)" : why);
    }
    return &agent->rules[i];
}

static bool has_room(const struct agent *agent)
{
    const size_t collected = agent->collected ? agent->collected->count : 0;

    return agent->pending.traces + collected < agent->pending.max;
}

/* By the wall clock. */
static int64_t begin_of(const struct alarm *alarm)
{
    return wall_clock_ns() - clock_ns() + (int64_t)alarm->monotonic_ns -
           (int64_t)alarm->duration_ns;
}

void alarms_take(void *context, const struct alarm *alarm)
{
    struct agent *agent = context;
    const struct trace_id id = {alarm->trace_id_high, alarm->trace_id};
    struct rule *rule;

    if (!heard_alarm(&agent->heard, alarm))
        return;
    agent->has_heard = true;
    rule = rule_of(agent, alarm->why);
    rule->held_back += alarm->dropped;
    agent->heard_now.held_back += alarm->dropped;
    if (!id.high && !id.low)
        return;
    rule->alarms++;
    agent->heard_now.alarms++;
    if (fetched_has(agent->fetched, id, alarm->monotonic_ns) ||
        pending_has(&agent->pending, id, NULL) ||
        (agent->collected && request_has(agent->collected, id))) {
        agent->heard_now.doubles++;
        return;
    }
    if (!agent->collected)
        agent->collected = request_new("", agent->host);
    if (!agent->collected || !has_room(agent) ||
        !request_add(agent->collected, id, begin_of(alarm), alarm->why)) {
        rule->dropped++;
        agent->heard_now.dropped++;
    }
}

/* With the list of what was heard: what is saved before has neither. */
static void count_heard(struct agent *agent)
{
    agent->totals.alarms += agent->heard_now.alarms;
    agent->totals.alarms_held_back += agent->heard_now.held_back;
    agent->totals.alarms_double += agent->heard_now.doubles;
    agent->totals.alarms_dropped += agent->heard_now.dropped;
    memset(&agent->heard_now, 0, sizeof(agent->heard_now));
}

static void say_lost(struct agent *agent, uint64_t lost)
{
    agent->totals.alarms_lost += lost;
    if (clock_ms() - agent->lost_said_ms < SAID_AGAIN_MS && agent->lost_said_ms)
        return;
    agent->lost_said_ms = clock_ms();
    say(BK4020,
        "%" PRIu64 " alarms were overwritten before they were seen: too many spans are slow; "
        "raise the limits of the rules, or lower their max=",
        lost);
}

void alarms_polled(void *context, const struct watcher_poll *poll)
{
    struct agent *agent = context;
    struct request *collected = agent->collected;

    const uint64_t lost = poll->lost + (poll->is_well ? heard_end(&agent->heard) : 0);

    agent->collected = NULL;
    if (lost)
        say_lost(agent, lost);
    if (!poll->is_well && agent->has_looked && agent->last.state == RECORDS)
        sessions_look(&agent->sessions);
    if (poll->is_stalled) {
        say(BK4021,
            "the alarm's session stands still on a CPU, as after a program was killed: it is made "
            "anew");
        agent->totals.rings_stalled++;
        sessions_make_anew(&agent->sessions, SESSION_ALARM);
    }
    if (collected && collected->count) {
        agent->totals.traces_asked += collected->count;
        asking_ask(agent, collected, NULL, config_integer(agent->config, "linger-ms"));
    } else {
        requests_free(collected);
    }
    if (agent->has_heard) {
        count_heard(agent);
        json_decref(agent->heard_list);
        agent->heard_list = heard_json(&agent->heard);
    }
    if (agent->has_heard || lost)
        agent_save(agent);
    agent->has_heard = false;
    agent->has_polled = true;
    agent_step(agent);
}

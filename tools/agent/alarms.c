/*
 * Collects alarms, counts them by rule, and requests the traces of alarms.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "alarms.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"
#include "watcher.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULES_MAX     64
#define SAID_AGAIN_MS 60000

/* The counts of one rule since the start of the agent. */
struct rule {
    char why[128];
    uint64_t alarms, held_back, dropped;
};

struct alarms {
    struct agent *agent;
    struct asking *asking;
    struct watcher watcher;
    struct timer poll;
    bool is_stopped;
    struct request *collected; /* the traces of one poll */
    struct rule rules[RULES_MAX];
    size_t rule_count;
    int64_t lost_said_ms;
    struct heard heard;
    bool has_heard; /* true: an alarm came since the last poll */
    struct {        /* counts since the last poll */
        uint64_t alarms, held_back, doubles, dropped;
    } heard_now;
};

/* ---- one alarm ------------------------------------------------------------------------------- */

static struct rule *alarms_rule(struct alarms *alarms, const char *why)
{
    size_t i = 0;

    while (i < alarms->rule_count && strcmp(alarms->rules[i].why, why) != 0)
        i++;
    if (i == RULES_MAX) /* the last rule counts for all rules without a slot */
        return &alarms->rules[RULES_MAX - 1];
    if (i == alarms->rule_count) {
        alarms->rule_count++;
        (void)snprintf(alarms->rules[i].why, sizeof(alarms->rules[i].why), "%s",
                       i == RULES_MAX - 1 ? "(others)" : why);
    }
    return &alarms->rules[i];
}

static bool alarms_have_room(const struct alarms *alarms)
{
    const size_t collected = alarms->collected ? alarms->collected->count : 0;

    return !alarms->is_stopped && collected < pending_room(&alarms->agent->pending);
}

/* Returns the begin of the alarm's span in ns since 1970. */
static int64_t alarms_begin_of(const struct alarm *alarm)
{
    const int64_t
        wall_ns = wall_clock_ns(),
        now_ns = clock_ns(); /* read second: an early begin does no harm, see request_begin() */

    return alarm_begin_ns(alarm, now_ns, wall_ns - now_ns);
}

static void alarms_take(void *context, const struct alarm *alarm)
{
    struct alarms *alarms = context;
    struct agent *agent = alarms->agent;
    const struct trace_id id = {alarm->trace_id_high, alarm->trace_id};
    struct rule *rule;

    alarms->has_heard = true;
    rule = alarms_rule(alarms, alarm->why);
    rule->held_back += alarm->dropped;
    alarms->heard_now.held_back += alarm->dropped;
    if (!id.high && !id.low)
        return;
    rule->alarms++;
    alarms->heard_now.alarms++;
    if (fetched_has(agent->fetched, id, alarm->monotonic_ns) ||
        pending_has(&agent->pending, id, NULL) ||
        (alarms->collected && request_has(alarms->collected, id))) {
        alarms->heard_now.doubles++;
        return;
    }
    if (!alarms->collected)
        alarms->collected = request_new("", agent->host);
    if (!alarms->collected || !alarms_have_room(alarms) ||
        !request_add(alarms->collected, id, alarms_begin_of(alarm), alarm->why)) {
        rule->dropped++;
        alarms->heard_now.dropped++;
    }
}

/* Adds the counts of this poll to the totals, when the list of heard alarms is made. The state file
 * has the counts and the list of one moment. */
static void alarms_count_heard(struct alarms *alarms)
{
    struct agent_totals *totals = &alarms->agent->totals;

    totals->alarms += alarms->heard_now.alarms;
    totals->alarms_held_back += alarms->heard_now.held_back;
    totals->alarms_double += alarms->heard_now.doubles;
    totals->alarms_dropped += alarms->heard_now.dropped;
    memset(&alarms->heard_now, 0, sizeof(alarms->heard_now));
}

static void alarms_say_lost(struct alarms *alarms, uint64_t lost)
{
    alarms->agent->totals.alarms_lost += lost;
    if (clock_ms() - alarms->lost_said_ms < SAID_AGAIN_MS && alarms->lost_said_ms)
        return;
    alarms->lost_said_ms = clock_ms();
    say(BK4020,
        "%" PRIu64 " alarms were overwritten before they were seen: too many spans are slow; "
        "raise the limits of the rules, or lower their max=",
        lost);
}

static void alarms_say_newer(struct alarms *alarms, uint64_t newer)
{
    if (alarms->agent->totals.alarms_newer == 0)
        say(BK4025,
            "a program of this host records alarms of a newer version, which are only counted: "
            "upgrade blkin here");
    alarms->agent->totals.alarms_newer += newer;
}

static void alarms_ask(struct alarms *alarms)
{
    struct request *collected = alarms->collected;

    alarms->collected = NULL;
    if (!collected || !collected->count) {
        requests_free(collected);
        return;
    }
    alarms->agent->totals.traces_asked += collected->count;
    asking_ask_for_alarms(alarms->asking, collected);
}

static void alarms_look(struct alarms *alarms)
{
    const struct watcher_poll poll = watcher_look(&alarms->watcher);
    struct agent *agent = alarms->agent;

    if (poll.lost)
        alarms_say_lost(alarms, poll.lost);
    if (poll.newer)
        alarms_say_newer(alarms, poll.newer);
    alarms_ask(alarms);
    if (alarms->has_heard || poll.lost) {
        alarms_count_heard(alarms);
        json_decref(agent->heard);
        agent->heard = heard_json(&alarms->heard);
    }
    if (alarms->has_heard || poll.lost || poll.newer) {
        agent_save(agent);
        agent_step(agent);
    }
    alarms->has_heard = false;
}

static void alarms_poll(void *context)
{
    struct alarms *alarms = context;

    alarms_look(alarms);
    timer_set(alarms->agent->loop, &alarms->poll,
              config_integer(alarms->agent->config, "alarm-poll-ms"));
}

/* ---- begin and end --------------------------------------------------------------------------- */

struct alarms *alarms_new(struct agent *agent, struct asking *asking)
{
    struct alarms *alarms = calloc(1, sizeof(*alarms));

    if (!alarms)
        return NULL;
    alarms->agent = agent;
    alarms->asking = asking;
    heard_read(&alarms->heard, agent->heard);
    alarms->watcher =
        (struct watcher){.heard = &alarms->heard, .alarm = alarms_take, .context = alarms};
    alarms->poll = (struct timer){.due = alarms_poll, .context = alarms};
    return alarms;
}

void alarms_free(struct alarms *alarms)
{
    if (!alarms)
        return;
    requests_free(alarms->collected);
    free(alarms);
}

void alarms_memory_came(struct alarms *alarms, const struct memory *memory, uint32_t user)
{
    watcher_add(&alarms->watcher, memory, user);
}

void alarms_memory_goes(struct alarms *alarms, const struct memory *memory)
{
    if (!alarms->is_stopped)
        alarms_look(alarms);
    watcher_drop(&alarms->watcher, memory);
}

/* Takes the alarm with the time of now: the span may have ended long ago, but an earlier fetch has
 * only the spans that had arrived by then. */
void alarms_note_otlp(struct alarms *alarms, const struct otlp_alarm *otlp)
{
    struct alarm alarm = {.trace_id_high = otlp->trace_id_high,
                          .trace_id = otlp->trace_id,
                          .duration_ns = otlp->duration_ns,
                          .monotonic_ns = (uint64_t)clock_ns(),
                          .dropped = otlp->dropped};

    watcher_set_text(alarm.why, sizeof(alarm.why), otlp->why);
    alarms_take(alarms, &alarm);
    if (alarms->is_stopped) /* the agent ends and requests no more traces */
        alarms_count_heard(alarms);
}

void alarms_start(struct alarms *alarms)
{
    alarms_poll(alarms);
}

void alarms_stop(struct alarms *alarms)
{
    timer_clear(alarms->agent->loop, &alarms->poll);
    alarms_look(alarms);
    alarms->is_stopped = true;
}

json_t *alarms_rules_json(const struct alarms *alarms)
{
    json_t *list = json_array();

    for (size_t i = 0; i < alarms->rule_count; i++) {
        const struct rule *rule = &alarms->rules[i];

        (void)json_array_append_new(
            list, json_pack("{ss%, sI, sI, sI}", "rule", rule->why, strlen(rule->why), "alarms",
                            (json_int_t)rule->alarms, "held_back", (json_int_t)rule->held_back,
                            "dropped", (json_int_t)rule->dropped));
    }
    return list;
}

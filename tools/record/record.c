/*
 * blkin record: the agent's parts put together in one loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "record.h"

#include "agent.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "status.h"
#include "tools/base/control.h"
#include "tools/base/folders.h"
#include "tools/base/metrics.h"
#include "tools/base/notify.h"
#include "tools/base/privileges.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/config/reload.h"
#include "tools/reader/graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: blkin record [OPTION]... [--KEY=VALUE]...\n"
    "\n"
    "The flight recorder: LTTng keeps the last seconds of all spans in memory, and\n"
    "nobody reads them. When a span was slow or has failed, as the rules of the\n"
    "programs say, or when `blkin keep` asks, its trace is fetched and sent, from all\n"
    "hosts that meet at a hub. It may be stopped and upgraded: LTTng goes on.\n"
    "\n"
    "  --end          end both sessions, after what is wanted by now was sent\n"
    "  --config=FILE  instead of $BLKIN_CONFIG and /etc/blkin/blkin.conf\n"
    "  --KEY=VALUE    a key of the configuration; here matter: endpoint, events,\n"
    "                 record-session, memory-bytes, seconds, alarm-poll-ms (250),\n"
    "                 linger-ms (1000), snapshot-interval-ms (2000),\n"
    "                 snapshot-traces (200), kept-max-bytes (2G), hub,\n"
    "                 answer-timeout-ms (10000); all of them: blkin config keys\n"
    "  -h, --help     print this\n"
    "\n"
    "Exit status: 0 ended in order; 1 it failed, or --end left something undelivered;\n"
    "2 wrong usage or configuration.\n";

#define SAVE_MS       5000
#define SAID_AGAIN_MS 60000
#define END_LIMIT_MS  30000
#define ALARM_SUBBUF  16384 /* bytes */
#define ALARM_SUBBUFS 8     /* per CPU and user: an alarm outlives as many polls */
#define HOST_SUBBUFS  32    /* 17 s at 10 Hz, on one CPU; minutes at the default */
#define RING_SUBBUF   (1 << 20)

/* ---- what is said ---------------------------------------------------------------------------- */

void agent_say_state(struct agent *agent, enum message_id id, const char *text)
{
    if (strcmp(agent->said, text) == 0 && clock_ms() - agent->said_ms < SAID_AGAIN_MS)
        return;
    (void)snprintf(agent->said, sizeof(agent->said), "%s", text);
    agent->said_ms = clock_ms();
    say(id, "%s", text);
    notify("STATUS=%s", text);
}

void agent_save(struct agent *agent)
{
    size_t length = 0;
    char *text = record_totals_text(&agent->totals, json_incref(agent->heard_list), &length);

    saver_write(agent->totals_file, text, length);
}

void agent_save_fetched(struct agent *agent)
{
    size_t length = 0;
    char *text = fetched_text(agent->fetched, &length);

    saver_write(agent->fetched_file, text, length);
}

static void save(void *context)
{
    agent_save(context);
}

/* ---- LTTng ----------------------------------------------------------------------------------- */

static void say_new(struct agent *agent, const struct sessions_report *report)
{
    if (report->is_new[SESSION_RING]) {
        agent->totals.sessions++;
        if (agent->has_recorded && !agent->is_remaking) {
            agent->totals.rings_lost++;
            say(BK4010,
                "LTTng has lost the recorder's session, with what was in its memory: it is made "
                "anew");
        }
        agent->is_remaking = false;
        fetching_ring_is_new(agent);
    }
    if (report->is_new[SESSION_ALARM])
        agent->totals.alarm_sessions++;
    if (report->is_new[SESSION_RING] || report->is_new[SESSION_ALARM])
        agent_save(agent);
}

static void looked(void *context, const struct sessions_report *report)
{
    struct agent *agent = context;

    if (!report) {
        agent_say_state(agent, BK4011,
                        "LTTng's session daemon does not answer: restart it if that lasts");
        return;
    }
    say_new(agent, report);
    agent->last = *report;
    agent->has_looked = true;
    agent->has_recorded |= report->state == RECORDS;
    if (report->state == RECORDS) {
        char text[640];

        (void)snprintf(text, sizeof(text), "session %s records into memory",
                       agent->sessions.specs[SESSION_RING].name);
        agent_say_state(agent, BK4012, text);
    } else {
        agent_say_state(agent, BK4013, report->error.text);
    }
    if (!agent->is_ready) /* also when it only runs, and waits: systemd need not */
        notify("READY=1");
    agent->is_ready = true;
    agent_step(agent);
}

static void set_specs(struct agent *agent)
{
    const struct config *config = agent->config;
    struct session_spec *ring = &agent->sessions.specs[SESSION_RING];
    struct session_spec *alarm = &agent->sessions.specs[SESSION_ALARM];
    struct session_spec *host = &agent->sessions.specs[SESSION_HOST];
    const char *name = config_text(config, "record-session");

    *ring = (struct session_spec){.mode = SESSION_SNAPSHOT,
                                  .subbuf_bytes = RING_SUBBUF,
                                  .subbuf_count = fetching_ring_size(agent)};
    *alarm = (struct session_spec){
        .mode = SESSION_SNAPSHOT, .subbuf_bytes = ALARM_SUBBUF, .subbuf_count = ALARM_SUBBUFS};
    (void)snprintf(ring->name, sizeof(ring->name), "%s", name);
    session_set_events(ring, config_text(config, "events"), false);
    (void)snprintf(ring->filter, sizeof(ring->filter), "%s", config_text(config, "filter"));
    *host = (struct session_spec){
        .mode = SESSION_SNAPSHOT, .subbuf_bytes = ALARM_SUBBUF, .subbuf_count = HOST_SUBBUFS};
    (void)snprintf(alarm->name, sizeof(alarm->name), "%.240s-alarm", name);
    (void)snprintf(alarm->events, sizeof(alarm->events), "blkin:slow");
    (void)snprintf(host->name, sizeof(host->name), "%.240s-host", name);
    if (config_boolean(config, "host"))
        session_set_events(host, "", true);
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool is_drained(const struct agent *agent)
{
    return !agent->pending.list && !agent->is_fetching && kept_is_idle(&agent->kept) &&
           ledger_open(agent->ledger) == 0 && incomplete_is_idle(&agent->incomplete);
}

static void end_children(struct agent *agent)
{
    if (agent->is_last_call)
        return;
    agent->is_last_call = true;
    kept_stop(&agent->kept);
    incomplete_stop(&agent->incomplete);
}

static void is_late(void *context)
{
    struct agent *agent = context;

    if (agent->is_last_call) {
        loop_stop(agent->loop);
        return;
    }
    end_children(agent);
    timer_set(agent->loop, &agent->deadline,
              config_integer(agent->config, "flush-timeout-ms") + 2000);
    agent_step(agent);
}

/* What is wanted by now is fetched and sent, within flush-timeout-ms; then the children end. */
static void begin_to_end(struct agent *agent)
{
    agent->is_stopping = true;
    host_child_stop(&agent->host_child);
    notify("STOPPING=1");
    watcher_stop(&agent->watcher);
    sessions_stop(&agent->sessions);
    pending_hurry(&agent->pending, clock_ms());
    agent->next_fetch_ms = 0;
    timer_set(agent->loop, &agent->deadline, config_integer(agent->config, "flush-timeout-ms"));
    agent_step(agent);
}

static void ended_sessions(void *context, const void *result)
{
    struct agent *agent = context;

    const struct sessions_end *end = result;

    if (!end || end->has_failed) {
        say(BK4014, "the sessions could not be ended: %s",
            end ? end->error.text : "LTTng's session daemon does not answer");
        agent->has_failed = true;
    } else if (end->error.text[0]) {
        say(BK4015, "no session is ended: %s", end->error.text);
    }
    loop_stop(agent->loop);
}

static void end_sessions(struct agent *agent)
{
    agent->ends_sessions = false;
    agent->end_task.done = ended_sessions;
    agent->end_task.context = agent;
    if (!task_start(agent->loop, &agent->end_task, &sessions_end_job, &agent->sessions,
                    sizeof(agent->sessions), END_LIMIT_MS))
        ended_sessions(agent, NULL);
}

static void step_to_end(struct agent *agent)
{
    const bool runs = agent->kept.sender.child.pid || agent->kept.looker.child.pid ||
                      agent->incomplete.child.pid || agent->watcher.child.pid || agent->is_fetching;

    if (is_drained(agent))
        end_children(agent);
    if (!agent->is_last_call || runs || agent->end_task.is_running)
        return;
    if (agent->ends_sessions) {
        agent->has_failed |= !kept_is_idle(&agent->kept);
        end_sessions(agent);
        return;
    }
    loop_stop(agent->loop);
}

static void end_service(void *context)
{
    struct agent *agent = context;

    if (agent->is_stopping)
        loop_stop(agent->loop);
    else
        begin_to_end(agent);
}

/* ---- what is next ---------------------------------------------------------------------------- */

static void step(void *context)
{
    struct agent *agent = context;
    const int64_t now_ms = clock_ms();
    int64_t next_ms, judge_ms;

    asking_again(agent);
    next_ms = fetching_step(agent);
    judge_ms = asking_judge(agent);
    next_ms = judge_ms < next_ms ? judge_ms : next_ms;
    next_ms = next_ms < now_ms + SAVE_MS ? next_ms : now_ms + SAVE_MS;
    timer_set(agent->loop, &agent->step, next_ms > now_ms ? next_ms - now_ms : 0);
    if (agent->ends_sessions && agent->has_polled && !agent->is_stopping)
        begin_to_end(agent);
    if (agent->is_stopping)
        step_to_end(agent);
}

void agent_step(struct agent *agent)
{
    timer_set(agent->loop, &agent->step, 0);
}

/* ---- the service ----------------------------------------------------------------------------- */

static json_t *read_configuration(struct agent *agent)
{
    struct config *config;

    notify_reloading();
    config = config_read_again(agent->config);
    if (config) {
        if (agent->host_child.loop)
            host_child_reload(&agent->host_child, config);
        config_free(agent->config);
        agent->config = config;
        agent->kept.config = agent->incomplete.config = config;
        agent->kept.sender.config = agent->kept.looker.config = config;
        agent->pending.max = (size_t)config_integer(config, "snapshot-traces");
        set_specs(agent);
    }
    return reload_answer("blkin record", agent->config, config ? NULL : reload_is_wrong);
}

static void reload(void *context)
{
    json_decref(read_configuration(context));
}

static json_t *answer(void *context, const char *request)
{
    struct agent *agent = context;

    if (strcmp(request, "status") == 0)
        return reload_status(record_status_json(agent), agent->config);
    if (strcmp(request, "taps") == 0)
        return json_pack("[s]", agent->kept.tap);
    if (strcmp(request, "reload") == 0)
        return read_configuration(agent);
    return asking_control(agent, request);
}

static char *page(void *context)
{
    return record_status_page(context);
}

static bool open_folders(struct agent *agent, struct error *error)
{
    const char *state = config_text(agent->config, "state-dir");
    const char *runtime = config_text(agent->config, "runtime-dir");
    struct kept *kept = &agent->kept;

    (void)snprintf(agent->folder, sizeof(agent->folder), "%.4000s/record", state);
    (void)snprintf(kept->folder, sizeof(kept->folder), "%s", agent->folder);
    (void)snprintf(agent->totals_file, sizeof(agent->totals_file), "%.4000s/record.json", state);
    (void)snprintf(agent->fetched_file, sizeof(agent->fetched_file), "%.4000s/record.fetched",
                   state);
    (void)snprintf(agent->others_file, sizeof(agent->others_file), "%.4000s/record.asked", state);
    (void)snprintf(kept->sender.stats_file, sizeof(kept->sender.stats_file), "%.4000s/record.stats",
                   state);
    (void)snprintf(kept->looker.stats_file, sizeof(kept->looker.stats_file),
                   "%.4000s/record.look.stats", state);
    (void)snprintf(kept->look_file, sizeof(kept->look_file), "%.4000s/record.look", state);
    (void)snprintf(kept->tap, sizeof(kept->tap), "%.100s/record.tap", runtime);
    (void)snprintf(agent->watcher.folder, sizeof(agent->watcher.folder), "%.4000s/record.alarm",
                   runtime);
    if (!folder_own(state, "state-dir", error) || !folder_own(agent->folder, "state-dir", error))
        return false;
    agent->heard_list = record_totals_load(&agent->totals, agent->totals_file);
    heard_read(&agent->heard, agent->heard_list);
    if (!agent->heard_list && access(agent->totals_file, F_OK) == 0)
        say(BK4001, "%s is damaged: the totals begin anew", agent->totals_file);
    if (!agent->heard_list)
        agent->heard_list = json_array();
    fetched_load(agent->fetched, agent->fetched_file);
    return true;
}

static bool open_metrics(struct agent *agent, struct error *error)
{
    const char *listen = config_text(agent->config, "prometheus-listen");

    if (!listen)
        return true;
    agent->metrics = metrics_open(agent->loop, "prometheus-listen", listen, page, agent, error);
    if (agent->metrics)
        say(BK1012, "metrics for Prometheus: %s", metrics_url(agent->metrics));
    return agent->metrics != NULL;
}

static bool open_kept(struct agent *agent, struct error *error)
{
    struct kept *kept = &agent->kept;

    kept->loop = agent->loop;
    kept->config = agent->config;
    kept->totals = &agent->totals;
    kept->found = asking_found;
    kept->save = save;
    kept->context = agent;
    return kept_open(kept, error);
}

static bool open_all(struct agent *agent, struct error *error)
{
    agent->fetched = fetched_new();
    if (!agent->fetched) {
        error_set(error, "out of memory");
        return false;
    }
    /* first: who has the socket is the only one */
    agent->control = control_open(agent->loop, config_text(agent->config, "runtime-dir"), "record",
                                  answer, agent, error);
    agent->pending.max = (size_t)config_integer(agent->config, "snapshot-traces");
    agent->step = (struct timer){.due = step, .context = agent};
    agent->deadline = (struct timer){.due = is_late, .context = agent};
    return agent->control && open_folders(agent, error) && asking_open(agent, error) &&
           open_metrics(agent, error) && open_kept(agent, error);
}

/* Of --end: what the session is like does not matter. */
static void start_sessions(struct agent *agent)
{
    agent->sessions.loop = agent->loop;
    agent->sessions.looked = looked;
    agent->sessions.context = agent;
    set_specs(agent);
    if (agent->ends_sessions) {
        agent->has_looked = true;
        sessions_stop(&agent->sessions); /* also when the watcher finds no session */
    } else {
        sessions_start(&agent->sessions);
    }
}

static void watcher_is_over(void *context)
{
    agent_step(context);
}

static void start_watcher(struct agent *agent)
{
    struct watcher *watcher = &agent->watcher;

    watcher->loop = agent->loop;
    watcher->session = agent->sessions.specs[SESSION_ALARM].name;
    watcher->poll_ms = config_integer(agent->config, "alarm-poll-ms");
    watcher->heard = &agent->heard;
    watcher->begins = alarms_begin;
    watcher->alarm = alarms_take;
    watcher->polled = alarms_polled;
    watcher->over = watcher_is_over;
    watcher->context = agent;
    watcher_start(watcher);
}

static void serve(struct agent *agent)
{
    if (!saver_open(agent->loop)) {
        say(BK1010, "cannot start: %s", strerror(errno));
        agent->has_failed = true;
        return;
    }
    watchdog_start(&agent->watchdog, agent->loop);
    start_sessions(agent);
    start_watcher(agent);
    if (!agent->ends_sessions)
        host_child_start(&agent->host_child, agent->loop, agent->config);
    agent->asks_again = true;
    asking_load(agent);
    agent_step(agent);
    if (!loop_run(agent->loop)) {
        say(BK1011, "cannot wait: %s", strerror(errno));
        agent->has_failed = true;
    }
    agent_save(agent);
    agent_save_fetched(agent);
    if (!saver_end())
        agent->has_failed = true;
}

static void close_all(struct agent *agent)
{
    host_child_close(&agent->host_child);
    exchange_close(agent->exchange);
    metrics_close(agent->metrics);
    if (agent->control)
        control_close(agent->control);
    kept_close(&agent->kept);
    incomplete_close(&agent->incomplete);
    requests_free(agent->pending.list);
    requests_free(agent->fetching);
    requests_free(agent->collected);
    json_decref(agent->heard_list);
    if (agent->ledger)
        ledger_free(agent->ledger);
    if (agent->fetched)
        fetched_free(agent->fetched);
}

static int run(struct agent *agent)
{
    const struct loop_signals signals = {end_service, reload, agent};
    struct error error;

    agent->loop = loop_new(&signals);
    if (!agent->loop) {
        say(BK1010, "cannot start: %s", strerror(errno));
        return 1;
    }
    if (open_all(agent, &error)) {
        serve(agent);
        if (say_level() != BT_LOGGING_LEVEL_NONE)
            record_status_print(&agent->totals);
    } else {
        say(BK1010, "%s", error.text);
        agent->has_failed = true;
    }
    close_all(agent);
    loop_free(agent->loop);
    return agent->has_failed ? 1 : 0;
}

int record_command(int argc, char *argv[])
{
    bool end = false;
    const struct config_flag flags[] = {{"end", &end, NULL}, {NULL, NULL, NULL}};
    const struct config_request request = {"record", usage, flags};
    struct agent agent = {.has_failed = false};
    int status;

    agent.config = config_read(&request, argc, argv, &status);
    if (!agent.config)
        return status;
    if (config_operands(agent.config) > 0) {
        fprintf(stderr, "%s: expected no operand\n%s", argv[0], usage);
        config_free(agent.config);
        return 2;
    }
    say_open(argv[0], config_text(agent.config, "log-level"));
    agent.ends_sessions = end;
    if (gethostname(agent.host, sizeof(agent.host) - 1) != 0 || !agent.host[0])
        (void)snprintf(agent.host, sizeof(agent.host), "localhost");
    status = privileges_become_owner(config_text(agent.config, "state-dir"),
                                     config_text(agent.config, "runtime-dir"))
                 ? run(&agent)
                 : 1;
    config_free(agent.config);
    return status;
}

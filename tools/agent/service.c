/*
 * Command "blkin agent": sends the slow and failed traces of a host, or all spans (send = all).
 * Programs write all spans to rings, which hold the last seconds. If a span was slow or has failed,
 * the agent reads its trace from the rings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/account/stats_file.h"
#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "alarms.h"
#include "by_hand.h"
#include "deaths.h"
#include "dump_rings.h"
#include "export.h"
#include "scans.h"
#include "send_all.h"
#include "tools/base/commands.h"
#include "tools/base/folders.h"
#include "tools/base/json.h"
#include "tools/base/metrics.h"
#include "tools/base/notify.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/config/frame.h"
#include "waiting.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
#include "tools/agent/usage.txt.inc"
    ;

#define STEP_MS  5000 /* the longest time between two steps */
#define STALL_MS 1000 /* a step that is later than this shows that the process was stopped */
#define POST_MS  20   /* at the end: the interval of checks whether the broker has all answers */
/* At the end, after flush-timeout-ms: the time for a running scan to end. */
#define LAST_SCAN_MS 2000
#define SAVE_MS      10000
/* After a change from slow to all, slow traces are collected for this time. */
#define SWITCH_MS 60000

/* ---- the end --------------------------------------------------------------------------------- */

static void service_on_deadline(void *context)
{
    struct agent *agent = context;

    if (agent->is_last_scan) {
        loop_stop(agent->loop);
        return;
    }
    agent->is_last_scan = true;
    timer_set(agent->loop, &agent->deadline, LAST_SCAN_MS);
    agent_step(agent);
}

/* Begins to stop: sends all wanted traces within flush-timeout-ms. */
static void service_begin_to_stop(struct agent *agent)
{
    agent->is_stopping = true;
    alarms_stop(agent->alarms);
    joins_end(agent->wants->joins);
    scans_end(agent->scans);
    timer_set(agent->loop, &agent->deadline, config_integer(agent->config, "flush-timeout-ms"));
    agent_step(agent);
}

static void service_step_to_stop(struct agent *agent)
{
    const bool is_posting = cluster_is_sending(agent->wants->cluster);

    if (!agent->scan_queue.list && !scans_is_busy(agent->scans) &&
        wants_open_count(agent->wants) == 0)
        agent->is_last_scan = true;
    if (agent->is_last_scan && !scans_is_busy(agent->scans) && !is_posting)
        loop_stop(agent->loop);
    else if (is_posting) /* other hosts need this host's answers */
        timer_set(agent->loop, &agent->step, POST_MS);
}

static void service_end(void *context)
{
    struct agent *agent = context;

    if (agent->is_stopping)
        loop_stop(agent->loop);
    else
        service_begin_to_stop(agent);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void service_step(void *context)
{
    struct agent *agent = context;
    const int64_t now_ms = clock_ms();
    int64_t next_ms = now_ms + STEP_MS;

    if (agent->planned_ms && now_ms - agent->planned_ms > STALL_MS)
        judge_note_stall(agent->wants->judge, now_ms - agent->stepped_ms);
    agent->stepped_ms = now_ms;
    alarms_watch_again(agent->alarms, agent_rings_first(agent->rings));
    next_ms = clock_earlier(next_ms, late_spans_look(agent->late_spans));
    wants_repeat(agent->wants);
    next_ms = clock_earlier(next_ms, scans_step(agent->scans));
    next_ms = clock_earlier(next_ms, wants_judge(agent->wants));
    wants_save(agent->wants);
    agent->planned_ms = next_ms > now_ms ? next_ms : now_ms;
    timer_set(agent->loop, &agent->step, agent->planned_ms - now_ms);
    if (agent->is_stopping)
        service_step_to_stop(agent);
}

/* ---- spans of OpenTelemetry's SDKs ----------------------------------------------------------- */

static void service_otlp_alarm(void *context, const struct otlp_alarm *alarm)
{
    const struct agent *agent = context;

    alarms_note_otlp(agent->alarms, alarm);
}

static bool service_take_span(void *context, const struct otlp_origin *origin,
                              const struct otlp_span *span)
{
    const struct agent *agent = context;

    if (agent->all)
        send_all_take_span(agent->all, origin, span);
    return agent->all != NULL;
}

/* Without otlp-listen and otlp-socket, no SDK sends spans here. */
static bool service_open_otlp(struct agent *agent, struct error *error)
{
    const struct otlp_in_callbacks callbacks = {service_otlp_alarm, service_take_span, agent};
    const struct config *config = agent->config;
    const struct otlp_in_options options = {
        .listen = config_text(config, "otlp-listen"),
        .socket = config_text(config, "otlp-socket"),
        .store_bytes = (uint64_t)config_integer(config, "otlp-bytes"),
        .spans_per_s = (uint64_t)config_integer(config, "otlp-spans-per-s"),
    };

    if (!options.listen[0] && !options.socket[0])
        return true;
    agent->otlp = otlp_in_open(agent->loop, &options, &callbacks, error);
    return agent->otlp != NULL;
}

/* ---- samples of this host -------------------------------------------------------------------- */

static bool service_keep_last(void *context, int64_t last_ms, const char *why, struct error *error)
{
    struct agent *agent = context;
    json_t *answer = by_hand_keep_last(agent, last_ms, "", why);
    const bool is_taken = json_object_get(answer, "id") != NULL;

    if (!is_taken)
        error_set(error, "%s", text_in(answer, "error"));
    json_decref(answer);
    return is_taken;
}

static bool service_sample(struct agent *agent, const struct config *config, struct error *error)
{
    const struct sampler_wanted wanted = {config, service_keep_last, agent};

    if (!sampler_take(&agent->sampler, agent->loop, &wanted, error))
        return false;
    if (agent->all)
        send_all_set_sampler(agent->all, agent->sampler);
    return true;
}

/* ---- the export, and send = all -------------------------------------------------------------- */

static void service_export_failed(void *context)
{
    struct agent *agent = context;

    agent->has_failed = true;
    loop_stop(agent->loop);
}

/* Saves the traces and the place of send = all, so that settled spans are not sent again after a
 * kill. If only the totals have changed, saves them every SAVE_MS. */
static void service_export_settled(void *context)
{
    struct agent *agent = context;
    bool has_place = false;

    if (agent->all)
        has_place = send_all_settle(agent->all, agent_rings_first(agent->rings));
    if (collected_waits(agent->collected))
        agent_save_collected(agent);
    else if (!has_place && clock_ms() < agent->saved_ms + SAVE_MS)
        return;
    agent->saved_ms = clock_ms();
    agent_save(agent);
}

static void service_close_export(struct agent *agent)
{
    if (agent->export)
        agent->has_failed |=
            !export_close(agent->export, &agent->totals.sinks, &agent->totals.file);
    agent->export = NULL;
}

static bool service_open_all(struct agent *agent, struct error *error)
{
    agent->all = send_all_open(agent, agent_rings_first(agent->rings), error);
    if (!agent->all)
        return false;
    send_all_set_sampler(agent->all, agent->sampler);
    agent->fetches_until_ms = clock_ms();
    return true;
}

/* Gives the records up to now to the export, and ends send = all. */
static void service_close_all(struct agent *agent)
{
    if (!agent->all)
        return;
    send_all_close(agent->all, agent_rings_first(agent->rings));
    agent->all = NULL;
    agent->fetches_until_ms = 0;
}

static bool service_apply(struct agent *agent, const struct config *config, struct error *error)
{
    const bool wants_all = send_all_is_wanted(config);

    if (!export_is_same(agent->export, config)) {
        service_close_all(agent);
        scans_hurry(agent->scans);
    } else if (!wants_all) {
        service_close_all(agent);
    }
    return export_change(agent->export, config, error) &&
           (!wants_all || agent->all || service_open_all(agent, error));
}

/*
 * From slow to all: reads events from the current ends of the rings on. Scans still fetch slow
 * traces for SWITCH_MS, because these may have begun before. From all to slow: sends all records up
 * to now.
 */
static bool service_change(struct agent *agent, const struct config *config, struct error *error)
{
    const bool was_all = agent->all != NULL;
    struct error ignored;

    if (!service_apply(agent, config, error)) {
        if (!service_apply(agent, agent->frame.config, &ignored))
            service_export_failed(agent);
        return false;
    }
    if (agent->all && !was_all)
        agent->fetches_until_ms = clock_ms() + SWITCH_MS;
    if (!agent->all)
        agent_forget_place(agent);
    agent_save(agent);
    return true;
}

/* ---- for the frame --------------------------------------------------------------------------- */

static bool service_take(void *context, struct config **given, struct error *error)
{
    const struct config *config = *given;
    struct agent *agent = context;
    struct error ignored;

    if (!service_sample(agent, config, error))
        return false;
    agent->config = config;
    if (!agent_rings_configure(agent->rings, error) || !service_change(agent, config, error)) {
        agent->config = agent->frame.config;
        (void)agent_rings_configure(agent->rings, &ignored);
        (void)service_sample(agent, agent->frame.config, &ignored);
        return false;
    }
    agent_limit_requests(agent);
    if (agent->otlp)
        otlp_in_limit(agent->otlp, (uint64_t)config_integer(config, "otlp-spans-per-s"));
    return true;
}

/* ---- the status, and the metrics for Prometheus ---------------------------------------------- */

static struct counts service_counts(const struct agent *agent)
{
    struct counts sum = agent->totals.sinks;

    export_add_account(agent->export, &sum, false);
    return sum;
}

static json_t *service_endpoint_json(const struct agent *agent)
{
    const char *file = export_file(agent->export);
    const char *endpoint = file[0] ? file : config_text(agent->config, "endpoint");
    char *shown = endpoint_shown(endpoint ? endpoint : "");
    json_t *text = shown ? json_string(shown) : NULL;

    free(shown);
    return text;
}

static json_t *service_rings_json(const struct agent *agent)
{
    json_t *rings = agent_rings_json(agent->rings);

    if (agent->all) {
        json_t *read = send_all_json(agent->all);

        (void)json_object_update(rings, read);
        json_decref(read);
    }
    return rings;
}

static json_t *service_status(void *context)
{
    const struct agent *agent = context;
    const struct counts counts = service_counts(agent);

    return json_pack(
        "{ss, ss, ss, so, so, so*, sI, sb, sI, so*, so, so, so, sI, so}", "state", "recording",
        "send", agent->all ? "all" : "slow", "host", agent->host, "endpoint",
        service_endpoint_json(agent), "rings", service_rings_json(agent), "otlp",
        agent->otlp ? otlp_in_json(agent->otlp) : NULL, "pending_traces",
        (json_int_t)agent->scan_queue.traces, "is_scanning", scans_is_busy(agent->scans),
        "open_traces", (json_int_t)wants_open_count(agent->wants), "cluster",
        cluster_json(agent->wants->cluster), "shares", askers_json(&agent->askers), "totals",
        totals_own_json(&agent_table, &agent->totals), "host_metrics", sampler_json(agent->sampler),
        "saving_ms", (json_int_t)saver_busy_ms(), "counters", counts_json(&counts));
}

static void service_print_own(struct printer *printer, const struct agent *agent)
{
    json_t *hosts = wants_hosts(agent->wants);

    agent_rings_print(agent->rings, printer);
    print_metric(printer, "blkin_agent_pending_traces", "gauge",
                 "Traces that wait for a scan of the rings.", agent->scan_queue.traces);
    print_metric(printer, "blkin_agent_open_traces", "gauge",
                 "Traces that are asked for and not judged yet.", wants_open_count(agent->wants));
    print_metric(printer, "blkin_agent_hosts", "gauge",
                 "Known hosts of the cluster: this one, and others, also if they are away.",
                 json_array_size(hosts));
    if (agent->otlp)
        otlp_in_print(agent->otlp, printer);
    totals_own_print(printer, &agent_table, &agent->totals);
    sampler_print(agent->sampler, printer);
    json_decref(hosts);
}

static char *service_page(void *context)
{
    const struct agent *agent = context;
    const struct counts counts = service_counts(agent);
    struct printer printer = {.has_failed = false};

    service_print_own(&printer, agent);
    return metrics_page_text(&counts, config_text(agent->config, "endpoint"), print_end(&printer));
}

/* ---- requests at the control socket ---------------------------------------------------------- */

static json_t *service_statistics(struct agent *agent)
{
    json_t *sources = json_array(), *all = export_statistics(agent->export);

    if (all)
        (void)json_array_append_new(sources, all);
    return json_pack("{so, ss}", "sources", sources, "only",
                     agent->all ? "" : "slow and failed requests");
}

static json_t *service_ask(void *context, const char *request)
{
    struct agent *agent = context;

    if (strcmp(request, "waiting") == 0)
        return json_pack("{so}", "spans", waiting_spans(export_spool(agent->export)));
    if (strcmp(request, "statistics") == 0)
        return service_statistics(agent);
    return by_hand_answer(agent, request);
}

/* ---- the service ----------------------------------------------------------------------------- */

static void service_add_memory(void *context, struct held *held)
{
    const struct agent *agent = context;

    alarms_add_memory(agent->alarms, held);
    if (agent->all)
        send_all_add_memory(agent->all, held);
}

static void service_drop_memory(void *context, struct held *held)
{
    const struct agent *agent = context;

    alarms_drop_memory(agent->alarms, held);
    if (agent->all)
        send_all_drop_memory(agent->all, held);
}

static bool service_open_parts(struct agent *agent, struct error *error)
{
    const struct holder_callbacks callbacks = {service_add_memory, service_drop_memory, agent};
    const struct export_calls calls = {service_export_failed, service_export_settled, agent};

    agent->wants = wants_open(agent, error);
    if (!agent->wants || !frame_open_page(&agent->frame, error))
        return false;
    agent->export = export_open(agent->loop, agent->config, agent->totals.file, &calls, error);
    if (!agent->export)
        return false;
    json_decref(agent->totals.file); /* after a kill, no run continues the file */
    agent->totals.file = NULL;
    error_set(error, "out of memory");
    agent->alarms = alarms_new(agent);
    if (agent->alarms)
        agent->rings = agent_rings_open(agent, &callbacks, error);
    if (!agent->rings)
        return false;
    if (!send_all_is_wanted(agent->config))
        agent_forget_place(agent);
    else if (!service_open_all(agent, error))
        return false;
    if (!service_open_otlp(agent, error))
        return false;
    error_set(error, "out of memory");
    agent->late_spans = late_spans_new(agent);
    agent->scans = agent->late_spans ? scans_new(agent) : NULL;
    /* the sampler is last: its thread reads the environment, which other parts change before */
    return agent->scans && service_sample(agent, agent->config, error);
}

static bool service_open(struct agent *agent, struct error *error)
{
    if (!frame_open(&agent->frame, error))
        return false;
    agent->loop = agent->frame.loop;
    agent->config = agent->frame.config;
    agent->step = (struct timer){.due = service_step, .context = agent};
    agent->deadline = (struct timer){.due = service_on_deadline, .context = agent};
    if (!agent_open(agent, error))
        return false;
    deaths_watch(agent);
    return service_open_parts(agent, error);
}

static void service_close(struct agent *agent)
{
    service_close_all(agent);
    agent_rings_close(agent->rings); /* reads the last alarms, unless alarms_stop() did so */
    wants_close(agent->wants);
    alarms_free(agent->alarms);
    scans_free(agent->scans);
    service_close_export(agent);
    late_spans_free(agent->late_spans);
    otlp_in_close(agent->otlp);
    sampler_close(agent->sampler);
    agent_close(agent);
}

static void service_serve(struct agent *agent)
{
    deaths_skip_traces(agent);
    deaths_save(agent);
    alarms_start(agent->alarms);
    wants_load(agent->wants);
    agent_step(agent);
    notify("READY=1\nSTATUS=records: programs get their rings at %s",
           config_text(agent->config, "ring-socket"));
    agent->has_failed |= !frame_run(&agent->frame);
    service_close_all(agent);
    scans_free(agent->scans);
    agent->scans = NULL;
    service_close_export(agent);
    json_decref(agent->totals.read);
    agent->totals.read = json_incref(agent->read_on); /* all spans are settled */
    agent_save(agent);
    agent_save_collected(agent);
    wants_save(agent->wants);
    agent->has_failed |= !saver_end();
}

static int service_run(struct agent *agent)
{
    const struct agent_totals *totals = &agent->totals;
    struct error error;

    if (service_open(agent, &error)) {
        service_serve(agent);
        if (say_level() != BT_LOGGING_LEVEL_NONE)
            totals_say(&totals->sinks, &agent_table, totals);
    } else {
        say(BK1010, "%s", error.text);
        agent->has_failed = true;
    }
    service_close(agent);
    return agent->has_failed ? 1 : 0;
}

int agent_command(int argc, char *argv[])
{
    static const struct frame_calls calls = {.name = "agent",
                                             .title = "blkin agent",
                                             .status = service_status,
                                             .take = service_take,
                                             .ask = service_ask,
                                             .page = service_page,
                                             .end = service_end};
    const char *dump = NULL;
    const struct config_flag flags[] = {{"dump", NULL, &dump}, {NULL, NULL, NULL}};
    const struct config_request request = {.section = "agent", .usage = usage, .flags = flags};
    struct agent agent = {.has_failed = false};
    struct frame *frame = &agent.frame;
    int status;

    if (!frame_read(frame, &calls, &agent, &request, argc, argv, &status))
        return status;
    if (dump) {
        status = dump_rings(frame->config, dump);
        frame_close(frame);
        return status;
    }
    sampler_prepare();
    (void)signal(SIGIO, SIG_IGN); /* comes if somebody opens a memory while the holder probes it */
    if (gethostname(agent.host, sizeof(agent.host) - 1) != 0 || !agent.host[0])
        (void)snprintf(agent.host, sizeof(agent.host), "localhost");
    status = folder_become_owner(config_text(frame->config, "state-dir"),
                                 config_text(frame->config, "runtime-dir"))
                 ? service_run(&agent)
                 : 1;
    frame_close(frame);
    return status;
}

/*
 * Command "blkin agent": sends the slow and failed traces of a host, or all spans (send = all).
 * Programs write all spans to rings, which hold the last seconds. If a span was slow or has failed,
 * the agent reads its trace from the rings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "by_hand.h"
#include "deaths.h"
#include "dump_rings.h"
#include "export.h"
#include "status.h"
#include "tools/base/commands.h"
#include "tools/base/folders.h"
#include "tools/base/json.h"
#include "tools/base/notify.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/config/frame.h"
#include "waiting.h"

#include <stdio.h>
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

struct service {
    struct frame frame;
    struct agent_parts parts;
    struct timer deadline; /* limits the time of stopping */
    int64_t stepped_ms;    /* the time of the last step */
    int64_t planned_ms;    /* the planned time of the next step; 0: no step was made */
    int64_t saved_ms;      /* when settled spans last caused a save of the totals */
    bool is_stopping, is_last_scan, has_failed;
};

/* ---- the end --------------------------------------------------------------------------------- */

static void service_on_deadline(void *context)
{
    struct service *service = context;
    struct agent *agent = &service->parts.agent;

    if (service->is_last_scan) {
        loop_stop(agent->loop);
        return;
    }
    service->is_last_scan = true;
    scans_stop_retries(service->parts.scans);
    timer_set(agent->loop, &service->deadline, LAST_SCAN_MS);
    agent_step(agent);
}

/* Begins to stop: sends all wanted traces within flush-timeout-ms. */
static void service_begin_to_stop(struct service *service)
{
    struct agent *agent = &service->parts.agent;

    service->is_stopping = true;
    alarms_stop(service->parts.alarms);
    joins_end(service->parts.wants->joins);
    scans_end(service->parts.scans);
    timer_set(agent->loop, &service->deadline, config_integer(agent->config, "flush-timeout-ms"));
    agent_step(agent);
}

static void service_step_to_stop(struct service *service)
{
    const struct agent_parts *parts = &service->parts;
    const bool is_posting = cluster_is_sending(parts->wants->cluster);

    if (!parts->agent.scan_queue.list && !scans_is_busy(parts->scans) &&
        wants_open_count(parts->wants) == 0)
        service->is_last_scan = true;
    if (service->is_last_scan && !scans_is_busy(parts->scans) && !is_posting)
        loop_stop(parts->agent.loop);
    else if (is_posting) /* other hosts need this host's answers */
        timer_set(parts->agent.loop, &service->parts.agent.step, POST_MS);
}

static void service_end(void *context)
{
    struct service *service = context;

    if (service->is_stopping)
        loop_stop(service->parts.agent.loop);
    else
        service_begin_to_stop(service);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void service_step(void *context)
{
    struct service *service = context;
    struct agent_parts *parts = &service->parts;
    const int64_t now_ms = clock_ms();
    int64_t next_ms = now_ms + STEP_MS;

    if (service->planned_ms && now_ms - service->planned_ms > STALL_MS)
        judge_note_stall(parts->wants->judge, now_ms - service->stepped_ms);
    service->stepped_ms = now_ms;
    alarms_watch_again(parts->alarms, agent_rings_first(parts->agent_rings));
    if (parts->late_spans)
        next_ms = clock_earlier(next_ms, late_spans_look(parts->late_spans));
    wants_repeat(parts->wants);
    next_ms = clock_earlier(next_ms, scans_step(parts->scans));
    next_ms = clock_earlier(next_ms, wants_judge(parts->wants));
    wants_save(parts->wants);
    service->planned_ms = next_ms > now_ms ? next_ms : now_ms;
    timer_set(parts->agent.loop, &parts->agent.step, service->planned_ms - now_ms);
    if (service->is_stopping)
        service_step_to_stop(service);
}

/* ---- spans of OpenTelemetry's SDKs ----------------------------------------------------------- */

static void service_otlp_alarm(void *context, const struct otlp_alarm *alarm)
{
    const struct service *service = context;

    alarms_note_otlp(service->parts.alarms, alarm);
}

static void service_add_late(void *context, struct request *request)
{
    struct service *service = context;

    (void)scan_queue_add(&service->parts.agent.scan_queue, request);
    agent_step(&service->parts.agent);
}

static bool service_take_span(void *context, const struct otlp_origin *origin,
                              const struct otlp_span *span)
{
    const struct service *service = context;

    if (service->parts.all)
        send_all_take_span(service->parts.all, origin, span);
    return service->parts.all != NULL;
}

/* Without otlp-listen and otlp-socket, no SDK sends spans here. */
static bool service_open_otlp(struct service *service, struct error *error)
{
    const struct otlp_in_callbacks callbacks = {service_otlp_alarm, service_take_span, service};
    struct agent_parts *parts = &service->parts;
    const struct config *config = parts->agent.config;
    const struct otlp_in_options options = {
        .listen = config_text(config, "otlp-listen"),
        .socket = config_text(config, "otlp-socket"),
        .store_bytes = (uint64_t)config_integer(config, "otlp-bytes"),
        .spans_per_s = (uint64_t)config_integer(config, "otlp-spans-per-s"),
    };

    if (!options.listen[0] && !options.socket[0])
        return true;
    parts->otlp = otlp_in_open(parts->agent.loop, &options, &callbacks, error);
    if (!parts->otlp)
        return false;
    error_set(error, "out of memory");
    parts->late_spans = late_spans_new(&parts->agent, parts->otlp, service_add_late, service);
    return parts->late_spans != NULL;
}

/* ---- samples of this host -------------------------------------------------------------------- */

static bool service_keep_last(void *context, int64_t last_ms, const char *why, struct error *error)
{
    struct service *service = context;
    json_t *answer =
        by_hand_keep_last(&service->parts.agent, service->parts.wants, last_ms, "", why);
    const bool is_taken = json_object_get(answer, "id") != NULL;

    if (!is_taken)
        error_set(error, "%s", text_in(answer, "error"));
    json_decref(answer);
    return is_taken;
}

static bool service_sample(struct service *service, const struct config *config,
                           struct error *error)
{
    const struct sampler_wanted wanted = {config, service_keep_last, service};
    struct agent_parts *parts = &service->parts;

    if (!sampler_take(&parts->sampler, parts->agent.loop, &wanted, error))
        return false;
    if (parts->all)
        send_all_set_sampler(parts->all, parts->sampler);
    return true;
}

/* ---- the export, and send = all -------------------------------------------------------------- */

static void service_export_failed(void *context)
{
    struct service *service = context;

    service->has_failed = true;
    loop_stop(service->parts.agent.loop);
}

/* Saves the traces and the place of send = all, so that settled spans are not sent again after a
 * kill. If only the totals have changed, saves them every SAVE_MS. */
static void service_export_settled(void *context)
{
    struct service *service = context;
    struct agent *agent = &service->parts.agent;
    bool has_place = false;

    if (service->parts.all)
        has_place =
            send_all_settle(service->parts.all, agent_rings_first(service->parts.agent_rings));
    if (collected_waits(agent->collected))
        agent_save_collected(agent);
    else if (!has_place && clock_ms() < service->saved_ms + SAVE_MS)
        return;
    service->saved_ms = clock_ms();
    agent_save(agent);
}

static void service_close_export(struct service *service)
{
    struct agent *agent = &service->parts.agent;

    if (agent->export)
        service->has_failed |=
            !export_close(agent->export, &agent->totals.sinks, &agent->totals.file);
    agent->export = NULL;
}

static bool service_open_all(struct service *service, struct error *error)
{
    struct agent_parts *parts = &service->parts;

    parts->all = send_all_open(&parts->agent, agent_rings_first(parts->agent_rings), error);
    if (!parts->all)
        return false;
    send_all_set_sampler(parts->all, parts->sampler);
    parts->agent.fetches_until_ms = clock_ms();
    return true;
}

/* Gives the records up to now to the export, and ends send = all. */
static void service_close_all(struct service *service)
{
    struct agent_parts *parts = &service->parts;

    if (!parts->all)
        return;
    send_all_close(parts->all, agent_rings_first(parts->agent_rings));
    parts->all = NULL;
    parts->agent.fetches_until_ms = 0;
}

static bool service_apply(struct service *service, const struct config *config, struct error *error)
{
    struct agent_parts *parts = &service->parts;
    const bool wants_all = send_all_is_wanted(config);

    if (!export_is_same(parts->agent.export, config)) {
        service_close_all(service);
        scans_hurry(parts->scans);
    } else if (!wants_all) {
        service_close_all(service);
    }
    return export_change(parts->agent.export, config, error) &&
           (!wants_all || parts->all || service_open_all(service, error));
}

/*
 * From slow to all: reads events from the current ends of the rings on. Scans still fetch slow
 * traces for SWITCH_MS, because these may have begun before. From all to slow: sends all records up
 * to now.
 */
static bool service_change(struct service *service, const struct config *config,
                           struct error *error)
{
    struct agent_parts *parts = &service->parts;
    const bool was_all = parts->all != NULL;
    struct error ignored;

    if (!service_apply(service, config, error)) {
        if (!service_apply(service, service->frame.config, &ignored))
            service_export_failed(service);
        return false;
    }
    if (parts->all && !was_all)
        parts->agent.fetches_until_ms = clock_ms() + SWITCH_MS;
    if (!parts->all)
        agent_forget_place(&parts->agent);
    agent_save(&parts->agent);
    return true;
}

/* ---- for the frame --------------------------------------------------------------------------- */

static bool service_take(void *context, struct config **given, struct error *error)
{
    const struct config *config = *given;
    struct service *service = context;
    struct agent *agent = &service->parts.agent;
    struct error ignored;

    if (!service_sample(service, config, error))
        return false;
    agent->config = config;
    if (!agent_rings_configure(service->parts.agent_rings, error) ||
        !service_change(service, config, error)) {
        agent->config = service->frame.config;
        (void)agent_rings_configure(service->parts.agent_rings, &ignored);
        (void)service_sample(service, service->frame.config, &ignored);
        return false;
    }
    agent_limit_requests(agent);
    if (service->parts.otlp)
        otlp_in_limit(service->parts.otlp, (uint64_t)config_integer(config, "otlp-spans-per-s"));
    return true;
}

static json_t *service_status(void *context)
{
    const struct service *service = context;

    return agent_status_json(&service->parts);
}

static json_t *service_statistics(struct agent_parts *parts)
{
    json_t *sources = json_array(), *all = export_statistics(parts->agent.export);

    if (all)
        (void)json_array_append_new(sources, all);
    return json_pack("{so, ss}", "sources", sources, "only",
                     parts->all ? "" : "slow and failed requests");
}

static json_t *service_ask(void *context, const char *request)
{
    struct service *service = context;
    struct agent_parts *parts = &service->parts;

    if (strcmp(request, "waiting") == 0)
        return json_pack("{so}", "spans", waiting_spans(export_spool(parts->agent.export)));
    if (strcmp(request, "statistics") == 0)
        return service_statistics(parts);
    return by_hand_answer(&parts->agent, parts->wants, request);
}

static char *service_page(void *context)
{
    const struct service *service = context;

    return agent_status_page(&service->parts);
}

/* ---- the service ----------------------------------------------------------------------------- */

static void service_add_memory(void *context, struct held *held)
{
    const struct service *service = context;

    alarms_add_memory(service->parts.alarms, held);
    if (service->parts.all)
        send_all_add_memory(service->parts.all, held);
}

static void service_drop_memory(void *context, struct held *held)
{
    const struct service *service = context;

    alarms_drop_memory(service->parts.alarms, held);
    if (service->parts.all)
        send_all_drop_memory(service->parts.all, held);
}

static bool service_open_parts(struct service *service, struct error *error)
{
    const struct holder_callbacks callbacks = {service_add_memory, service_drop_memory, service};
    const struct export_calls calls = {service_export_failed, service_export_settled, service};
    struct agent_parts *parts = &service->parts;

    parts->wants = wants_open(&parts->agent, error);
    if (!parts->wants || !frame_open_page(&service->frame, error))
        return false;
    parts->agent.export = export_open(parts->agent.loop, parts->agent.config,
                                      parts->agent.totals.file, &calls, error);
    if (!parts->agent.export)
        return false;
    json_decref(parts->agent.totals.file); /* after a kill, no run continues the file */
    parts->agent.totals.file = NULL;
    error_set(error, "out of memory");
    parts->alarms = alarms_new(&parts->agent, parts->wants);
    if (parts->alarms)
        parts->agent_rings = agent_rings_open(&parts->agent, &callbacks, error);
    if (!parts->agent_rings)
        return false;
    if (!send_all_is_wanted(parts->agent.config))
        agent_forget_place(&parts->agent);
    else if (!service_open_all(service, error))
        return false;
    if (!service_open_otlp(service, error))
        return false;
    error_set(error, "out of memory");
    parts->scans = scans_new(&parts->agent, parts->wants, parts->agent_rings, parts->late_spans,
                             &parts->sampler);
    /* the sampler is last: its thread reads the environment, which other parts change before */
    return parts->scans && service_sample(service, parts->agent.config, error);
}

static bool service_open(struct service *service, struct error *error)
{
    struct agent *agent = &service->parts.agent;

    if (!frame_open(&service->frame, error))
        return false;
    agent->frame = &service->frame;
    agent->loop = service->frame.loop;
    agent->config = service->frame.config;
    agent->step = (struct timer){.due = service_step, .context = service};
    service->deadline = (struct timer){.due = service_on_deadline, .context = service};
    if (!agent_open(agent, error))
        return false;
    deaths_watch(agent);
    return service_open_parts(service, error);
}

static void service_close(struct service *service)
{
    struct agent_parts *parts = &service->parts;

    service_close_all(service);
    agent_rings_close(parts->agent_rings); /* reads the last alarms, unless alarms_stop() did so */
    wants_close(parts->wants);
    alarms_free(parts->alarms);
    scans_free(parts->scans);
    service_close_export(service);
    late_spans_free(parts->late_spans);
    otlp_in_close(parts->otlp);
    sampler_close(parts->sampler);
    agent_close(&parts->agent);
}

static void service_serve(struct service *service)
{
    struct agent_parts *parts = &service->parts;
    struct agent *agent = &parts->agent;

    deaths_skip_traces(agent);
    deaths_save(agent);
    alarms_start(parts->alarms);
    wants_load(parts->wants);
    agent_step(agent);
    notify("READY=1\nSTATUS=records: programs get their rings at %s",
           config_text(agent->config, "ring-socket"));
    service->has_failed |= !frame_run(&service->frame);
    service_close_all(service);
    scans_free(parts->scans);
    parts->scans = NULL;
    service_close_export(service);
    json_decref(agent->totals.read);
    agent->totals.read = json_incref(agent->read_on); /* all spans are settled */
    agent_save(agent);
    agent_save_collected(agent);
    wants_save(parts->wants);
    service->has_failed |= !saver_end();
}

static int service_run(struct service *service)
{
    const struct agent_totals *totals = &service->parts.agent.totals;
    struct error error;

    if (service_open(service, &error)) {
        service_serve(service);
        if (say_level() != BT_LOGGING_LEVEL_NONE)
            totals_say(&totals->sinks, &agent_table, totals);
    } else {
        say(BK1010, "%s", error.text);
        service->has_failed = true;
    }
    service_close(service);
    return service->has_failed ? 1 : 0;
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
    struct service service = {.has_failed = false};
    struct agent *agent = &service.parts.agent;
    struct frame *frame = &service.frame;
    int status;

    if (!frame_read(frame, &calls, &service, &request, argc, argv, &status))
        return status;
    if (dump) {
        status = dump_rings(frame->config, dump);
        frame_close(frame);
        return status;
    }
    sampler_prepare();
    if (gethostname(agent->host, sizeof(agent->host) - 1) != 0 || !agent->host[0])
        (void)snprintf(agent->host, sizeof(agent->host), "localhost");
    status = folder_become_owner(config_text(frame->config, "state-dir"),
                                 config_text(frame->config, "runtime-dir"))
                 ? service_run(&service)
                 : 1;
    frame_close(frame);
    return status;
}

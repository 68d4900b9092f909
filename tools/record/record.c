/*
 * blkin record: the agent's parts put together in one loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "record.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "by_hand.h"
#include "dump_rings.h"
#include "status.h"
#include "tools/base/notify.h"
#include "tools/base/privileges.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/config/frame.h"
#include "tools/reader/reader.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
#include "tools/record/usage.txt.inc"
    ;

#define STEP_MS 5000 /* at the latest */
#define POST_MS 20   /* at the end: is the last answer posted? */

struct record {
    struct frame frame;
    struct record_parts parts;
    struct timer deadline; /* of the end */
    bool is_stopping, is_last_call, has_failed;
};

/* ---- the end --------------------------------------------------------------------------------- */

static bool record_is_drained(const struct record_parts *parts)
{
    return !parts->agent.pending.list && !fetching_is_busy(parts->fetching) &&
           !kept_list(parts->kept) && asking_open_count(parts->asking) == 0 &&
           asking_untold_count(parts->asking) == 0;
}

static void record_end_children(struct record *record)
{
    if (record->is_last_call)
        return;
    record->is_last_call = true;
    fetching_last_call(record->parts.fetching);
    kept_stop(record->parts.kept);
    asking_stop(record->parts.asking);
}

static void record_is_late(void *context)
{
    struct record *record = context;
    struct agent *agent = &record->parts.agent;

    if (record->is_last_call) {
        loop_stop(agent->loop);
        return;
    }
    record_end_children(record);
    timer_set(agent->loop, &record->deadline,
              config_integer(agent->config, "flush-timeout-ms") + 2000);
    agent_step(agent);
}

/* What is wanted by now is fetched and sent, within flush-timeout-ms; then the children end. */
static void record_begin_to_end(struct record *record)
{
    struct agent *agent = &record->parts.agent;

    record->is_stopping = true;
    host_child_stop(&record->parts.host_child);
    alarms_stop(record->parts.alarms);
    fetching_end(record->parts.fetching);
    timer_set(agent->loop, &record->deadline, config_integer(agent->config, "flush-timeout-ms"));
    agent_step(agent);
}

static void record_step_to_end(struct record *record)
{
    const struct record_parts *parts = &record->parts;
    const bool is_posting = asking_is_posting(parts->asking);
    const bool runs = kept_is_running(parts->kept) || asking_is_running(parts->asking) ||
                      fetching_is_busy(parts->fetching) || is_posting;

    if (record_is_drained(parts))
        record_end_children(record);
    if (record->is_last_call && !runs)
        loop_stop(parts->agent.loop);
    else if (is_posting) /* other hosts would say that this one has not answered */
        timer_set(parts->agent.loop, &record->parts.agent.step, POST_MS);
}

static void record_end(void *context)
{
    struct record *record = context;

    if (record->is_stopping)
        loop_stop(record->parts.agent.loop);
    else
        record_begin_to_end(record);
}

/* ---- what is next ---------------------------------------------------------------------------- */

static void record_step(void *context)
{
    struct record *record = context;
    struct record_parts *parts = &record->parts;
    const int64_t now_ms = clock_ms();
    int64_t next_ms = now_ms + STEP_MS, fetch_ms, judge_ms;

    if (parts->later)
        next_ms = later_look(parts->later) < next_ms ? later_look(parts->later) : next_ms;
    asking_again(parts->asking);
    fetch_ms = fetching_step(parts->fetching);
    judge_ms = asking_judge(parts->asking);
    next_ms = fetch_ms < next_ms ? fetch_ms : next_ms;
    next_ms = judge_ms < next_ms ? judge_ms : next_ms;
    timer_set(parts->agent.loop, &parts->agent.step, next_ms > now_ms ? next_ms - now_ms : 0);
    if (record->is_stopping)
        record_step_to_end(record);
}

/* ---- spans of OpenTelemetry's SDKs ----------------------------------------------------------- */

static struct foreign_options record_foreign_options(const struct config *config)
{
    return (struct foreign_options){
        .listen = config_text(config, "otlp-listen"),
        .socket = config_text(config, "otlp-socket"),
        .store_bytes = (uint64_t)config_integer(config, "otlp-bytes"),
        .spans_per_s = (uint64_t)config_integer(config, "otlp-spans-per-s"),
    };
}

static bool record_wants_foreign(const struct config *config)
{
    return config_text(config, "otlp-listen")[0] || config_text(config, "otlp-socket")[0];
}

static void record_foreign_alarm(void *context, const struct foreign_alarm *alarm)
{
    const struct record *record = context;

    alarms_note_foreign(record->parts.alarms, alarm);
}

static void record_add_late(void *context, struct request *request)
{
    struct record *record = context;

    (void)pending_add(&record->parts.agent.pending, request);
    agent_step(&record->parts.agent);
}

static bool record_open_foreign(struct record *record, struct error *error)
{
    const struct foreign_callbacks callbacks = {record_foreign_alarm, record};
    struct record_parts *parts = &record->parts;
    const struct foreign_options options = record_foreign_options(parts->agent.config);

    parts->foreign = foreign_open(parts->agent.loop, &options, &callbacks, error);
    if (!parts->foreign)
        return false;
    error_set(error, "out of memory");
    parts->later = later_new(&parts->agent, parts->foreign, record_add_late, record);
    return parts->later != NULL;
}

/* ---- for the frame --------------------------------------------------------------------------- */

static bool record_take(void *context, struct config **given, struct error *error)
{
    const struct config *config = *given;
    struct record *record = context;
    struct agent *agent = &record->parts.agent;

    if (!reader_endpoint_fits(config, error))
        return false;
    agent->config = config;
    if (!holding_configure(record->parts.holding, error)) {
        agent->config = record->frame.config;
        return false;
    }
    if (record->parts.host_child.loop)
        host_child_reload(&record->parts.host_child, config);
    agent->pending.max = (size_t)config_integer(config, "fetch-traces");
    if (record->parts.foreign) {
        const struct foreign_options options = record_foreign_options(config);

        foreign_reload(record->parts.foreign, &options);
    }
    return true;
}

static json_t *record_status(void *context)
{
    const struct record *record = context;

    return record_status_json(&record->parts);
}

static json_t *record_ask(void *context, const char *request)
{
    struct record *record = context;
    struct record_parts *parts = &record->parts;

    if (strcmp(request, "statistics") == 0)
        return json_pack("{so, ss}", "sources", kept_statistics(parts->kept), "only",
                         "slow and failed requests");
    return by_hand_answer(&parts->agent, parts->asking, request);
}

static char *record_page(void *context)
{
    const struct record *record = context;

    return record_status_page(&record->parts);
}

/* ---- the service ----------------------------------------------------------------------------- */

static void record_memory_came(void *context, struct held *held)
{
    const struct record *record = context;

    alarms_memory_came(record->parts.alarms, &held->memory, held->user);
}

static void record_memory_goes(void *context, struct held *held)
{
    const struct record *record = context;

    alarms_memory_goes(record->parts.alarms, &held->memory);
}

static bool record_open_parts(struct record *record, struct error *error)
{
    const struct holder_callbacks callbacks = {record_memory_came, record_memory_goes, record};
    struct record_parts *parts = &record->parts;

    parts->asking = asking_open(&parts->agent, error);
    if (!parts->asking || !frame_open_page(&record->frame, error))
        return false;
    parts->kept = kept_open(&parts->agent, asking_found, parts->asking, error);
    if (!parts->kept)
        return false;
    error_set(error, "out of memory");
    parts->alarms = alarms_new(&parts->agent, parts->asking);
    if (parts->alarms)
        parts->holding = holding_open(&parts->agent, &callbacks, error);
    if (!parts->holding)
        return false;
    if (record_wants_foreign(parts->agent.config) && !record_open_foreign(record, error))
        return false;
    error_set(error, "out of memory");
    parts->fetching =
        fetching_new(&parts->agent, parts->asking, parts->kept, parts->holding, parts->later);
    return parts->fetching != NULL;
}

static bool record_open(struct record *record, struct error *error)
{
    struct agent *agent = &record->parts.agent;

    if (!frame_open(&record->frame, error))
        return false;
    agent->loop = record->frame.loop;
    agent->config = record->frame.config;
    agent->step = (struct timer){.due = record_step, .context = record};
    record->deadline = (struct timer){.due = record_is_late, .context = record};
    return agent_open(agent, error) && record_open_parts(record, error) &&
           frame_open_saver(&record->frame, error);
}

static void record_close(struct record *record)
{
    struct record_parts *parts = &record->parts;

    host_child_close(&parts->host_child);
    holding_close(parts->holding); /* which reads the last alarms */
    asking_close(parts->asking);
    kept_close(parts->kept);
    alarms_free(parts->alarms);
    fetching_free(parts->fetching);
    later_free(parts->later);
    foreign_close(parts->foreign);
    agent_close(&parts->agent);
}

static void record_serve(struct record *record)
{
    struct record_parts *parts = &record->parts;
    struct agent *agent = &parts->agent;

    alarms_start(parts->alarms);
    host_child_start(&parts->host_child, agent->loop, agent->config);
    asking_load(parts->asking, parts->kept);
    agent_step(agent);
    notify("READY=1\nSTATUS=records: programs get their rings at %s",
           config_text(agent->config, "ring-socket"));
    record->has_failed |= !frame_run(&record->frame);
    agent_save(agent);
    agent_save_fetched(agent);
    record->has_failed |= !saver_end();
}

static int record_run(struct record *record)
{
    struct error error;

    if (record_open(record, &error)) {
        record_serve(record);
        if (say_level() != BT_LOGGING_LEVEL_NONE)
            record_status_print(&record->parts.agent.totals);
    } else {
        say(BK1010, "%s", error.text);
        record->has_failed = true;
    }
    record_close(record);
    return record->has_failed ? 1 : 0;
}

int record_command(int argc, char *argv[])
{
    static const struct frame_calls calls = {.name = "record",
                                             .title = "blkin record",
                                             .status = record_status,
                                             .take = record_take,
                                             .ask = record_ask,
                                             .page = record_page,
                                             .end = record_end};
    const char *dump = NULL;
    const struct config_flag flags[] = {{"dump", NULL, &dump}, {NULL, NULL, NULL}};
    const struct config_request request = {"record", usage, flags};
    struct record record = {.has_failed = false};
    struct agent *agent = &record.parts.agent;
    struct frame *frame = &record.frame;
    struct error error;
    int status;

    if (!frame_read(frame, &calls, &record, &request, argc, argv, &status))
        return status;
    if (dump) {
        status = dump_rings(frame->config, dump);
        frame_close(frame);
        return status;
    }
    if (!reader_endpoint_fits(frame->config, &error)) {
        say(BK1010, "%s", error.text);
        frame_close(frame);
        return 2;
    }
    if (gethostname(agent->host, sizeof(agent->host) - 1) != 0 || !agent->host[0])
        (void)snprintf(agent->host, sizeof(agent->host), "localhost");
    status = privileges_become_owner(config_text(frame->config, "state-dir"),
                                     config_text(frame->config, "runtime-dir"))
                 ? record_run(&record)
                 : 1;
    frame_close(frame);
    return status;
}

/* blkin live: runs a live session of LTTng, its relay daemon, and its readers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/account/stats_file.h"
#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/printer.h"
#include "readers.h"
#include "relay.h"
#include "tracing.h"
#include "tools/base/commands.h"
#include "tools/base/notify.h"
#include "tools/base/folders.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/base/totals.h"
#include "tools/config/frame.h"
#include "tools/reader/graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char usage[] =
#include "tools/live/usage.txt.inc"
    ;

#define SWEEP_PERIOD_MS  600000 /* between deletions of files of ended sessions */
#define DRAIN_LOOK_MS    100    /* between checks whether all events are read */
#define DRAIN_EXTRA_MS   5000   /* added to flush-timeout-ms */
#define NOTIFY_PERIOD_MS 1000   /* between reports to systemd */
#define READY_MAX_MS     10000  /* the longest wait for the relay daemon and a first reader */

struct live_service {
    struct frame frame;
    struct stats_file stats_file; /* path NULL: none */
    char *endpoint;
    struct utsname host;
    struct relay relay;
    struct sweep sweep;
    struct tracing tracing;
    struct readers readers;
    struct timer tick, drain;
    int64_t start_ms, start_ns, ended_ns, ended_trace_ns, drain_until_ms, next_stats_ms;
    int64_t next_sweep_ms;
    bool is_ready, is_ending, is_draining;
    bool is_saving; /* the saver still writes the stats_file at the end */
    int status;
};

/* ---- status and page ------------------------------------------------------------------------- */

static struct run_info run_info(const struct live_service *service)
{
    const int64_t now_ns = wall_clock_ns();

    return (struct run_info){.endpoint = service->endpoint,
                             .start_ns = service->start_ns,
                             .events_ns = now_ns,
                             .now_ns = now_ns,
                             .has_ended = false};
}

static const char *state_text(const struct live_service *service)
{
    return service->is_ending ? "ending" : service->is_ready ? "running" : "starting";
}

static json_t *status_json(void *context)
{
    struct live_service *service = context;
    const struct counts counts = readers_counts(&service->readers);

    return json_pack(
        "{ss, so, ss, so, so, so, so, so, s{sI, sI, sI}}", "state", state_text(service), "started",
        json_time(service->start_ns), "endpoint", service->endpoint, "trace_time",
        json_time(counts.input.trace_time_ns), "relayd", relay_json(&service->relay), "session",
        tracing_json(&service->tracing), "readers", readers_json(&service->readers), "counters",
        counts_json(&counts), "lost", "readers_died", (json_int_t)service->readers.died,
        "spans_with_them", (json_int_t)service->readers.lost_spans, "sessions_stalled",
        (json_int_t)(service->tracing.names - 1));
}

/* Returns the metrics page: the service's own metrics, then the counters of the sinks. */
static char *page(void *context)
{
    struct live_service *service = context;
    const struct counts counts = readers_counts(&service->readers);
    const struct run_info info = run_info(service);
    struct printer printer = {.has_failed = false};

    print_metric(&printer, "blkin_readers", "gauge", "Sessions that are read now.",
                 readers_running(&service->readers));
    print_metric(&printer, "blkin_readers_died_total", "counter", "Readers that died.",
                 service->readers.died);
    print_metric(&printer, "blkin_relayd_starts_total", "counter", "Starts of the relay daemon.",
                 service->relay.starts);
    print_metric(&printer, "blkin_session_active", "gauge",
                 "1: the service's session records; 0: it does not.",
                 service->tracing.state == TRACING_ACTIVE);
    print_metric(&printer, "blkin_sessions_stalled_total", "counter",
                 "Sessions given up because they stood still.", service->tracing.names - 1);
    prometheus_print(&printer, &counts, &info);
    return print_end(&printer);
}

static void write_stats(struct live_service *service, bool has_ended)
{
    const struct counts counts = readers_counts(&service->readers);
    struct run_info info = run_info(service);

    info.has_ended = has_ended;
    if (service->stats_file.path)
        saver_write_by(service->stats_file.path, stats_text(&counts, &info), stats_file_put,
                       &service->stats_file);
}

static void say_progress(struct live_service *service)
{
    const struct counts counts = readers_counts(&service->readers);
    const int64_t now_ns = wall_clock_ns();
    char line[COUNTS_LINE_MAX], distance[48] = "";

    if (say_level() > BT_LOGGING_LEVEL_INFO)
        return;
    if (counts.input.trace_time_ns)
        (void)snprintf(distance, sizeof(distance), ", %.1f s behind",
                       (double)(now_ns - counts.input.trace_time_ns) / 1e9);
    counts_line(&counts, LINE_SHORT, line);
    say_account(BK2002, "running for %" PRId64 " s%s: %s",
                (now_ns - service->start_ns) / 1000000000, distance, line);
}

static void tell_systemd(struct live_service *service)
{
    notify("STATUS=%s: session %s, %u readers", state_text(service),
           service->tracing.state == TRACING_ACTIVE ? "active" : "not active",
           readers_running(&service->readers));
}

/* Reports the service as ready, also without a session daemon or a relay daemon. */
static void be_ready(struct live_service *service)
{
    if (service->is_ready || service->is_ending)
        return;
    service->is_ready = true;
    service->relay.is_urgent = false;
    if (service->tracing.state == TRACING_ACTIVE)
        say_account(BK2001, "recording: session \"%s\", spans go to %s", service->tracing.spec.name,
                    service->endpoint);
    notify("READY=1");
}

static void tick(void *context)
{
    struct live_service *service = context;

    timer_set(service->frame.loop, &service->tick, NOTIFY_PERIOD_MS);
    if ((service->tracing.was_tried && service->tracing.state != TRACING_ACTIVE) ||
        clock_ms() - service->start_ms > READY_MAX_MS)
        be_ready(service);
    tell_systemd(service);
    if (clock_ms() >= service->next_sweep_ms) {
        service->next_sweep_ms = clock_ms() + SWEEP_PERIOD_MS;
        if (service->relay.options.is_own && service->relay.has_listed)
            relay_sweep(&service->sweep, service->frame.loop, service->relay.options.output,
                        &service->relay.listing);
    }
    if (clock_ms() < service->next_stats_ms)
        return;
    service->next_stats_ms = clock_ms() + config_integer(service->frame.config, "stats-period-ms");
    write_stats(service, false);
    say_progress(service);
}

/* ---- callbacks of relay daemon, session and readers ------------------------------------------ */

static void relay_is_up(void *context)
{
    struct live_service *service = context;

    say(BK2010, "the relay daemon is up");
    readers_relay_up(&service->readers);
    if (service->is_ending)
        return;
    readers_add_own(&service->readers, service->host.nodename, service->tracing.spec.name);
    tracing_relay_up(&service->tracing);
}

static void relay_is_down(void *context)
{
    struct live_service *service = context;

    if (!service->relay.options.is_own)
        say(BK2011,
            "the relay daemon is gone, or does not answer: events recorded until the daemon is "
            "back are lost");
    readers_relay_down(&service->readers);
    if (service->tracing.relay_is_up) /* if not, an earlier run's session may be well */
        tracing_relay_down(&service->tracing);
}

static void relay_has_listed(void *context, const struct listing *listing)
{
    struct live_service *service = context;

    readers_listed(&service->readers, listing);
    if (service->tracing.state == TRACING_ACTIVE && readers_has_attached_own(&service->readers))
        be_ready(service);
    if (!service->is_ending)
        tracing_note_listed(&service->tracing, listing_has(listing, service->host.nodename,
                                                           service->tracing.spec.name));
}

static void relay_has_failed(void *context, const struct error *error)
{
    struct live_service *service = context;

    say(BK2012, "%s", error->text);
    service->status = 1;
    loop_stop(service->frame.loop);
}

static void session_is_made(void *context)
{
    struct live_service *service = context;

    readers_add_own(&service->readers, service->host.nodename, service->tracing.spec.name);
}

static void session_stands_still(void *context, const struct live_reader *reader)
{
    struct live_service *service = context;

    if (strcmp(reader->session, service->tracing.spec.name) == 0 &&
        service->relay.state == RELAY_UP && tracing_replace_stalled(&service->tracing)) {
        readers_retire(&service->readers, reader->session);
        readers_add_own(&service->readers, service->host.nodename, service->tracing.spec.name);
    }
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void relay_has_ended(void *context)
{
    struct live_service *service = context;

    thread_job_end(&service->sweep.job);
    if (service->relay.options.is_own) {
        relay_sweep_all(service->relay.options.output);
        (void)rmdir(service->relay.options.output);
    }
    loop_stop(service->frame.loop);
}

static void session_is_destroyed(void *context)
{
    struct live_service *service = context;

    relay_end(&service->relay, relay_has_ended);
}

static void readers_have_ended(void *context)
{
    struct live_service *service = context;

    tracing_destroy(&service->tracing, session_is_destroyed);
}

/* Trace time advances also in a stopped session. All events are read once trace time has passed the
 * time at which the session was stopped. */
static void drain(void *context)
{
    struct live_service *service = context;
    const bool is_read =
        readers_have_read(&service->readers, service->ended_trace_ns, service->ended_ns);

    if (!is_read && clock_ms() < service->drain_until_ms) {
        timer_set(service->frame.loop, &service->drain, DRAIN_LOOK_MS);
        return;
    }
    if (!is_read)
        say(BK2013, "not all recorded events could be read in time: the unread events are lost");
    service->is_draining = false;
    readers_end(&service->readers);
}

static void start_drain(void *context)
{
    struct live_service *service = context;

    service->is_draining = true;
    service->ended_ns = wall_clock_ns();
    service->ended_trace_ns = tracing_now_ns(&service->tracing);
    service->drain_until_ms =
        clock_ms() + DRAIN_EXTRA_MS + config_integer(service->frame.config, "flush-timeout-ms");
    service->drain = (struct timer){.due = drain, .context = service};
    if (service->relay.state == RELAY_UP && service->tracing.state >= TRACING_ACTIVE)
        timer_set(service->frame.loop, &service->drain, DRAIN_LOOK_MS);
    else
        drain(service);
}

/* Once the session is stopped, a second signal ends the service without waiting for unread
 * events. */
static void end(void *context)
{
    struct live_service *service = context;

    if (service->is_draining)
        service->drain_until_ms = 0;
    if (service->is_ending)
        return;
    service->is_ending = true;
    tell_systemd(service);
    tracing_stop(&service->tracing, start_drain);
}

/* ---- another configuration ------------------------------------------------------------------- */

static bool take_configuration(void *context, struct config **given, struct error *error)
{
    const struct config *config = *given;
    struct live_service *service = context;
    struct readers_options options;

    say_open(service->frame.calls->title,
             config_text(config, "log-level")); /* readers get this level, too */
    if (!readers_read_options(config, &service->relay.options, &options, error))
        return false;
    readers_reload(&service->readers, &options);
    free(service->endpoint);
    service->endpoint = endpoint_shown(config_text(config, "endpoint"));
    return true;
}

static json_t *ask(void *context, const char *request)
{
    struct live_service *service = context;

    return strcmp(request, "statistics") == 0
               ? json_pack("{so}", "sources", readers_statistics(&service->readers))
               : NULL;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static bool open_parts(struct live_service *service, struct error *error)
{
    const struct relay_callbacks of_relay = {relay_is_up, relay_is_down, relay_has_listed,
                                             relay_has_failed, service};
    const struct tracing_callbacks of_tracing = {session_is_made, service};
    const struct readers_callbacks of_readers = {session_stands_still, readers_have_ended, service};
    const char *stats = config_text(service->frame.config, "stats-file");
    struct relay_options relay, reached;
    struct session_spec spec;
    struct readers_options readers;
    char note[256], url[sizeof(spec.relay_url)];

    if (!relay_read_options(service->frame.config, &relay, error))
        return false;
    reached = relay_reached(&relay);
    relay_url(&reached, url, sizeof(url));
    if (!tracing_read_spec(service->frame.config, url, &spec, error) ||
        !frame_open_page(&service->frame, error) ||
        (stats && !stats_file_open(&service->stats_file, stats, error)) ||
        !readers_read_options(service->frame.config, &relay, &readers, error))
        return false;
    (void)snprintf(note, sizeof(note), "%s/live.session",
                   config_text(service->frame.config, "runtime-dir"));
    readers_begin(&service->readers, service->frame.loop, &readers, &of_readers);
    tracing_begin(&service->tracing, service->frame.loop, &spec, note, relay.is_own, &of_tracing);
    relay_begin(&service->relay, service->frame.loop, &relay, &of_relay);
    service->relay.is_urgent = true;
    return true;
}

static void print_summary(struct live_service *service)
{
    const struct counts counts = readers_counts(&service->readers);
    char line[COUNTS_LINE_MAX];

    if (say_level() == BT_LOGGING_LEVEL_NONE || !service->is_ending)
        return;
    counts_line(&counts, LINE_WHOLE, line);
    say_account(BK1002, "%s", line);
    if (!counts_add_up(&counts))
        say_account(BK1003, "the account does not add up: this is a bug of BlkKin");
}

static int run(struct live_service *service)
{
    struct error error;

    if (!frame_open(&service->frame, &error) || !open_parts(service, &error)) {
        say(BK1010, "%s", error.text);
        return 1;
    }
    service->tick = (struct timer){.due = tick, .context = service};
    timer_set(service->frame.loop, &service->tick, NOTIFY_PERIOD_MS);
    if (service->status == 0 && !frame_run(&service->frame))
        service->status = 1;
    print_summary(service);
    if (service->is_ending)
        write_stats(service, true);
    service->is_saving = !saver_end();
    return service->is_saving ? 1 : service->status;
}

static void free_service(struct live_service *service)
{
    if (!service->is_saving)
        stats_file_close(&service->stats_file);
    json_decref(service->readers.options.params);
    thread_job_end(&service->sweep.job);
    frame_close(&service->frame);
    free(service->endpoint);
    if (!service->is_saving)
        free(service);
}

int live_command(int argc, char *argv[])
{
    static const struct frame_calls calls = {.name = "live",
                                             .title = "blkin live",
                                             .status = status_json,
                                             .take = take_configuration,
                                             .ask = ask,
                                             .page = page,
                                             .end = end};
    const struct config_request request = {.section = "live", .usage = usage};
    struct live_service *service = calloc(1, sizeof(*service));
    int status = 1;

    if (!service) {
        fprintf(stderr, "%s: out of memory\n", argv[0]);
        return 1;
    }
    service->stats_file.fd = -1;
    service->start_ms = clock_ms();
    service->start_ns = wall_clock_ns();
    if (!frame_read(&service->frame, &calls, service, &request, argc, argv, &status)) {
        free(service);
        return status;
    }
    status = 1;
    service->endpoint = endpoint_shown(config_text(service->frame.config, "endpoint"));
    if (folder_become_owner(config_text(service->frame.config, "state-dir"),
                            config_text(service->frame.config, "runtime-dir")) &&
        service->endpoint && uname(&service->host) == 0 && graph_can_run())
        status = run(service);
    free_service(service);
    return status;
}

/*
 * blkin rotate: its steps as a service, and what that tells of itself: as JSON for `blkin status`,
 * and to Prometheus.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rotate.h"

#include "babeltrace-plugin/base/http_url.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/printer.h"
#include "steps.h"
#include "tools/base/metrics.h"
#include "tools/base/privileges.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/config/frame.h"
#include "tools/reader/host_child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
#include "tools/rotate/usage.txt.inc"
    ;

struct rotate {
    struct frame frame;
    struct host_child host;
    struct steps steps;
    bool has_failed;
};

static void end_service(void *context)
{
    struct rotate *rotate = context;

    host_child_stop(&rotate->host);
    steps_stop(&rotate->steps);
}

static bool rotate_can_start(const struct config *config)
{
    struct error error;

    if (reader_endpoint_fits(config, &error))
        return true;
    say(BK1010, "%s", error.text);
    return false;
}

static bool take_configuration(void *context, struct config **given, struct error *error)
{
    const struct config *config = *given;
    struct rotate *rotate = context;

    if (!reader_endpoint_fits(config, error))
        return false;
    if (rotate->host.loop)
        host_child_reload(&rotate->host, config);
    steps_configure(&rotate->steps, config);
    return true;
}

/* ---- how it is ------------------------------------------------------------------------------- */

static const char *const states[] = {
    [KEEP_RECORDS] = "recording",
    [KEEP_NO_DAEMON] = "no session daemon",
    [KEEP_NO_CONSUMER] = "no consumer daemon",
    [KEEP_FAILED] = "no session",
};

static bool rotate_records(const struct keeper *keeper)
{
    return keeper->has_looked && keeper->last.state == KEEP_RECORDS;
}

static int64_t oldest_age_s(const struct store *store)
{
    const int64_t age_s =
        store->count ? (wall_clock_ns() - store->chunks[0].closed_ns) / 1000000000 : 0;

    return age_s > 0 ? age_s : 0;
}

/* What is lost is a problem, also while LTTng records. */
static const char *problem_of(const struct steps *steps)
{
    if (!rotate_records(&steps->keeper))
        return steps->keeper.last.error.text;
    return steps->room.dropped_ns ? "the oldest chunks were deleted unread because the disk has no "
                                    "room: see chunks_dropped, and give the folder output more room"
                                  : NULL;
}

static json_t *chunks_json(const struct steps *steps)
{
    const struct store *store = &steps->store;

    return json_pack("{ss, sI, sI, sI, sI, ss, sI}", "output", store->output, "waiting",
                     (json_int_t)store->count, "bytes", (json_int_t)store->bytes, "oldest_age_s",
                     (json_int_t)oldest_age_s(store), "dropped_at_ns",
                     (json_int_t)steps->room.dropped_ns, "converting", steps->totals.current,
                     "saving_ms", (json_int_t)saver_busy_ms());
}

static json_t *rotate_json(void *context)
{
    const struct rotate *rotate = context;
    const struct steps *steps = &rotate->steps;
    const struct keep_report *report = &steps->keeper.last;
    const char *endpoint = config_text(rotate->frame.config, "endpoint");
    const struct counts counts = converter_counts(&steps->converter);
    char *shown = endpoint_shown(endpoint ? endpoint : "");
    json_t *status = json_pack(
        "{ss, ss, ss*, ss, so, so, s{sI, sI}, so, so}", "state",
        steps->keeper.has_looked ? states[report->state] : "starting", "session",
        rotate_records(&steps->keeper) ? report->session : "", "problem", problem_of(steps),
        "endpoint", shown, "chunks", chunks_json(steps), "totals",
        totals_own_json(&rotate_table, &steps->totals), "lttng", "discarded_events",
        (json_int_t)report->discarded_events, "lost_packets", (json_int_t)report->lost_packets,
        "host_metrics", host_child_json(&rotate->host), "counters", counts_json(&counts));

    free(shown);
    return status;
}

static json_t *ask(void *context, const char *request)
{
    const struct rotate *rotate = context;

    return strcmp(request, "taps") == 0 ? json_pack("[s]", rotate->steps.converter.tap) : NULL;
}

static char *page(void *context)
{
    const struct rotate *rotate = context;
    const struct store *store = &rotate->steps.store;
    const struct counts counts = converter_counts(&rotate->steps.converter);
    struct printer printer = {.has_failed = false};

    print_metric(&printer, "blkin_rotate_recording", "gauge", "1: a session of LTTng records.",
                 rotate_records(&rotate->steps.keeper));
    print_metric(&printer, "blkin_rotate_chunks_waiting", "gauge",
                 "Closed chunks that are not converted yet.", store->count);
    print_metric(&printer, "blkin_rotate_bytes_waiting", "gauge", "Bytes of these chunks.",
                 store->bytes);
    print_metric(&printer, "blkin_rotate_oldest_age_seconds", "gauge",
                 "Seconds since the oldest of these chunks was closed.",
                 (uint64_t)oldest_age_s(store));
    totals_own_print(&printer, &rotate_table, &rotate->steps.totals);
    return metrics_page(&counts, config_text(rotate->frame.config, "endpoint"),
                        print_end(&printer));
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* "none": LTTng's own, which are gone when it dies. */
static void shm_of(const struct config *config, char path[4096])
{
    const char *given = config_text(config, "shm-path");

    (void)snprintf(path, 4096, "%s", strcmp(given, "none") == 0 ? "" : given);
}

static bool open_folders(struct rotate *rotate, struct error *error)
{
    struct steps *steps = &rotate->steps;
    struct converter *converter = &steps->converter;
    const char *state = config_text(rotate->frame.config, "state-dir");
    char shm[4096];

    shm_of(rotate->frame.config, shm);
    if (!store_open(&steps->store, config_text(rotate->frame.config, "output"), shm, error) ||
        !folder_own(state, "state-dir", error))
        return false;
    (void)snprintf(converter->totals_file, sizeof(converter->totals_file), "%.4000s/rotate.json",
                   state);
    (void)snprintf(converter->reader.stats_file, sizeof(converter->reader.stats_file),
                   "%.4000s/rotate.stats", state);
    (void)snprintf(converter->checkpoint, sizeof(converter->checkpoint),
                   "%.4000s/rotate.checkpoint", state);
    (void)snprintf(converter->tap, sizeof(converter->tap), "%.100s/rotate.tap",
                   config_text(rotate->frame.config, "runtime-dir"));
    if (!rotate_totals_load(&steps->totals, converter->totals_file))
        say(BK3002, "%s is damaged: the totals begin at 0 again", converter->totals_file);
    return true;
}

static void serve(struct rotate *rotate)
{
    if (rotate_fsync_is_batch(rotate->frame.config))
        say(BK3003, "spool-fsync=second is used as spool-fsync=batch: the checkpoint must not be "
                    "ahead of the spool on the disk");
    if (rotate->steps.work == SERVE)
        host_child_start(&rotate->host, rotate->frame.loop, rotate->frame.config);
    steps_begin(&rotate->steps);
    rotate->has_failed = !frame_run(&rotate->frame);
    rotate->has_failed |= !saver_end();
}

static int run(struct rotate *rotate)
{
    struct error error;

    if (frame_open(&rotate->frame, &error) && open_folders(rotate, &error) &&
        frame_open_page(&rotate->frame, &error) && frame_open_saver(&rotate->frame, &error)) {
        rotate->steps.loop = rotate->frame.loop;
        rotate->steps.config = rotate->frame.config;
        serve(rotate);
        if (say_level() != BT_LOGGING_LEVEL_NONE)
            totals_say(&rotate->steps.totals.readers, &rotate_table, &rotate->steps.totals,
                       "chunks_converted");
    } else {
        say(BK1010, "%s", error.text);
        rotate->has_failed = true;
    }
    host_child_close(&rotate->host);
    store_close(&rotate->steps.store);
    return rotate->has_failed || rotate->steps.has_failed || rotate->steps.ending.has_failed;
}

int rotate_command(int argc, char *argv[])
{
    static const struct frame_calls calls = {.name = "rotate",
                                             .title = "blkin rotate",
                                             .status = rotate_json,
                                             .take = take_configuration,
                                             .ask = ask,
                                             .page = page,
                                             .end = end_service};
    bool once = false, end = false;
    const struct config_flag flags[] = {
        {"once", &once, NULL}, {"end", &end, NULL}, {NULL, NULL, NULL}};
    const struct config_request request = {"rotate", usage, flags};
    struct rotate service = {.has_failed = false};
    struct frame *frame = &service.frame;
    int status;

    if (!frame_read(frame, &calls, &service, &request, argc, argv, &status))
        return status;
    if (once && end)
        fprintf(stderr, "%s: expected one of --once and --end, got both\n%s", argv[0], usage);
    status = 2;
    service.steps.work = end ? END : once ? ONCE : SERVE;
    if (!(once && end) && rotate_can_start(frame->config) &&
        privileges_become_owner(config_text(frame->config, "state-dir"),
                                config_text(frame->config, "runtime-dir")))
        status = run(&service);
    frame_close(frame);
    return status;
}

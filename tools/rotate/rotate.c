/*
 * blkin rotate: its parts put together in one loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rotate.h"

#include "bury.h"
#include "convert.h"
#include "keeper.h"
#include "room.h"
#include "monotonic.h"
#include "service/control.h"
#include "service/metrics.h"
#include "service/notify.h"
#include "service/say.h"
#include "status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: blkin rotate [OPTION]... [--KEY=VALUE]...\n"
    "\n"
    "The collector that loses nothing: LTTng records into a folder, closes a chunk\n"
    "of it every rotate-ms, and each chunk is converted and then deleted. It may be\n"
    "killed, stopped and upgraded: the session goes on recording, and what was not\n"
    "delivered is converted when it is started again.\n"
    "\n"
    "  --once         convert what is closed, then end; LTTng is left as it is\n"
    "  --end          end the session, convert all of it, send open spans, then end\n"
    "  --config=FILE  instead of $BLKIN_CONFIG and /etc/blkin/blkin.conf\n"
    "  --KEY=VALUE    a key of the configuration; here matter: endpoint, session,\n"
    "                 events, filter, output (STATE-DIR/rotate), rotate-ms (5000),\n"
    "                 rotate-bytes, max-disk-bytes (10G), shm-path; all of them:\n"
    "                 blkin config keys\n"
    "  -h, --help     print this\n"
    "\n"
    "Exit status: 0 ended in order; 1 it failed, or --once or --end left something;\n"
    "2 wrong usage or configuration.\n";

#define SCAN_MS       500
#define QUIET_S       2  /* nobody writes in a folder in which nothing has changed for so long */
#define QUIET_BLIND_S 10 /* where LTTng cannot be asked */
#define BURY_LIMIT_MS 300000
#define BURY_WAIT_MS  60000 /* so long younger chunks wait for what a dead session has left */
#define STUCK_MS      10000 /* and two periods: a rotation takes no longer */
#define END_LIMIT_MS  60000
#define SAID_AGAIN_MS 60000

enum work { SERVE, ONCE, END };

struct rotate {
    struct config *config;
    struct loop *loop;
    struct control *control;
    struct metrics *metrics;
    struct store store;
    struct rotate_totals totals;
    struct room room;
    struct keeper keeper;
    struct converter converter;
    struct timer scan, step, watchdog;
    struct task bury_task, end_task;
    bool is_burying, is_ending, has_ended_sessions, was_finished, is_stopping, has_failed;
    bool listed_after_end; /* the places in use were asked for after the sessions had ended */
    char burying[PLACE_MAX];
    int64_t bury_begun_ms; /* since then a dead place waits to be buried; 0: none does */
    enum work work;
    int64_t rotation_ms; /* when the last chunk was closed */
    char rotation_place[PLACE_MAX];
    uint64_t rotation_newest;
    char said[1024]; /* what LTTng's state was, last */
    int64_t said_ms;
    bool is_ready;
};

/* ---- what is said ---------------------------------------------------------------------------- */

/* A state that lasts is not said each half second. */
static void say_state(struct rotate *rotate, bt_logging_level level, const char *text)
{
    if (strcmp(rotate->said, text) == 0 && clock_ms() - rotate->said_ms < SAID_AGAIN_MS)
        return;
    (void)snprintf(rotate->said, sizeof(rotate->said), "%s", text);
    rotate->said_ms = clock_ms();
    say(level, "%s", text);
    notify("STATUS=%s", text);
}

static void save(struct rotate *rotate)
{
    struct error error;

    if (!rotate_totals_save(&rotate->totals, rotate->converter.totals_file, &error))
        say(BT_LOGGING_LEVEL_ERROR, "%s", error.text);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* As LTTng's answer, or our own knowledge where it gives none. */
static bool is_used(const struct rotate *rotate, const char *place)
{
    const struct keep_report *last = &rotate->keeper.last;

    for (size_t i = 0; i < last->used_count; i++) {
        if (strcmp(last->used[i], place) == 0)
            return true;
    }
    return last->state == KEEP_RECORDS && strcmp(last->place, place) == 0;
}

static const struct place *oldest_dead(const struct rotate *rotate)
{
    const struct place *oldest = NULL;

    for (size_t i = 0; i < rotate->store.place_count && rotate->keeper.has_looked; i++) {
        const struct place *place = &rotate->store.places[i];

        if (place->has_rest && !is_used(rotate, place->name) &&
            (!oldest || strcmp(place->name, oldest->name) < 0))
            oldest = place;
    }
    return oldest;
}

static void remove_empty_places(struct rotate *rotate)
{
    for (size_t i = 0; i < rotate->store.place_count && rotate->keeper.has_looked; i++) {
        const struct place *place = &rotate->store.places[i];

        if (!place->has_rest && !is_used(rotate, place->name))
            store_remove_place(&rotate->store, place->name); /* if it has no chunk */
    }
}

/* ---- burying --------------------------------------------------------------------------------- */

struct burial {
    struct store store; /* only its folders */
    char place[PLACE_MAX];
    int64_t quiet_s;
};

struct burial_result {
    bool is_quiet, is_done;
    struct error error;
};

static bool run_burial(const void *argument, void *result)
{
    const struct burial *burial = argument;
    struct burial_result *done = result;

    done->is_quiet = bury_is_quiet(&burial->store, burial->place, burial->quiet_s);
    if (done->is_quiet)
        done->is_done = bury(&burial->store, burial->place, &done->error);
    return true;
}

static void do_step(struct rotate *rotate);

static void buried(void *context, const void *result)
{
    struct rotate *rotate = context;
    const struct burial_result *done = result;

    rotate->is_burying = false;
    if (!done)
        say_state(rotate, BT_LOGGING_LEVEL_ERROR, "what a dead session has left could not be read");
    else if (done->is_quiet && !done->is_done)
        say_state(rotate, BT_LOGGING_LEVEL_ERROR, done->error.text);
    else if (done->is_done)
        say(BT_LOGGING_LEVEL_WARNING,
            "session %s has died: what it had written, and what was in its buffers, is converted",
            rotate->burying);
    do_step(rotate);
}

static void start_burial(struct rotate *rotate, const char *place)
{
    const int64_t period_s = config_integer(rotate->config, "rotate-ms") / 1000;
    struct burial burial = {.quiet_s = QUIET_S};

    if (!rotate->keeper.last.has_daemon)
        burial.quiet_s = 2 * period_s > QUIET_BLIND_S ? 2 * period_s : QUIET_BLIND_S;
    (void)snprintf(burial.store.output, sizeof(burial.store.output), "%s", rotate->store.output);
    (void)snprintf(burial.store.shm, sizeof(burial.store.shm), "%s", rotate->store.shm);
    (void)snprintf(burial.place, sizeof(burial.place), "%s", place);
    (void)snprintf(rotate->burying, sizeof(rotate->burying), "%s", place);
    rotate->bury_task.done = buried;
    rotate->bury_task.context = rotate;
    rotate->is_burying = task_start(rotate->loop, &rotate->bury_task, run_burial, &burial,
                                    sizeof(struct burial_result), BURY_LIMIT_MS);
}

/* ---- room on disk ---------------------------------------------------------------------------- */

/* LTTng gives a file up for good when there is no room. */
static void make_room(struct rotate *rotate)
{
    if (room_is_back(&rotate->room) && rotate->keeper.last.place[0]) {
        say(BT_LOGGING_LEVEL_WARNING,
            "the file system of the folder output was full, and LTTng stops recording into a file "
            "that it cannot write: a new session takes its place");
        keeper_give_up(&rotate->keeper, rotate->keeper.last.place);
    }
    if (room_make(&rotate->room, (uint64_t)config_integer(rotate->config, "max-disk-bytes")))
        save(rotate);
}

/* ---- does it rotate? ------------------------------------------------------------------------- */

/* LTTng closes a chunk each period, also when nothing is recorded. */
static void check_rotation(struct rotate *rotate)
{
    const struct keep_report *last = &rotate->keeper.last;
    const int64_t period_ms = config_integer(rotate->config, "rotate-ms");
    uint64_t newest = rotate->rotation_newest;

    if (!rotate->keeper.has_looked || last->state != KEEP_RECORDS)
        return;
    for (size_t i = 0; i < rotate->store.count; i++) {
        const struct chunk *chunk = &rotate->store.chunks[i];

        if (strcmp(chunk->place, last->place) == 0 && chunk->number + 1 > newest)
            newest = chunk->number + 1;
    }
    if (strcmp(rotate->rotation_place, last->place) != 0) {
        (void)snprintf(rotate->rotation_place, sizeof(rotate->rotation_place), "%s", last->place);
        newest = 0;
        rotate->rotation_ms = clock_ms();
    } else if (newest != rotate->rotation_newest) {
        rotate->rotation_ms = clock_ms();
    }
    rotate->rotation_newest = newest;
    if (clock_ms() - rotate->rotation_ms <= 2 * period_ms + STUCK_MS)
        return;
    say(BT_LOGGING_LEVEL_WARNING,
        "session %s has closed no chunk for %" PRId64 " s: a new one takes its place",
        last->session, (clock_ms() - rotate->rotation_ms) / 1000);
    rotate->totals.rotations_stuck++;
    save(rotate);
    rotate->rotation_ms = clock_ms();
    keeper_give_up(&rotate->keeper, last->place);
}

/* ---- the session ends (--end) ---------------------------------------------------------------- */

struct ending {
    char output[4096];
};

/* Waits for what the buffers hold, as long as it is allowed to. */
static bool run_ending(const void *argument, void *result)
{
    const struct ending *ending = argument;
    struct session_places places;
    struct error *error = result;
    bool is_well = session_below(ending->output, &places, error);

    for (size_t i = 0; i < places.count && is_well; i++)
        is_well = session_destroy(places.places[i].name, true, error);
    return is_well || !places.has_daemon;
}

static bool run_ending_at_once(const void *argument, void *result)
{
    const struct ending *ending = argument;
    struct session_places places;
    struct error *error = result;
    bool is_well = session_below(ending->output, &places, error);

    for (size_t i = 0; i < places.count; i++)
        is_well &= session_destroy(places.places[i].name, false, error);
    return is_well;
}

static void ended_at_once(void *context, const void *result)
{
    struct rotate *rotate = context;

    rotate->is_ending = false;
    rotate->has_ended_sessions = true;
    if (!result) {
        say(BT_LOGGING_LEVEL_ERROR, "the session could not be ended");
        rotate->has_failed = true;
    }
}

static void start_ending(struct rotate *rotate, task_fn *run,
                         void (*done)(void *context, const void *result))
{
    struct ending ending;

    (void)snprintf(ending.output, sizeof(ending.output), "%s", rotate->store.output);
    rotate->end_task.done = done;
    rotate->end_task.context = rotate;
    rotate->is_ending = task_start(rotate->loop, &rotate->end_task, run, &ending,
                                   sizeof(struct error), END_LIMIT_MS);
}

static void ended_sessions(void *context, const void *result)
{
    struct rotate *rotate = context;

    if (!result) {
        say(BT_LOGGING_LEVEL_WARNING,
            "the session does not end: it is ended without what its buffers hold");
        start_ending(rotate, run_ending_at_once, ended_at_once);
        return;
    }
    rotate->is_ending = false;
    rotate->has_ended_sessions = true;
}

/* ---- what is next ---------------------------------------------------------------------------- */

/* A dead session's place cannot be read: is it time to go on without? */
static bool is_late(struct rotate *rotate, const struct place *dead)
{
    if (!dead)
        rotate->bury_begun_ms = 0;
    else if (!rotate->bury_begun_ms)
        rotate->bury_begun_ms = clock_ms();
    return dead && clock_ms() - rotate->bury_begun_ms > BURY_WAIT_MS;
}

/* What a dead session has left is older than what a new one has closed. */
static bool must_wait(struct rotate *rotate, const struct place *dead)
{
    return !rotate->keeper.has_looked ||
           (dead && strcmp(dead->name, rotate->store.chunks[0].place) < 0 &&
            !is_late(rotate, dead));
}

static bool all_is_converted(const struct rotate *rotate)
{
    return rotate->keeper.has_looked && rotate->store.count == 0 && !oldest_dead(rotate) &&
           !rotate->is_burying && (rotate->work != END || rotate->has_ended_sessions);
}

/* Nothing is left to do for --once and --end. */
static void finish(struct rotate *rotate)
{
    if (rotate->work == END && !rotate->was_finished) {
        rotate->was_finished = true;
        converter_finish(&rotate->converter);
        return;
    }
    loop_stop(rotate->loop);
}

static void do_step(struct rotate *rotate)
{
    const struct place *dead;

    if (rotate->is_stopping) {
        if (!converter_is_busy(&rotate->converter) || !rotate->converter.reader.child.pid)
            loop_stop(rotate->loop);
        return;
    }
    if (!store_scan(&rotate->store)) {
        say_state(rotate, BT_LOGGING_LEVEL_ERROR, "cannot read the folder output");
        return;
    }
    make_room(rotate);
    check_rotation(rotate);
    dead = oldest_dead(rotate);
    (void)is_late(rotate, dead);
    if (dead && !rotate->is_burying)
        start_burial(rotate, dead->name);
    if (converter_is_busy(&rotate->converter))
        return;
    if (rotate->store.count) {
        if (!must_wait(rotate, dead))
            converter_take(&rotate->converter, &rotate->store.chunks[0]);
        return;
    }
    remove_empty_places(rotate);
    if (rotate->work != SERVE && is_late(rotate, dead) && !rotate->is_burying) {
        say(BT_LOGGING_LEVEL_ERROR, "somebody still writes in %s/%s, or it cannot be read: left",
            rotate->store.output, dead->name);
        rotate->has_failed = true;
        finish(rotate);
    } else if (rotate->work != SERVE && all_is_converted(rotate)) {
        finish(rotate);
    }
}

static void step(void *context)
{
    do_step(context);
}

/* Not at once: it is called from within a step. */
static void idle(void *context)
{
    struct rotate *rotate = context;

    timer_set(rotate->loop, &rotate->step, 0);
}

static void scan(void *context)
{
    struct rotate *rotate = context;

    timer_set(rotate->loop, &rotate->scan, SCAN_MS);
    do_step(rotate);
}

/* ---- LTTng ----------------------------------------------------------------------------------- */

static void looked(void *context, const struct keep_report *report)
{
    struct rotate *rotate = context;

    if (!report) {
        say_state(rotate, BT_LOGGING_LEVEL_ERROR,
                  "LTTng's session daemon does not answer: restart it if that lasts");
        return;
    }
    if (report->is_new) {
        rotate->totals.sessions++;
        save(rotate);
    }
    if (report->state == KEEP_RECORDS) {
        char text[640];

        (void)snprintf(text, sizeof(text), "session %s records into %.200s/%s", report->session,
                       rotate->store.output, report->place);
        say_state(rotate, BT_LOGGING_LEVEL_INFO, text);
    } else {
        say_state(rotate, BT_LOGGING_LEVEL_WARNING, report->error.text);
    }
    if (!rotate->is_ready) /* also when it only runs, and waits: systemd need not */
        notify("READY=1");
    rotate->is_ready = true;
}

/* --once and --end make no session: which ones are there? */
static bool run_list(const void *argument, void *result)
{
    struct keep_report *report = result;

    if (keeper_list_used(argument, report))
        report->state = KEEP_FAILED;
    else
        report->state = report->has_daemon ? KEEP_FAILED : KEEP_NO_DAEMON;
    return true;
}

static void list_again(void *context);

static void listed(void *context, const void *result)
{
    struct rotate *rotate = context;

    if (result) {
        rotate->keeper.last = *(const struct keep_report *)result;
        rotate->keeper.has_looked = rotate->work != END || rotate->listed_after_end;
    } else {
        say_state(rotate, BT_LOGGING_LEVEL_ERROR, "LTTng's session daemon does not answer");
    }
    timer_set(rotate->loop, &rotate->keeper.timer, SCAN_MS);
}

static void list_again(void *context)
{
    struct rotate *rotate = context;

    rotate->listed_after_end = rotate->has_ended_sessions;
    rotate->keeper.task.done = listed;
    rotate->keeper.task.context = rotate;
    if (!task_start(rotate->loop, &rotate->keeper.task, run_list, &rotate->store,
                    sizeof(struct keep_report), STUCK_MS))
        timer_set(rotate->loop, &rotate->keeper.timer, SCAN_MS);
}

static void set_spec(struct rotate *rotate)
{
    const struct config *config = rotate->config;
    struct session_spec *spec = &rotate->keeper.spec;

    *spec = (struct session_spec){.mode = SESSION_ROTATED,
                                  .subbuf_bytes = (uint64_t)config_integer(config, "subbuf-bytes"),
                                  .subbuf_count = (uint64_t)config_integer(config, "subbuf-count"),
                                  .rotate_period_us =
                                      (uint64_t)config_integer(config, "rotate-ms") * 1000,
                                  .rotate_bytes = (uint64_t)config_integer(config, "rotate-bytes")};
    (void)snprintf(spec->name, sizeof(spec->name), "%s", config_text(config, "session"));
    (void)snprintf(spec->events, sizeof(spec->events), "%s", config_text(config, "events"));
    (void)snprintf(spec->filter, sizeof(spec->filter), "%s", config_text(config, "filter"));
}

static void start_keeper(struct rotate *rotate)
{
    struct keeper *keeper = &rotate->keeper;

    keeper->loop = rotate->loop;
    keeper->store = &rotate->store;
    keeper->looked = looked;
    keeper->context = rotate;
    set_spec(rotate);
    if (rotate->work == SERVE) {
        keeper_start(keeper);
        return;
    }
    keeper->timer = (struct timer){.due = list_again, .context = rotate};
    list_again(rotate);
    if (rotate->work == END)
        start_ending(rotate, run_ending, ended_sessions);
}

/* ---- the service ----------------------------------------------------------------------------- */

static void end_service(void *context)
{
    struct rotate *rotate = context;

    if (rotate->is_stopping) {
        loop_stop(rotate->loop);
        return;
    }
    rotate->is_stopping = true;
    if (rotate->work != SERVE)
        rotate->has_failed = true;
    notify("STOPPING=1");
    keeper_stop(&rotate->keeper);
    if (converter_is_busy(&rotate->converter))
        converter_stop(&rotate->converter);
    else
        loop_stop(rotate->loop);
}

/* What a session is made of is of its making: such keys hold for the next one. */
static bool read_configuration(struct rotate *rotate)
{
    struct config *config;

    notify_reloading();
    config = config_read_again(rotate->config);
    if (config) {
        config_free(rotate->config);
        rotate->config = config;
        rotate->converter.config = config;
        rotate->converter.reader.config = config;
        set_spec(rotate);
    }
    say(config ? BT_LOGGING_LEVEL_INFO : BT_LOGGING_LEVEL_WARNING, "reload: %s",
        config ? "the new configuration holds" : "the configuration is wrong, the old one holds");
    notify("READY=1");
    return config != NULL;
}

static void reload(void *context)
{
    (void)read_configuration(context);
}

static void wake(void *context)
{
    struct rotate *rotate = context;

    notify("WATCHDOG=1");
    timer_set(rotate->loop, &rotate->watchdog, notify_watchdog_ms());
}

static struct rotate_status status_of(const struct rotate *rotate)
{
    return (struct rotate_status){.store = &rotate->store,
                                  .totals = &rotate->totals,
                                  .report = &rotate->keeper.last,
                                  .has_looked = rotate->keeper.has_looked,
                                  .current = rotate->totals.current,
                                  .counts = converter_counts(&rotate->converter),
                                  .endpoint = config_text(rotate->config, "endpoint")};
}

static json_t *answer(void *context, const char *request)
{
    struct rotate *rotate = context;
    struct rotate_status status = status_of(rotate);

    if (strcmp(request, "status") == 0)
        return status_json(&status);
    if (strcmp(request, "taps") == 0)
        return json_pack("[s]", rotate->converter.tap);
    if (strcmp(request, "reload") == 0)
        return read_configuration(rotate)
                   ? json_pack("{ss}", "result", "the new configuration holds")
                   : json_pack("{ss}", "error",
                               "the configuration is wrong, the old one holds: see `blkin config "
                               "check`, and what the service has said");
    return NULL;
}

static char *page(void *context)
{
    struct rotate_status status = status_of(context);

    return status_page(&status);
}

/* "none": LTTng's own, which are gone when it dies. */
static void shm_of(const struct config *config, char path[4096])
{
    const char *given = config_text(config, "shm-path");

    (void)snprintf(path, 4096, "%s", strcmp(given, "none") == 0 ? "" : given);
}

static bool open_folders(struct rotate *rotate, struct error *error)
{
    struct converter *converter = &rotate->converter;
    const char *state = config_text(rotate->config, "state-dir");
    char shm[4096];

    shm_of(rotate->config, shm);
    if (!store_open(&rotate->store, config_text(rotate->config, "output"), shm, error) ||
        !folder_own(state, "state-dir", error))
        return false;
    (void)snprintf(converter->totals_file, sizeof(converter->totals_file), "%.4000s/rotate.json",
                   state);
    (void)snprintf(converter->reader.stats_file, sizeof(converter->reader.stats_file),
                   "%.4000s/rotate.stats", state);
    (void)snprintf(converter->checkpoint, sizeof(converter->checkpoint),
                   "%.4000s/rotate.checkpoint", state);
    (void)snprintf(converter->tap, sizeof(converter->tap), "%.100s/rotate.tap",
                   config_text(rotate->config, "runtime-dir"));
    if (!rotate_totals_load(&rotate->totals, converter->totals_file))
        say(BT_LOGGING_LEVEL_WARNING, "%s is damaged: the totals begin anew",
            converter->totals_file);
    return true;
}

static bool open_all(struct rotate *rotate, struct error *error)
{
    const char *listen = config_text(rotate->config, "prometheus-listen");

    /* first: who has the socket is the only one */
    rotate->control = control_open(rotate->loop, config_text(rotate->config, "runtime-dir"),
                                   "rotate", answer, rotate, error);
    if (!rotate->control || !open_folders(rotate, error))
        return false;
    if (listen) {
        rotate->metrics = metrics_open(rotate->loop, listen, page, rotate, error);
        if (!rotate->metrics)
            return false;
        say(BT_LOGGING_LEVEL_INFO, "metrics for Prometheus: %s", metrics_url(rotate->metrics));
    }
    rotate->room = (struct room){.store = &rotate->store, .totals = &rotate->totals};
    rotate->converter.loop = rotate->loop;
    rotate->converter.store = &rotate->store;
    rotate->converter.config = rotate->config;
    rotate->converter.totals = &rotate->totals;
    rotate->converter.idle = idle;
    rotate->converter.context = rotate;
    converter_open(&rotate->converter);
    return true;
}

static void serve(struct rotate *rotate)
{
    rotate->scan = (struct timer){.due = scan, .context = rotate};
    rotate->step = (struct timer){.due = step, .context = rotate};
    rotate->watchdog = (struct timer){.due = wake, .context = rotate};
    if (notify_watchdog_ms())
        wake(rotate);
    (void)store_scan(&rotate->store); /* so that a new place comes after all */
    start_keeper(rotate);
    scan(rotate);
    if (!loop_run(rotate->loop)) {
        say(BT_LOGGING_LEVEL_ERROR, "cannot wait: %s", strerror(errno));
        rotate->has_failed = true;
    }
}

static void close_all(struct rotate *rotate)
{
    metrics_close(rotate->metrics);
    if (rotate->control)
        control_close(rotate->control);
    store_close(&rotate->store);
}

static int run(struct rotate *rotate)
{
    const struct loop_signals signals = {end_service, reload, rotate};
    struct error error;

    rotate->loop = loop_new(&signals);
    if (!rotate->loop) {
        say(BT_LOGGING_LEVEL_ERROR, "cannot start: %s", strerror(errno));
        return 1;
    }
    if (open_all(rotate, &error)) {
        serve(rotate);
        if (say_level() != BT_LOGGING_LEVEL_NONE)
            status_print(&rotate->totals);
    } else {
        say(BT_LOGGING_LEVEL_ERROR, "%s", error.text);
        rotate->has_failed = true;
    }
    close_all(rotate);
    loop_free(rotate->loop);
    return rotate->has_failed ? 1 : 0;
}

int rotate_command(int argc, char *argv[])
{
    bool once = false, end = false;
    const struct config_flag flags[] = {
        {"once", &once, NULL}, {"end", &end, NULL}, {NULL, NULL, NULL}};
    const struct config_request request = {"rotate", usage, flags};
    struct rotate service = {.work = SERVE};
    int status;

    service.config = config_read(&request, argc, argv, &status);
    if (!service.config)
        return status;
    if (config_operands(service.config) > 0 || (once && end)) {
        fprintf(stderr, "%s: %s\n%s", argv[0],
                once && end ? "--once and --end are two things" : "expected no operand", usage);
        config_free(service.config);
        return 2;
    }
    say_open(argv[0], config_text(service.config, "log-level"));
    service.work = end ? END : once ? ONCE : SERVE;
    status = run(&service);
    config_free(service.config);
    return status;
}

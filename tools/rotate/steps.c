/*
 * The steps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "steps.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/notify.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SCAN_MS       500
#define QUIET_S       2     /* nobody writes in a folder in which nothing has changed for so long */
#define QUIET_BLIND_S 10    /* where LTTng cannot be asked */
#define BURY_WAIT_MS  60000 /* so long younger chunks wait for what a dead session has left */
#define STUCK_MS      10000 /* and two periods: a rotation takes no longer */
#define SAID_AGAIN_MS 60000
#define ANSWER_MS     30000 /* so long --once and --end wait for LTTng's session daemon */

/* ---- what is said ---------------------------------------------------------------------------- */

/* A state that lasts is not said each half second. */
static void steps_say_state(struct steps *steps, enum message_id id, const char *text)
{
    if (strcmp(steps->said, text) == 0 && clock_ms() - steps->said_ms < SAID_AGAIN_MS)
        return;
    (void)snprintf(steps->said, sizeof(steps->said), "%s", text);
    steps->said_ms = clock_ms();
    say(id, "%s", text);
    notify("STATUS=%s", text);
}

static void steps_save(struct steps *steps)
{
    rotate_totals_save(&steps->totals, steps->converter.totals_file);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* As LTTng's answer, or our own knowledge where it gives none. */
static bool is_used(const struct steps *steps, const char *place)
{
    const struct keep_report *last = &steps->keeper.last;

    for (size_t i = 0; i < last->used_count; i++) {
        if (strcmp(last->used[i], place) == 0)
            return true;
    }
    return last->state == KEEP_RECORDS && strcmp(last->place, place) == 0;
}

/* Of those that come after a name; "": of all. */
static const struct place *oldest_dead(const struct steps *steps, const char *after)
{
    const struct place *oldest = NULL;

    for (size_t i = 0; i < steps->store.place_count && steps->keeper.has_looked; i++) {
        const struct place *place = &steps->store.places[i];

        if (place->has_rest && strcmp(place->name, after) > 0 && !is_used(steps, place->name) &&
            (!oldest || strcmp(place->name, oldest->name) < 0))
            oldest = place;
    }
    return oldest;
}

static void remove_empty_places(struct steps *steps)
{
    for (size_t i = 0; i < steps->store.place_count && steps->keeper.has_looked; i++) {
        const struct place *place = &steps->store.places[i];

        if (!place->has_rest && !is_used(steps, place->name))
            store_remove_place(&steps->store, place->name); /* if it has no chunk */
    }
}

/* ---- burying --------------------------------------------------------------------------------- */

/* The next scan goes on: at once, what cannot be buried yet would be tried without a pause. */
static void buried(void *context, const char *problem)
{
    if (problem)
        steps_say_state(context, BK3010, problem);
}

/* One after the other: one that cannot be buried does not keep the younger ones from it. */
static void bury_dead(struct steps *steps, const struct place *oldest)
{
    const struct place *next = oldest_dead(steps, steps->burial.place);
    const int64_t period_s = config_integer(steps->config, "rotate-ms") / 1000;
    int64_t quiet_s = QUIET_S;

    if (!steps->keeper.last.has_daemon)
        quiet_s = 2 * period_s > QUIET_BLIND_S ? 2 * period_s : QUIET_BLIND_S;
    burial_start(&steps->burial, (next ? next : oldest)->name, quiet_s);
}

/* ---- room on disk ---------------------------------------------------------------------------- */

/* LTTng gives a file up for good when there is no room. */
static void make_room(struct steps *steps)
{
    if (room_is_back(&steps->room) && steps->keeper.last.place[0]) {
        say(BK3032,
            "the file system of the folder output was full, and LTTng stops recording into a file "
            "that it cannot write: a new session takes its place");
        keeper_give_up(&steps->keeper, steps->keeper.last.place);
    }
    if (room_make(&steps->room, (uint64_t)config_integer(steps->config, "max-disk-bytes")))
        steps_save(steps);
}

/* ---- does it rotate? ------------------------------------------------------------------------- */

/* LTTng closes a chunk each period, also when nothing is recorded. */
static void check_rotation(struct steps *steps)
{
    const struct keep_report *last = &steps->keeper.last;
    const int64_t period_ms = config_integer(steps->config, "rotate-ms");
    uint64_t newest = steps->rotation_newest;

    if (!steps->keeper.has_looked || last->state != KEEP_RECORDS)
        return;
    for (size_t i = 0; i < steps->store.count; i++) {
        const struct chunk *chunk = &steps->store.chunks[i];

        if (strcmp(chunk->place, last->place) == 0 && chunk->number + 1 > newest)
            newest = chunk->number + 1;
    }
    if (strcmp(steps->rotation_place, last->place) != 0) {
        (void)snprintf(steps->rotation_place, sizeof(steps->rotation_place), "%s", last->place);
        newest = 0;
        steps->rotation_ms = clock_ms();
    } else if (newest != steps->rotation_newest) {
        steps->rotation_ms = clock_ms();
    }
    steps->rotation_newest = newest;
    if (clock_ms() - steps->rotation_ms <= 2 * period_ms + STUCK_MS)
        return;
    say(BK3040, "session %s has closed no chunk for %" PRId64 " s: a new one takes its place",
        last->session, (clock_ms() - steps->rotation_ms) / 1000);
    steps->totals.rotations_stuck++;
    steps_save(steps);
    steps->rotation_ms = clock_ms();
    keeper_give_up(&steps->keeper, last->place);
}

/* ---- what is next ---------------------------------------------------------------------------- */

/* The oldest dead session's place cannot be read: is it time to go on without? */
static bool is_late(struct steps *steps, const struct place *dead)
{
    const char *name = dead ? dead->name : "";

    if (strcmp(steps->dead_place, name) != 0) {
        (void)snprintf(steps->dead_place, sizeof(steps->dead_place), "%s", name);
        steps->dead_since_ms = clock_ms();
    }
    return dead && clock_ms() - steps->dead_since_ms > BURY_WAIT_MS;
}

/* What a dead session has left is older than what a new one has closed. */
static bool must_wait(const struct steps *steps, const struct place *dead, bool is_too_late)
{
    return !steps->keeper.has_looked ||
           (dead && strcmp(dead->name, steps->store.chunks[0].place) < 0 && !is_too_late);
}

static bool all_is_converted(const struct steps *steps)
{
    return steps->keeper.has_looked && steps->store.count == 0 && !oldest_dead(steps, "") &&
           !steps->burial.is_under_way && (steps->work != END || steps->ending.has_ended);
}

/* Nothing is left to do for --once and --end. */
static void finish(struct steps *steps)
{
    if (steps->work == END && !steps->was_finished) {
        steps->was_finished = true;
        converter_finish(&steps->converter);
        return;
    }
    loop_stop(steps->loop);
}

static void do_step(struct steps *steps)
{
    const struct place *dead;
    bool is_too_late;

    if (steps->is_stopping) {
        if (!converter_is_busy(&steps->converter) || !steps->converter.reader.child.pid)
            loop_stop(steps->loop);
        return;
    }
    if (!store_scan(&steps->store)) {
        steps_say_state(steps, BK3033, "cannot read the folder output");
        return;
    }
    make_room(steps);
    check_rotation(steps);
    dead = oldest_dead(steps, "");
    is_too_late = is_late(steps, dead);
    if (dead && !steps->burial.is_under_way && !burial_is_paused(&steps->burial) &&
        !(is_too_late && steps->work != SERVE))
        bury_dead(steps, dead);
    if (converter_is_busy(&steps->converter))
        return;
    if (steps->store.count) {
        if (!must_wait(steps, dead, is_too_late))
            converter_take(&steps->converter, &steps->store.chunks[0]);
        return;
    }
    remove_empty_places(steps);
    if (steps->work != SERVE && is_too_late && !steps->burial.is_under_way) {
        say(BK3012,
            "a process still has a file in %s/%s open, or the folder cannot be read: it is left "
            "for a later run",
            steps->store.output, dead->name);
        steps->has_failed = true;
        finish(steps);
    } else if (steps->work != SERVE && all_is_converted(steps)) {
        finish(steps);
    }
}

static void step_next(void *context)
{
    do_step(context);
}

/* Not at once: it is called from within a step. */
static void idle(void *context)
{
    struct steps *steps = context;

    timer_set(steps->loop, &steps->next, 0);
}

static void steps_scan(void *context)
{
    struct steps *steps = context;

    timer_set(steps->loop, &steps->scan, SCAN_MS);
    do_step(steps);
}

/* ---- LTTng ----------------------------------------------------------------------------------- */

/* What a thread makes meanwhile is missing in its numbers when it is seen again; of one that is
 * not, nobody can count it. */
static void say_gap(const struct steps *steps, const struct keep_report *report)
{
    if (steps->recorded_ms && !is_used(steps, steps->recorded_place))
        say(BK3041,
            "somebody ended the last session, or it died: nothing was recorded for up to %.1f s, "
            "until session %s was made. events_missing counts the missing events, except those of "
            "threads that have ended since",
            (double)(clock_ms() - steps->recorded_ms) / 1e3, report->session);
}

static void steps_looked(void *context, const struct keep_report *report)
{
    struct steps *steps = context;

    if (!report) {
        steps_say_state(
            steps, BK3042,
            "LTTng's session daemon does not answer: restart lttng-sessiond if that lasts");
        return;
    }
    if (report->is_new) {
        say_gap(steps, report);
        steps->totals.sessions++;
        steps_save(steps);
    }
    if (report->state == KEEP_RECORDS) {
        char text[640];

        (void)snprintf(steps->recorded_place, sizeof(steps->recorded_place), "%s", report->place);
        steps->recorded_ms = clock_ms();
        (void)snprintf(text, sizeof(text), "session %s records into %.200s/%s", report->session,
                       steps->store.output, report->place);
        steps_say_state(steps, BK3043, text);
    } else {
        steps_say_state(steps, BK3044, report->error.text);
    }
    if (!steps->is_ready) /* also when it only runs, and waits: systemd need not */
        notify("READY=1");
    steps->is_ready = true;
}

/* Nothing of --once and --end can be done: which files LTTng writes still is not known. */
static void end_unanswered(struct steps *steps)
{
    say(BK3045,
        "LTTng's session daemon has not answered for %d s: nothing is converted or ended, and all "
        "files stay in %s; restart lttng-sessiond, and run this command again",
        ANSWER_MS / 1000, steps->store.output);
    steps_stop(steps);
}

static void steps_listed(void *context, const void *result)
{
    struct steps *steps = context;

    if (steps->is_stopping)
        return;
    if (!result && clock_ms() - steps->answered_ms > ANSWER_MS) {
        end_unanswered(steps);
        return;
    }
    if (result) {
        steps->answered_ms = clock_ms();
        steps->keeper.last = *(const struct keep_report *)result;
        steps->keeper.has_looked = steps->work != END || steps->listed_after_end;
    } else {
        steps_say_state(steps, BK3048, "LTTng's session daemon does not answer");
    }
    timer_set(steps->loop, &steps->keeper.timer, SCAN_MS);
}

/* --once and --end make no session: which ones are there? */
static void steps_list_again(void *context)
{
    struct steps *steps = context;

    steps->listed_after_end = steps->ending.has_ended;
    steps->keeper.task.done = steps_listed;
    steps->keeper.task.context = steps;
    if (!task_start(steps->loop, &steps->keeper.task, &keeper_list_job, &steps->store,
                    sizeof(steps->store), STUCK_MS))
        timer_set(steps->loop, &steps->keeper.timer, SCAN_MS);
}

static void set_spec(struct steps *steps)
{
    const struct config *config = steps->config;
    struct session_spec *spec = &steps->keeper.spec;

    *spec = (struct session_spec){.mode = SESSION_ROTATED,
                                  .subbuf_bytes = (uint64_t)config_integer(config, "subbuf-bytes"),
                                  .subbuf_count = (uint64_t)config_integer(config, "subbuf-count"),
                                  .rotate_period_us =
                                      (uint64_t)config_integer(config, "rotate-ms") * 1000,
                                  .rotate_bytes = (uint64_t)config_integer(config, "rotate-bytes")};
    (void)snprintf(spec->name, sizeof(spec->name), "%s", config_text(config, "session"));
    session_set_events(spec, config_text(config, "events"), config_boolean(config, "host"));
    (void)snprintf(spec->filter, sizeof(spec->filter), "%s", config_text(config, "filter"));
}

static void start_keeper(struct steps *steps)
{
    struct keeper *keeper = &steps->keeper;

    keeper->loop = steps->loop;
    keeper->store = &steps->store;
    keeper->looked = steps_looked;
    keeper->context = steps;
    set_spec(steps);
    if (steps->work == SERVE) {
        keeper_start(keeper);
        return;
    }
    steps->answered_ms = clock_ms();
    keeper->timer = (struct timer){.due = steps_list_again, .context = steps};
    steps_list_again(steps);
    if (steps->work == END)
        ending_start(&steps->ending);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

void steps_configure(struct steps *steps, const struct config *config)
{
    steps->config = config;
    steps->converter.config = config;
    set_spec(steps);
}

static void set_parts(struct steps *steps)
{
    struct converter *converter = &steps->converter;

    steps->room = (struct room){
        .store = &steps->store, .totals = &steps->totals, .at_hand = &converter->chunk};
    steps->burial = (struct burial){
        .loop = steps->loop, .store = &steps->store, .ended = buried, .context = steps};
    steps->ending = (struct ending){.loop = steps->loop, .output = steps->store.output};
    converter->loop = steps->loop;
    converter->store = &steps->store;
    converter->config = steps->config;
    converter->totals = &steps->totals;
    converter->idle = idle;
    converter->context = steps;
    converter_open(converter);
}

void steps_begin(struct steps *steps)
{
    steps->scan = (struct timer){.due = steps_scan, .context = steps};
    steps->next = (struct timer){.due = step_next, .context = steps};
    set_parts(steps);
    (void)store_scan(&steps->store); /* so that a new place comes after all */
    start_keeper(steps);
    steps_scan(steps);
}

void steps_stop(struct steps *steps)
{
    if (steps->is_stopping) {
        loop_stop(steps->loop);
        return;
    }
    steps->is_stopping = true;
    steps->has_failed |= steps->work != SERVE;
    keeper_stop(&steps->keeper);
    if (converter_is_busy(&steps->converter))
        converter_stop(&steps->converter);
    else
        loop_stop(steps->loop);
}

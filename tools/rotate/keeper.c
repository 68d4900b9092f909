/*
 * Keeps a session recording.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "keeper.h"

#include "bury.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS  500
#define LIMIT_MS 15000

struct order {
    struct session_spec spec;
    struct store store; /* only its folders */
    char new_place[PLACE_MAX];
    char given_up[PLACE_MAX];
};

/* ---- in the task ----------------------------------------------------------------------------- */

/* OUTPUT/PLACE: what is between; "" if it is no such path. */
static void place_of(const struct store *store, const char *path, char place[PLACE_MAX])
{
    const size_t length = strlen(store->output);

    (void)snprintf(place, PLACE_MAX, "%.*s", (int)strcspn(path + length + 1, "/"),
                   path[length] == '/' ? path + length + 1 : "");
}

static bool list_used(const struct store *store, struct keep_report *report,
                      struct session_places *places)
{
    bool has_answered = session_below(store->output, places, &report->error);

    report->has_daemon = places->has_daemon;
    report->used_count = has_answered ? places->count : 0;
    for (size_t i = 0; i < report->used_count; i++)
        place_of(store, places->places[i].path, report->used[i]);
    return has_answered;
}

/* The newest session of ours that is not given up; -1: there is none. */
static int keeper_choose(const struct order *order, const struct keep_report *report,
                         const struct session_places *places)
{
    int chosen = -1;

    for (size_t i = 0; i < places->count; i++) {
        if (report->used[i][0] == '\0' || strcmp(report->used[i], order->given_up) == 0)
            continue;
        if (chosen < 0 || strcmp(report->used[i], report->used[chosen]) > 0)
            chosen = (int)i;
    }
    return chosen;
}

static bool is_taken(const struct session_places *places, const char *name)
{
    for (size_t i = 0; i < places->count; i++) {
        if (strcmp(places->places[i].name, name) == 0)
            return true;
    }
    return false;
}

/* A new one beside one that is given up needs another name. */
static bool prepare_new(struct order *order, const struct session_places *places,
                        struct keep_report *report)
{
    char name[sizeof(order->spec.name)];

    (void)snprintf(name, sizeof(name), "%s", order->spec.name);
    for (unsigned i = 2; is_taken(places, order->spec.name); i++)
        (void)snprintf(order->spec.name, sizeof(order->spec.name), "%.240s-%u", name, i);
    (void)snprintf(report->place, sizeof(report->place), "%s", order->new_place);
    if (order->store.shm[0] == '\0')
        return true;
    if (snprintf(order->spec.shm_path, sizeof(order->spec.shm_path), "%s/%s", order->store.shm,
                 order->new_place) < (int)sizeof(order->spec.shm_path) &&
        (mkdir(order->spec.shm_path, 0700) == 0 || errno == EEXIST))
        return true;
    return error_set(&report->error, "cannot make a folder for LTTng's buffers, %s: %s",
                     order->spec.shm_path, strerror(errno));
}

static void take_chosen(struct order *order, const struct session_place *chosen, const char *place,
                        struct keep_report *report)
{
    (void)snprintf(order->spec.name, sizeof(order->spec.name), "%s", chosen->name);
    order->spec.only_adopt = true; /* destroyed meanwhile: a new one gets a place of its own */
    (void)snprintf(report->place, sizeof(report->place), "%s", place);
}

/* Those that another one has replaced. Without wait: what they still write goes on. */
static void end_others(const struct order *order, const struct session_places *places,
                       const struct keep_report *report)
{
    struct error ignored;

    for (size_t i = 0; i < places->count; i++) {
        if (strcmp(places->places[i].name, report->session) == 0)
            continue;
        (void)bury_prepare(&order->store, report->used[i], &ignored);
        (void)session_destroy(places->places[i].name, false, &ignored);
    }
}

static void keeper_ensure(struct order *order, struct keep_report *report)
{
    struct session_answer answer;

    (void)snprintf(order->spec.output, sizeof(order->spec.output), "%.4000s/%s",
                   order->store.output, report->place);
    session_ensure(&order->spec, &answer);
    (void)snprintf(report->session, sizeof(report->session), "%s", order->spec.name);
    report->error = answer.error;
    report->is_new = answer.result == SESSION_CREATED;
    report->state = answer.result <= SESSION_ADOPTED     ? KEEP_RECORDS
                    : answer.result == SESSION_NO_DAEMON ? KEEP_NO_DAEMON
                                                         : KEEP_FAILED;
    if (report->state != KEEP_RECORDS && order->spec.shm_path[0] != '\0')
        (void)rmdir(order->spec.shm_path); /* the next try has another name */
}

/* Returns whether LTTng's consumer daemon is alive, as far as the session tells. */
static bool keeper_look(const char *session, struct keep_report *report)
{
    struct session_state state;
    struct error ignored;

    if (!session_look(session, &state, &ignored) || !state.is_there)
        return true;
    report->discarded_events = state.discarded_events;
    report->lost_packets = state.lost_packets;
    return state.has_consumer;
}

static bool keeper_keep(const void *argument, void *result)
{
    struct order order = *(const struct order *)argument;
    struct keep_report *report = result;
    struct session_places places;
    int chosen;

    if (!list_used(&order.store, report, &places)) {
        report->state = report->has_daemon ? KEEP_FAILED : KEEP_NO_DAEMON;
        return true;
    }
    chosen = keeper_choose(&order, report, &places);
    if (chosen >= 0 && !keeper_look(places.places[chosen].name, report)) {
        /* none can be made either: wait for a new session daemon */
        (void)bury_prepare(&order.store, report->used[chosen], &report->error);
        report->state = KEEP_NO_CONSUMER;
        error_set(&report->error, "LTTng's consumer daemon has died. Nothing is recorded until the "
                                  "session daemon is restarted: systemctl restart lttng-sessiond");
        return true;
    }
    if (chosen >= 0)
        take_chosen(&order, &places.places[chosen], report->used[chosen], report);
    else if (!prepare_new(&order, &places, report)) {
        report->state = KEEP_FAILED;
        return true;
    }
    if (chosen >= 0 && places.places[chosen].is_active) {
        report->state = KEEP_RECORDS;
        (void)snprintf(report->session, sizeof(report->session), "%s", order.spec.name);
    } else {
        keeper_ensure(&order, report);
    }
    if (report->state == KEEP_RECORDS)
        end_others(&order, &places, report);
    return true;
}

const struct job keeper_job = {.name = "rotate-session",
                               .fill = keeper_keep,
                               .result_size = sizeof(struct keep_report),
                               .stays = true};

static bool keeper_list(const void *argument, void *result)
{
    const struct store *store = argument;
    struct keep_report *report = result;
    struct session_places places;
    const bool has_answered = list_used(store, report, &places);

    report->state = has_answered || report->has_daemon ? KEEP_FAILED : KEEP_NO_DAEMON;
    return true;
}

const struct job keeper_list_job = {
    .name = "rotate-list", .fill = keeper_list, .result_size = sizeof(struct keep_report)};

/* ---- in the service -------------------------------------------------------------------------- */

static void keeper_looked(void *context, const void *result)
{
    struct keeper *keeper = context;
    const struct keep_report *report = result;

    if (report) {
        if (report->is_new)
            keeper->given_up[0] = '\0';
        keeper->last = *report;
        keeper->has_looked = true;
    }
    timer_set(keeper->loop, &keeper->timer, LOOK_MS);
    keeper->looked(keeper->context, report);
}

static void keeper_look_again(void *context)
{
    struct keeper *keeper = context;
    struct order order = {.spec = keeper->spec, .store = store_folders(keeper->store)};

    (void)snprintf(order.given_up, sizeof(order.given_up), "%s", keeper->given_up);
    store_new_place(keeper->store, order.new_place);
    keeper->task.done = keeper_looked;
    keeper->task.context = keeper;
    if (!task_start(keeper->loop, &keeper->task, &keeper_job, &order, sizeof(order), LIMIT_MS))
        timer_set(keeper->loop, &keeper->timer, LOOK_MS);
}

void keeper_start(struct keeper *keeper)
{
    keeper->timer = (struct timer){.due = keeper_look_again, .context = keeper};
    keeper_look_again(keeper);
}

void keeper_stop(struct keeper *keeper)
{
    timer_clear(keeper->loop, &keeper->timer);
}

void keeper_give_up(struct keeper *keeper, const char *place)
{
    (void)snprintf(keeper->given_up, sizeof(keeper->given_up), "%s", place);
}

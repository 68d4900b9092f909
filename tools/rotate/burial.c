/*
 * Burying in a task.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "burial.h"

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "bury.h"
#include "holder.h"
#include "tools/base/say.h"

#include <stdio.h>
#include <string.h>

#define LIMIT_MS       300000
#define NAMED_AGAIN_MS 60000 /* to look at all descriptors of a large host takes a while */
#define PAUSE_MS       500
#define PAUSE_MAX_MS   60000

struct order {
    struct store store; /* only its folders */
    char place[PLACE_MAX];
    int64_t quiet_s;
    bool names_holder; /* if a file is open: which process has it? */
};

struct outcome {
    bool is_quiet, is_done, has_looked_for_holder;
    struct bury_file file;
    struct holder holder;
    struct error error;
};

static bool burial_run(const void *argument, void *result)
{
    const struct order *order = argument;
    struct outcome *outcome = result;

    outcome->is_quiet = bury_is_quiet(&order->store, order->place, order->quiet_s, &outcome->file);
    if (outcome->is_quiet)
        outcome->is_done = bury(&order->store, order->place, &outcome->error);
    outcome->has_looked_for_holder = outcome->file.open == BURY_WRITTEN && order->names_holder;
    if (outcome->has_looked_for_holder)
        outcome->holder = holder_find(outcome->file.path);
    return true;
}

const struct job burial_job = {
    .name = "rotate-burial", .fill = burial_run, .result_size = sizeof(struct outcome)};

/* Says which process has which file open. */
static void explain_written(struct burial *burial, const struct outcome *outcome)
{
    const struct holder *holder = &outcome->holder;
    char who[160] = "a process that this user cannot see";

    if (!outcome->has_looked_for_holder) /* what the last look has found still holds */
        return;
    burial->named_ms = clock_ms();
    if (holder->pid)
        (void)snprintf(who, sizeof(who), "%sprocess %d (%s)",
                       holder->is_guess ? "a process of another user, most likely " : "",
                       (int)holder->pid, holder->name);
    error_set(&burial->waits,
              "session %s has ended, but %s still has a file of it open for writing: waiting. The "
              "file is %s",
              burial->place, who, outcome->file.path);
}

static void burial_ended(void *context, const void *result)
{
    struct burial *burial = context;
    const struct outcome *outcome = result;
    const char *problem = NULL;

    burial->is_under_way = false;
    burial->failures =
        outcome && (outcome->is_done || !outcome->is_quiet) ? 0 : burial->failures + 1;
    burial->failed_ms = clock_ms();
    if (!outcome) {
        problem = "cannot read the rest of a dead session";
    } else if (outcome->file.open == BURY_WRITTEN) {
        explain_written(burial, outcome);
        problem = burial->waits.text;
    } else if (outcome->file.open == BURY_UNKNOWN) {
        burial->named_ms = 0;
        error_set(
            &burial->waits,
            "session %s has ended, but cannot find out whether its files are still open: waiting",
            burial->place);
        problem = burial->waits.text;
    } else if (outcome->is_quiet && !outcome->is_done) {
        problem = outcome->error.text;
    } else if (outcome->is_done) {
        burial->named_ms = 0;
        say(BK3011,
            "session %s has died: what it had written, and what was in its buffers, is converted",
            burial->place);
    }
    burial->ended(burial->context, problem);
}

void burial_start(struct burial *burial, const char *place, int64_t quiet_s)
{
    struct order order = {.store = store_folders(burial->store), .quiet_s = quiet_s};

    order.names_holder = !burial->named_ms || clock_ms() - burial->named_ms > NAMED_AGAIN_MS;
    (void)snprintf(order.place, sizeof(order.place), "%s", place);
    (void)snprintf(burial->place, sizeof(burial->place), "%s", place);
    burial->task.done = burial_ended;
    burial->task.context = burial;
    burial->is_under_way =
        task_start(burial->loop, &burial->task, &burial_job, &order, sizeof(order), LIMIT_MS);
}

bool burial_is_paused(const struct burial *burial)
{
    return burial->failures &&
           clock_ms() - burial->failed_ms < backoff_ms(burial->failures, PAUSE_MS, PAUSE_MAX_MS);
}

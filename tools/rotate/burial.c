/*
 * Burying in a task.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "burial.h"

#include "bury.h"
#include "tools/base/say.h"

#include <stdio.h>

#define LIMIT_MS 300000

struct order {
    struct store store; /* only its folders */
    char place[PLACE_MAX];
    int64_t quiet_s;
};

struct outcome {
    bool is_quiet, is_done;
    enum bury_open open;
    struct error error;
};

static bool burial_run(const void *argument, void *result)
{
    const struct order *order = argument;
    struct outcome *outcome = result;

    outcome->is_quiet = bury_is_quiet(&order->store, order->place, order->quiet_s, &outcome->open);
    if (outcome->is_quiet)
        outcome->is_done = bury(&order->store, order->place, &outcome->error);
    return true;
}

const struct job burial_job = {
    .name = "rotate-burial", .fill = burial_run, .result_size = sizeof(struct outcome)};

static void burial_ended(void *context, const void *result)
{
    struct burial *burial = context;
    const struct outcome *outcome = result;
    const char *problem = NULL;
    char waits[PLACE_MAX + 160];

    burial->is_under_way = false;
    if (!outcome)
        problem = "what a dead session has left could not be read";
    else if (outcome->open != BURY_CLOSED) {
        (void)snprintf(waits, sizeof(waits),
                       outcome->open == BURY_WRITTEN
                           ? "session %s has ended, but a process still has a file of it open for "
                             "writing: waiting"
                           : "session %s has ended, but the kernel does not tell whether its files "
                             "are still open: left",
                       burial->place);
        problem = waits;
    } else if (outcome->is_quiet && !outcome->is_done)
        problem = outcome->error.text;
    else if (outcome->is_done)
        say(BK3011,
            "session %s has died: what it had written, and what was in its buffers, is converted",
            burial->place);
    burial->ended(burial->context, problem);
}

void burial_start(struct burial *burial, const char *place, int64_t quiet_s)
{
    struct order order = {.quiet_s = quiet_s};

    (void)snprintf(order.store.output, sizeof(order.store.output), "%s", burial->store->output);
    (void)snprintf(order.store.shm, sizeof(order.store.shm), "%s", burial->store->shm);
    (void)snprintf(order.place, sizeof(order.place), "%s", place);
    (void)snprintf(burial->place, sizeof(burial->place), "%s", place);
    burial->task.done = burial_ended;
    burial->task.context = burial;
    burial->is_under_way =
        task_start(burial->loop, &burial->task, &burial_job, &order, sizeof(order), LIMIT_MS);
}

/*
 * The open requests of a thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction.h"

void interaction_closes(struct worker *worker, struct interaction *interaction)
{
    struct interaction *last;
    uint32_t at;

    if (interaction->worker != worker || !(at = interaction->open_at) || at > worker->open_count)
        return;
    last = worker->open[--worker->open_count];
    worker->open[at - 1] = last;
    last->open_at = at;
    interaction->open_at = 0;
    if (!worker->open_count)
        worker->has_overflowed = false;
    interaction_let_go(interaction);
}

void interaction_tidy(struct worker *worker)
{
    for (unsigned i = worker->open_count; i > 0; i--) {
        if (interaction_phase(worker->open[i - 1]) != PHASE_REQUEST)
            interaction_closes(worker, worker->open[i - 1]);
    }
}

void interaction_opens(struct worker *worker, struct interaction *interaction)
{
    if (interaction->worker != worker)
        return;
    interaction->round = interaction_thread.round;
    if (interaction->open_at || interaction_phase(interaction) != PHASE_REQUEST)
        return;
    if (worker->open_count == OPEN_MAX)
        interaction_tidy(worker);
    if (worker->open_count == OPEN_MAX) {
        worker->has_overflowed = true;
        return;
    }
    interaction_hold(interaction);
    worker->open[worker->open_count++] = interaction;
    interaction->open_at = worker->open_count;
}

void interaction_after_jump(void)
{
    struct worker *worker = interaction_thread.worker;
    unsigned before, count = 0;

    if (!worker)
        return;
    before = worker->open_count;
    /* one more: interaction_closes() may have been about to move it */
    for (unsigned i = 0; i <= before && i < OPEN_MAX; i++) {
        struct interaction *interaction = worker->open[i];

        if (interaction && interaction->worker == worker && interaction->open_at == i + 1) {
            worker->open[count++] = interaction;
            interaction->open_at = count;
        }
    }
    worker->open_count = count;
    worker->has_overflowed = count > 0;
}

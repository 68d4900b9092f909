/*
 * What a thread works for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction.h"

struct interaction *interaction_own(struct connection *connection)
{
    const struct worker *worker = interaction_thread.worker;
    struct interaction *work = interaction_thread.work, *open;

    if (work && work->connection == connection && interaction_phase(work) != PHASE_OVER) {
        interaction_hold(work);
        return work;
    }
    open = interaction_at_hand(connection);
    if (!worker || (open && open->worker == worker))
        return open;
    for (unsigned i = 0; i < worker->open_count; i++) {
        struct interaction *own = worker->open[i];

        if (own->connection == connection && interaction_phase(own) == PHASE_REQUEST) {
            interaction_hold(own);
            if (open)
                interaction_let_go(open);
            return own;
        }
    }
    return open;
}

/* The span of who was worked for may be what the program's own puts back when it ends. */
static void interaction_lend(struct interaction *work)
{
    if (interaction_thread.worker && !interaction_thread.lent)
        interaction_thread.lent = work;
    else
        interaction_let_go(work);
}

static void interaction_take_back(const struct blkin_span *current)
{
    struct interaction *lent = interaction_thread.lent;

    if (lent && (!current || current == &lent->span)) {
        interaction_thread.lent = NULL;
        if (current)
            (void)blkin_set_current(NULL);
        interaction_let_go(lent);
    }
}

void interaction_stop_work(void)
{
    struct interaction *work = interaction_thread.work;

    if (!work)
        return;
    interaction_thread.work = NULL;
    __atomic_store_n(&work->is_worked_for, false, __ATOMIC_RELEASE);
    if (blkin_current() == &work->span) {
        (void)blkin_set_current(NULL);
        interaction_let_go(work);
    } else if (blkin_current()) {
        interaction_lend(work);
    } else {
        interaction_let_go(work);
    }
}

void interaction_work_for(struct interaction *interaction)
{
    if (interaction_thread.work == interaction)
        return;
    interaction_stop_work();
    if (__atomic_exchange_n(&interaction->is_worked_for, true, __ATOMIC_ACQ_REL))
        return;
    interaction_hold(interaction);
    interaction_thread.work = interaction;
    interaction_take_back(blkin_current());
    if (!blkin_current())
        (void)blkin_set_current(&interaction->span);
}

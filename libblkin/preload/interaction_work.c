/*
 * What a thread works for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction_parts.h"

struct interaction *interaction_own(struct connection *connection)
{
    const struct thread *thread = preload_thread.thread;
    struct interaction *work = preload_thread.work, *open;

    if (work && work->connection == connection && interaction_phase(work) != PHASE_OVER) {
        interaction_hold(work);
        return work;
    }
    open = interaction_at_hand(connection);
    if (!thread || (open && open->thread == thread))
        return open;
    for (unsigned i = 0; i < thread->open_count; i++) {
        struct interaction *own = thread->open[i];

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
static void lend(struct interaction *work)
{
    struct thread *thread = preload_thread.thread;

    if (thread && !thread->lent)
        thread->lent = work;
    else
        interaction_let_go(work);
}

static void take_back(const struct blkin_span *current)
{
    struct thread *thread = preload_thread.thread;
    struct interaction *lent = thread ? thread->lent : NULL;

    if (lent && (!current || current == &lent->span)) {
        thread->lent = NULL;
        if (current)
            (void)blkin_set_current(NULL);
        interaction_let_go(lent);
    }
}

void interaction_stop_work(void)
{
    struct interaction *work = preload_thread.work;

    if (!work)
        return;
    preload_thread.work = NULL;
    __atomic_store_n(&work->is_worked_for, false, __ATOMIC_RELEASE);
    if (blkin_current() == &work->span) {
        (void)blkin_set_current(NULL);
        interaction_let_go(work);
    } else if (blkin_current()) {
        lend(work);
    } else {
        interaction_let_go(work);
    }
}

void interaction_work_for(struct interaction *interaction)
{
    if (preload_thread.work == interaction)
        return;
    interaction_stop_work();
    if (__atomic_exchange_n(&interaction->is_worked_for, true, __ATOMIC_ACQ_REL))
        return;
    interaction_hold(interaction);
    preload_thread.work = interaction;
    take_back(blkin_current());
    if (!blkin_current())
        (void)blkin_set_current(&interaction->span);
}

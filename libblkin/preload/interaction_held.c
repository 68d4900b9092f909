/*
 * Holds answered interactions until they are certainly over.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction.h"
#include "preload.h"

/* Takes the interaction that was held longest, with a reference. NULL: it is gone. */
static struct interaction *interaction_take_eldest(struct interaction_worker *worker)
{
    struct interaction *eldest = interaction_find(worker->held[worker->held_first % HELD_MAX]);

    __atomic_store_n(&worker->held_first, worker->held_first + 1, __ATOMIC_RELEASE);
    return eldest;
}

static void interaction_finish_eldest(struct interaction_worker *worker)
{
    struct interaction *eldest = interaction_take_eldest(worker);

    if (!eldest)
        return;
    if (interaction_phase(eldest) == PHASE_ANSWERED)
        interaction_finish(eldest);
    interaction_release(eldest);
}

static void interaction_keep(struct interaction_worker *worker, struct interaction *interaction,
                             uint64_t until_ns)
{
    if (worker->held_end - worker->held_first == HELD_MAX)
        interaction_finish_eldest(worker);
    worker->held_until[worker->held_end % HELD_MAX] = until_ns;
    __atomic_store_n(&worker->held[worker->held_end % HELD_MAX], pool_name_of(&interaction->item),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&worker->held_end, worker->held_end + 1, __ATOMIC_RELEASE);
}

static inline uint64_t interaction_is_held_until(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->last_ns, __ATOMIC_RELAXED) + INTERACTION_HOLD_NS;
}

/* The first part of the answer: true for one thread. */
static bool interaction_becomes_answered(struct interaction *interaction)
{
    uint8_t request = PHASE_REQUEST;

    return __atomic_compare_exchange_n(&interaction->phase, &request, PHASE_ANSWERED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void interaction_add_answer(struct interaction *interaction, size_t count)
{
    struct interaction_worker *worker = interaction_worker();

    connection_add_bytes(&interaction->answered, count);
    __atomic_store_n(&interaction->last_ns, blkin_now(), __ATOMIC_RELAXED);
    if (interaction->worker == worker)
        file_sums_answer(&interaction->files);
    if (!interaction_becomes_answered(interaction))
        return;
    interaction_stop_waiting(interaction);
    if (!worker)
        return;
    interaction_closes(worker, interaction);
    interaction_keep(worker, interaction, interaction_is_held_until(interaction));
}

void interaction_finish_held(struct interaction_worker *worker, uint64_t now_ns)
{
    const bool all = now_ns == UINT64_MAX;

    for (uint32_t left = worker->held_end - worker->held_first; left > 0; left--) {
        struct interaction *held;

        if (worker->held_until[worker->held_first % HELD_MAX] > now_ns)
            break;
        held = interaction_take_eldest(worker);
        if (!held)
            continue;
        if (interaction_phase(held) == PHASE_ANSWERED) {
            if (!interaction_is_whole(held))
                interaction_keep(worker, held, all ? 0 : now_ns + INTERACTION_HOLD_NS);
            else if (!all && interaction_is_held_until(held) > now_ns)
                interaction_keep(worker, held, interaction_is_held_until(held));
            else
                interaction_finish(held);
        }
        interaction_release(held);
    }
}

/* ---- for any thread ---- */

/* Reads `held_first` first. In the other order, a thread that meanwhile adds and records some would
 * seem to hold 2^32. */
static void interaction_finish_those(const struct interaction_worker *worker,
                                     bool (*is_over)(const struct interaction *held))
{
    const uint32_t first = __atomic_load_n(&worker->held_first, __ATOMIC_ACQUIRE);
    const uint32_t end = __atomic_load_n(&worker->held_end, __ATOMIC_ACQUIRE);

    for (uint32_t at = first; at != end; at++) {
        struct interaction *held =
            interaction_find(__atomic_load_n(&worker->held[at % HELD_MAX], __ATOMIC_RELAXED));

        if (!held)
            continue;
        if (is_over(held))
            interaction_finish(held);
        interaction_release(held);
    }
}

static bool interaction_is_over_by_now(const struct interaction *held)
{
    return interaction_is_whole(held) && interaction_is_held_until(held) <= blkin_now();
}

/* Another thread may be waiting in a call without a wrapper. */
static void interaction_finish_others(void *worker)
{
    interaction_finish_those(worker, interaction_is_over_by_now);
}

/* ---- waiting ---- */

void interaction_waits(void)
{
    struct interaction_worker *worker = interaction_thread.worker;
    const struct interaction *work = interaction_thread.work;

    if (!worker)
        return;
    if (work && interaction_phase(work) != PHASE_REQUEST)
        interaction_stop_work();
    if (interaction_thread.round == 0)
        interaction_finish_held(worker, UINT64_MAX);
}

void interaction_begin_round(void)
{
    interaction_thread.round++;
    interaction_thread.heard = interaction_thread.called = 0;
    interaction_thread.has_one_event = false;
    interaction_stop_work();
}

bool interaction_waits_for_events(void)
{
    struct interaction_worker *worker = interaction_thread.worker;

    if (worker->held_first == worker->held_end)
        return false;
    interaction_finish_held(worker, blkin_now());
    return worker->held_first != worker->held_end;
}

void interaction_is_idle(void)
{
    if (interaction_thread.worker)
        interaction_finish_held(interaction_thread.worker, UINT64_MAX);
    interaction_for_each_worker(interaction_finish_others);
}

/* ---- ends ---- */

static bool interaction_is_answered(const struct interaction *held)
{
    return interaction_phase(held) == PHASE_ANSWERED;
}

static void interaction_flush(void *worker)
{
    interaction_finish_those(worker, interaction_is_answered);
}

void interaction_drop_held(void)
{
    struct interaction_worker *worker = interaction_thread.worker;

    interaction_stop_work();
    while (worker->held_first != worker->held_end) {
        struct interaction *held = interaction_take_eldest(worker);

        if (!held)
            continue;
        interaction_give_up(held);
        interaction_release(held);
    }
}

void interaction_flush_all(void)
{
    interaction_stop_work();
    interaction_for_each_worker(interaction_flush);
}

void interaction_thread_ends(void)
{
    struct interaction_worker *worker = interaction_thread.worker;
    struct interaction *shadowed;

    if (!worker)
        return;
    interaction_stop_work();
    interaction_flush(worker);
    __atomic_store_n(&worker->held_first, worker->held_end, __ATOMIC_RELEASE);
    while (worker->open_count)
        interaction_closes(worker, worker->open[worker->open_count - 1]);
    shadowed = interaction_thread.shadowed;
    interaction_thread.shadowed = NULL;
    if (shadowed)
        interaction_release(shadowed);
}

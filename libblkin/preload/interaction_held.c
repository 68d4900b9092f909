/*
 * Holds answered interactions until their answers are certainly complete.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction.h"
#include "preload.h"

/* Removes the interaction that was held longest. Returns it with a reference; NULL: already
 * freed. */
static struct interaction *interaction_take_oldest(struct interaction_worker *worker)
{
    struct interaction *oldest = interaction_find(worker->held[worker->held_first % HELD_MAX]);

    __atomic_store_n(&worker->held_first, worker->held_first + 1, __ATOMIC_RELEASE);
    return oldest;
}

static void interaction_finish_oldest(struct interaction_worker *worker)
{
    struct interaction *oldest = interaction_take_oldest(worker);

    if (!oldest)
        return;
    if (interaction_phase(oldest) == PHASE_ANSWERED)
        interaction_finish(oldest);
    interaction_release(oldest);
}

static void interaction_hold_until(struct interaction_worker *worker,
                                   struct interaction *interaction, uint64_t until_ns)
{
    if (worker->held_end - worker->held_first == HELD_MAX)
        interaction_finish_oldest(worker);
    worker->held_until[worker->held_end % HELD_MAX] = until_ns;
    __atomic_store_n(&worker->held[worker->held_end % HELD_MAX], pool_name_of(&interaction->item),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&worker->held_end, worker->held_end + 1, __ATOMIC_RELEASE);
}

static inline uint64_t interaction_hold_end_ns(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->last_ns, __ATOMIC_RELAXED) + INTERACTION_HOLD_NS;
}

/* Called for each part of the answer. Returns true to one thread, for the first part. */
static bool interaction_set_answered(struct interaction *interaction)
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
    if (!interaction_set_answered(interaction))
        return;
    interaction_tell_owner_answered(interaction);
    if (!worker)
        return;
    interaction_remove_open(worker, interaction);
    interaction_hold_until(worker, interaction, interaction_hold_end_ns(interaction));
}

void interaction_finish_held(struct interaction_worker *worker, uint64_t now_ns)
{
    const bool all = now_ns == UINT64_MAX;

    for (uint32_t left = worker->held_end - worker->held_first; left > 0; left--) {
        struct interaction *held;

        if (worker->held_until[worker->held_first % HELD_MAX] > now_ns)
            break;
        held = interaction_take_oldest(worker);
        if (!held)
            continue;
        if (interaction_phase(held) == PHASE_ANSWERED) {
            if (!interaction_is_complete(held))
                interaction_hold_until(worker, held, all ? 0 : now_ns + INTERACTION_HOLD_NS);
            else if (!all && interaction_hold_end_ns(held) > now_ns)
                interaction_hold_until(worker, held, interaction_hold_end_ns(held));
            else
                interaction_finish(held);
        }
        interaction_release(held);
    }
}

/* ---- for any thread ---- */

/* Ends those of the worker's held interactions for which is_over() returns true. Reads held_first
 * before held_end: in the other order, held_first could be beyond held_end. */
static void interaction_finish_if(const struct interaction_worker *worker,
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
    return interaction_is_complete(held) && interaction_hold_end_ns(held) <= blkin_now();
}

/* Ends interactions of other threads, too: such a thread may wait in a call without a wrapper. */
static void interaction_finish_others(void *worker)
{
    interaction_finish_if(worker, interaction_is_over_by_now);
}

/* ---- waiting ---- */

void interaction_before_accept(void)
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

bool interaction_before_wait(void)
{
    struct interaction_worker *worker = interaction_thread.worker;

    if (worker->held_first == worker->held_end)
        return false;
    interaction_finish_held(worker, blkin_now());
    return worker->held_first != worker->held_end;
}

void interaction_after_idle(void)
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
    interaction_finish_if(worker, interaction_is_answered);
}

void interaction_drop_held(void)
{
    struct interaction_worker *worker = interaction_thread.worker;

    interaction_stop_work();
    while (worker->held_first != worker->held_end) {
        struct interaction *held = interaction_take_oldest(worker);

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

void interaction_end_thread(void)
{
    struct interaction_worker *worker = interaction_thread.worker;
    struct interaction *shadowed;

    if (!worker)
        return;
    interaction_stop_work();
    interaction_flush(worker);
    __atomic_store_n(&worker->held_first, worker->held_end, __ATOMIC_RELEASE);
    while (worker->open_count)
        interaction_remove_open(worker, worker->open[worker->open_count - 1]);
    shadowed = interaction_thread.shadowed;
    interaction_thread.shadowed = NULL;
    if (shadowed)
        interaction_release(shadowed);
}

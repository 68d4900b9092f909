/*
 * What is answered is held until it is certainly over.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "cause.h"
#include "interaction_parts.h"

static void finish_eldest(struct thread *thread)
{
    struct interaction *eldest = interaction_find(thread->held[thread->held_first % HELD_MAX]);

    __atomic_store_n(&thread->held_first, thread->held_first + 1, __ATOMIC_RELEASE);
    if (!eldest)
        return;
    if (interaction_phase(eldest) == PHASE_ANSWERED)
        interaction_finish(eldest);
    interaction_let_go(eldest);
}

static void keep(struct thread *thread, struct interaction *interaction, uint64_t until_ns)
{
    if (thread->held_end - thread->held_first == HELD_MAX)
        finish_eldest(thread);
    thread->held_until[thread->held_end % HELD_MAX] = until_ns;
    __atomic_store_n(&thread->held[thread->held_end % HELD_MAX], pool_name_of(&interaction->item),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&thread->held_end, thread->held_end + 1, __ATOMIC_RELEASE);
}

static inline uint64_t is_held_until(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->last_ns, __ATOMIC_RELAXED) + HOLD_NS;
}

/* A first part of the answer: true for the one thread that has it. */
static bool becomes_answered(struct interaction *interaction)
{
    uint8_t request = PHASE_REQUEST;

    return __atomic_compare_exchange_n(&interaction->phase, &request, PHASE_ANSWERED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void interaction_add_answer(struct interaction *interaction, size_t count)
{
    struct thread *thread = thread_get();

    add_bytes(&interaction->answered, count);
    __atomic_store_n(&interaction->last_ns, preload_now_ns(), __ATOMIC_RELAXED);
    if (interaction->thread == thread)
        file_interaction_answers(&interaction->files);
    if (!becomes_answered(interaction))
        return;
    interaction_stop_waiting(interaction);
    if (!thread)
        return;
    cause_closes(thread, interaction);
    keep(thread, interaction, is_held_until(interaction));
}

void interaction_finish_held(struct thread *thread, uint64_t now_ns)
{
    const bool all = now_ns == UINT64_MAX;

    for (uint32_t left = thread->held_end - thread->held_first; left > 0; left--) {
        const uint32_t at = thread->held_first % HELD_MAX;
        struct interaction *held;

        if (thread->held_until[at] > now_ns)
            break;
        held = interaction_find(thread->held[at]);
        __atomic_store_n(&thread->held_first, thread->held_first + 1, __ATOMIC_RELEASE);
        if (!held)
            continue;
        if (interaction_phase(held) == PHASE_ANSWERED) {
            if (!interaction_is_whole(held))
                keep(thread, held, all ? 0 : now_ns + HOLD_NS);
            else if (!all && is_held_until(held) > now_ns)
                keep(thread, held, is_held_until(held));
            else
                interaction_finish(held);
        }
        interaction_let_go(held);
    }
}

/* Another thread's, which may be waiting for something that we do not see. */
static void finish_others(struct thread *thread)
{
    const uint32_t end = __atomic_load_n(&thread->held_end, __ATOMIC_ACQUIRE);
    const uint64_t now_ns = preload_now_ns();

    for (uint32_t at = __atomic_load_n(&thread->held_first, __ATOMIC_ACQUIRE); at != end; at++) {
        struct interaction *held =
            interaction_find(__atomic_load_n(&thread->held[at % HELD_MAX], __ATOMIC_RELAXED));

        if (!held)
            continue;
        if (interaction_is_whole(held) && is_held_until(held) <= now_ns)
            interaction_finish(held);
        interaction_let_go(held);
    }
}

/* ---- waiting ---- */

void interaction_waits(void)
{
    struct thread *thread = preload_thread.thread;
    const struct interaction *work = preload_thread.work;

    if (!thread)
        return;
    file_record_later(thread->later);
    if (work && interaction_phase(work) != PHASE_REQUEST)
        interaction_stop_work();
    if (preload_thread.round == 0)
        interaction_finish_held(thread, UINT64_MAX);
}

bool interaction_waits_for_events(bool of_many)
{
    struct thread *thread = preload_thread.thread;

    file_record_later(thread->later);
    if (of_many) {
        preload_thread.round++;
        interaction_stop_work();
    }
    if (thread->held_first == thread->held_end)
        return false;
    interaction_finish_held(thread, preload_now_ns());
    return thread->held_first != thread->held_end;
}

void interaction_is_idle(void)
{
    if (preload_thread.thread)
        interaction_finish_held(preload_thread.thread, UINT64_MAX);
    thread_for_each(finish_others);
}

/* ---- ends ---- */

static void flush(struct thread *thread)
{
    file_record_later(thread->later);
    for (uint32_t at = thread->held_first; at != thread->held_end; at++) {
        struct interaction *held = interaction_find(thread->held[at % HELD_MAX]);

        if (!held)
            continue;
        if (interaction_phase(held) == PHASE_ANSWERED)
            interaction_finish(held);
        interaction_let_go(held);
    }
}

void interaction_drop_held(void)
{
    struct thread *thread = preload_thread.thread;

    interaction_stop_work();
    file_drop_later(thread->later);
    for (; thread->held_first != thread->held_end; thread->held_first++) {
        struct interaction *held = interaction_find(thread->held[thread->held_first % HELD_MAX]);

        if (!held)
            continue;
        interaction_give_up(held);
        interaction_let_go(held);
    }
}

void interaction_flush_all(void)
{
    interaction_stop_work();
    thread_for_each(flush);
}

void interaction_thread_ends(struct thread *thread)
{
    if (thread->writing)
        interaction_has_written_last(thread->writing, 0, 1);
    interaction_stop_work();
    flush(thread);
    thread->held_first = thread->held_end;
    while (thread->open_count)
        cause_closes(thread, thread->open[thread->open_count - 1]);
    if (thread->lent)
        interaction_let_go(thread->lent);
    thread->lent = NULL;
}

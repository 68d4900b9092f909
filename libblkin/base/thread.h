/*
 * What libblkin keeps for each thread: its source of ids, its event sequence, its current span; and
 * quiet processes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_THREAD_H
#define BLKIN_THREAD_H

#include "tracepoints/format/step_id.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blkin_span;

/*
 * Ids: one counter per thread, seeded with getrandom(2) at the thread's first id and again after
 * fork(2). An id is a bijection of the counter, so one thread never repeats an id, and two threads
 * do only if their stretches of one 2^64 cycle overlap. The counter's step is that of splitmix64
 * (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), of whose
 * mixing one round of two is enough for ids. Not for secrets: who sees one id can compute the next.
 */
struct blkin_thread {
    uint64_t id_counter;
    uint64_t number;   /* 60 random bits: names this thread in events. 0: it has not recorded */
    uint32_t sequence; /* of the last blkin:span or blkin:process */
    uint32_t streamed_sequence; /* of the last streaming event */
    struct blkin_span *current;
    void *provider_slot; /* see struct blkin_provider */
    char digits[16];     /* that packed texts begin with: version and number, eleven */
};

/* Not seeded. The next id would be 0, which no id may be: so one test for 0 is enough. */
#define BLKIN_ID_COUNTER_UNSEEDED (-BLKIN_ID_STEP)

extern __attribute__((visibility("hidden"),
                      tls_model("initial-exec"))) _Thread_local struct blkin_thread blkin_thread;

typedef void blkin_thread_fn(void);

/*
 * What the rooms above do at a thread's first record: load the provider, register this child of
 * fork(2), allocate. process/ sets the pointer before it loads the provider, so before anything is
 * recorded. A constructor would be too late: a program's own may run first. NULL: nothing was
 * loaded yet.
 */
extern __attribute__((visibility("hidden"))) blkin_thread_fn *blkin_thread_prepare;

/* The first record of a thread. Cold. */
__attribute__((cold)) void blkin_thread_begin(struct blkin_thread *thread);

/* The calling thread's state, ready to record. Before what the provider says is looked at. */
static inline struct blkin_thread *blkin_this_thread(void)
{
    struct blkin_thread *thread = &blkin_thread;

    if (__builtin_expect(thread->number == 0, 0))
        blkin_thread_begin(thread);
    return thread;
}

/* Gives the calling thread's ids a new seed. Cold. */
__attribute__((cold)) void blkin_thread_seed(struct blkin_thread *thread);

extern __attribute__((visibility("hidden"))) const uint64_t blkin_id_factors[2];

/*
 * In one instruction, so that a signal handler's ids are never those of the code under it. On x86
 * that needs no lock, as no other thread is concerned; elsewhere an atomic addition.
 */
static inline uint64_t blkin_id_step(struct blkin_thread *thread)
{
    uint64_t step = blkin_id_factors[1];
#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)
    uint64_t before = step;

    __asm__("xaddq %0, %1" : "+r"(before), "+m"(thread->id_counter) : : "cc");
    return before + step;
#else
    return __atomic_add_fetch(&thread->id_counter, step, __ATOMIC_RELAXED);
#endif
}

/* 64 random bits; 0, which is no id: seed the thread and try again. */
static inline uint64_t blkin_id_try(struct blkin_thread *thread)
{
    uint64_t id = blkin_id_step(thread);

    id = (id ^ (id >> 32)) * blkin_id_factors[0];
    return id ^ (id >> 29);
}

/* 64 random bits, never 0. */
static inline uint64_t blkin_id_next(struct blkin_thread *thread)
{
    uint64_t id;

    while (__builtin_expect((id = blkin_id_try(thread)) == 0, 0))
        blkin_thread_seed(thread);
    return id;
}

/*
 * ---- a quiet process: one that is about to install a seccomp filter ----
 *
 * From then on, a system call that its filter does not expect may end it. So the library makes none
 * in a quiet process. The recorder's rings need none: they are mapped, and times come from pages
 * that the kernel maps.
 */

/* Never false again. */
extern __attribute__((visibility("hidden"))) bool blkin_is_quiet;

/* Gets what a quiet process needs, and makes it one. */
void blkin_quiet_begin(void);

/* In a child of fork(2), in its first thread. */
void blkin_quiet_after_fork(void);

/* The process's number, quiet or not. */
uint32_t blkin_pid(void);

/* Differs by process and call, as random numbers do. */
uint64_t blkin_quiet_seed(void);

/* ---- signals, while work of the library's must not be interrupted by a handler of the program's
 * ---- */

/*
 * Blocks the calling thread's signals; they come when pthread_sigmask() sets those of before again.
 * A signal of the thread's own doing (a fault, a system call that a filter traps) kills a thread
 * that blocks it.
 */
static inline void blkin_block_signals(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t others;

    (void)sigfillset(&others);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        (void)sigdelset(&others, own[i]);
    (void)pthread_sigmask(SIG_BLOCK, &others, before);
}

#endif

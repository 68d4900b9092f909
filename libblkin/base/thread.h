/*
 * The state of a thread: ids, the numbers of its events, current span. Also: quiet processes.
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
 * Ids: each thread has a counter, seeded with getrandom(2) at its first id and again after fork(2).
 * An id is a bijection of the counter. So a thread never repeats an id. Two threads can have the
 * same id only if their parts of the cycle of 2^64 counter values overlap.
 *
 * The increment is that of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014); one of its two mixing rounds is enough for ids. Ids are not secret:
 * the next one can be computed from any id.
 */
struct blkin_thread {
    uint64_t id_counter;
    uint64_t number;   /* 60 random bits that identify the thread; 0: it has not recorded */
    uint32_t sequence; /* of the last blkin:span or blkin:process event */
    uint32_t streamed_sequence; /* of the last streaming event */
    struct blkin_span *current;
    void *provider_slot; /* see struct blkin_provider */
    char digits[16];     /* the first eleven characters of packed texts: version and number */
};

/* The counter is not seeded. Then the next id is 0. So one test finds both this case and the id 0
 * of a seeded counter, which is invalid. */
#define BLKIN_ID_COUNTER_UNSEEDED (-BLKIN_ID_INCREMENT)

extern __attribute__((visibility("hidden"),
                      tls_model("initial-exec"))) _Thread_local struct blkin_thread blkin_thread;

typedef void blkin_thread_fn(void);

/* Prepares a thread at its first record: opens the library, allocates. NULL until process/ sets
 * it. (A constructor could not set the pointer in time, because a constructor of the program
 * may run before it.) */
extern __attribute__((visibility("hidden"))) blkin_thread_fn *blkin_thread_prepare;

__attribute__((cold)) void blkin_thread_begin(struct blkin_thread *thread);

/* Returns the calling thread's state, prepared for recording. May change the result of
 * blkin_provider(), so callers call this function first. */
static inline struct blkin_thread *blkin_this_thread(void)
{
    struct blkin_thread *thread = &blkin_thread;

    if (__builtin_expect(thread->number == 0, 0))
        blkin_thread_begin(thread);
    return thread;
}

/* Seeds the calling thread's ids. */
__attribute__((cold)) void blkin_thread_seed(struct blkin_thread *thread);

extern __attribute__((visibility("hidden"))) const uint64_t blkin_id_factors[2];

/* Advances the counter by a single instruction, so that a signal handler never gets the id of the
 * code that it interrupts. No lock prefix is needed, because only this thread uses the counter. */
static inline uint64_t blkin_id_advance(struct blkin_thread *thread)
{
    uint64_t increment = blkin_id_factors[1];
#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)
    uint64_t before = increment;

    __asm__("xaddq %0, %1" : "+r"(before), "+m"(thread->id_counter) : : "cc");
    return before + increment;
#else
    return __atomic_add_fetch(&thread->id_counter, increment, __ATOMIC_RELAXED);
#endif
}

/* Returns 64 random bits. 0 is no id: the caller then calls blkin_thread_seed() and tries again. */
static inline uint64_t blkin_id_try(struct blkin_thread *thread)
{
    uint64_t id = blkin_id_advance(thread);

    id = (id ^ (id >> 32)) * blkin_id_factors[0];
    return id ^ (id >> 29);
}

/* Returns 64 random bits, never 0. */
static inline uint64_t blkin_id_next(struct blkin_thread *thread)
{
    uint64_t id;

    while (__builtin_expect((id = blkin_id_try(thread)) == 0, 0))
        blkin_thread_seed(thread);
    return id;
}

/*
 * ---- a quiet process: one that is about to install a seccomp filter, or has installed it ----
 *
 * A system call that the filter does not expect may end the process: so the library makes none. The
 * agent's rings need none: they are mapped, and the clocks are read from pages that the kernel
 * maps.
 */

/* Once true, it stays true. */
extern __attribute__((visibility("hidden"))) bool blkin_is_quiet;

/* Makes this process quiet. */
void blkin_quiet_begin(void);

/* Called in a child of fork(2), in its first thread. */
void blkin_quiet_after_fork(void);

/* Returns the process id, in a quiet process too. */
uint32_t blkin_pid(void);

/* ---- blocked signals, for work that no signal handler may interrupt ---- */

/*
 * Blocks the calling thread's signals, until pthread_sigmask() restores `before`. Does not block
 * signals that the thread itself causes (a fault, a trapped system call): if they were blocked,
 * they would kill the process.
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

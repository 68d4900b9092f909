/*
 * Threads: their state, their end, their counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "thread.h"

#include "cause.h"
#include "interaction.h"
#include "key.h"
#include "libblkin/base/debug.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct preload_thread preload_thread;

static struct pool pool = {.size = sizeof(struct thread)};
static pthread_key_t exit_key;
static bool has_key;
static uint64_t counts[PRELOAD_COUNTS]; /* of threads that have ended, or have no state */

/* ---- the account ---- */

void preload_count(enum preload_count what)
{
    uint64_t *count = preload_thread.thread ? &preload_thread.thread->counts[what] : &counts[what];

    (void)__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

static void move_counts(struct thread *thread)
{
    for (int i = 0; i < PRELOAD_COUNTS; i++) {
        const uint64_t count = __atomic_exchange_n(&thread->counts[i], 0, __ATOMIC_RELAXED);

        if (count)
            (void)__atomic_fetch_add(&counts[i], count, __ATOMIC_RELAXED);
    }
}

void thread_print_counts(void)
{
    static const char *const names[PRELOAD_COUNTS] = {
        [PRELOAD_SERVED] = "served",
        [PRELOAD_CALLED] = "called",
        [PRELOAD_FILE_CALLS] = "files",
        [PRELOAD_FILE_NOBODYS] = "nobodys-files",
        [PRELOAD_UNANSWERED] = "unanswered",
        [PRELOAD_UNASKED] = "unasked",
        [PRELOAD_LATE] = "late",
        [PRELOAD_SHORT] = "short",
        [PRELOAD_OWNED] = "owner",
        [PRELOAD_ONLY] = "only",
        [PRELOAD_BY_CONTENT] = "prefix",
        [PRELOAD_GUESSED] = "guess",
        [PRELOAD_CAUSELESS] = "no-cause",
        [PRELOAD_KEYLESS] = "keyless",
        [PRELOAD_REPLACED] = "replaced",
        [PRELOAD_NO_MEMORY] = "no-memory",
    };
    char text[1024];
    size_t length;

    if (!secure_getenv("BLKIN_DEBUG"))
        return;
    thread_for_each(move_counts);
    length = (size_t)snprintf(text, sizeof(text),
                              "libblkin-preload: %s %d:", preload_service_name(), (int)getpid());
    for (int i = 0; i < PRELOAD_COUNTS && length < sizeof(text); i++)
        length +=
            (size_t)snprintf(text + length, sizeof(text) - length, " %s %llu", names[i],
                             (unsigned long long)__atomic_load_n(&counts[i], __ATOMIC_RELAXED));
    blkin_debug_say("%s", text);
}

/* ---- threads ---- */

/*
 * The end of the process: after its main function, before LTTng's own end. Registered late for
 * that, and not a destructor.
 */
static void at_exit(void)
{
    int saved_errno;

    if (preload_is_filtered)
        return;
    saved_errno = preload_enter();
    interaction_flush_all();
    thread_print_counts();
    preload_leave(saved_errno);
}

static void follow_exit(void)
{
    static bool is_followed;

    if (!__atomic_exchange_n(&is_followed, true, __ATOMIC_ACQ_REL))
        (void)atexit(at_exit);
}

struct thread *thread_get(void)
{
    struct thread *thread = preload_thread.thread;

    if (__builtin_expect(thread != NULL, 1))
        return thread;
    follow_exit();
    thread = pool_take(&pool);
    if (!thread)
        return NULL;
    memset((char *)thread + sizeof(thread->item), 0, sizeof(*thread) - sizeof(thread->item));
    if (getrandom(&thread->random, sizeof(thread->random), GRND_NONBLOCK) < 0)
        thread->random = preload_now_ns() ^ (uint64_t)getpid() << 40 ^ (uintptr_t)thread;
    if (has_key)
        (void)pthread_setspecific(exit_key, thread);
    preload_thread.thread = thread;
    return thread;
}

uint64_t thread_random(struct thread *thread)
{
    return key_finish(thread->random += UINT64_C(0x9e3779b97f4a7c15));
}

bool preload_was_left(const void *frame, const void *now)
{
    const int saved_errno = errno;
    stack_t stack;
    bool was_left;

    if (now < frame)
        return false;
    /* a handler on a stack of its own is within, wherever that is */
    was_left = sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_ONSTACK);
    errno = saved_errno;
    return was_left;
}

bool preload_is_still_inside(const void *now)
{
    if (!preload_was_left(preload_thread.inside_at, now))
        return true;
    if (preload_thread.thread)
        cause_after_jump(preload_thread.thread);
    preload_thread.is_inside = false;
    return false;
}

/* A destructor of the program's that runs after this one may make another one. */
static void at_thread_exit(void *state)
{
    struct thread *thread = state;
    const int saved_errno = preload_enter();

    if (!preload_is_filtered)
        interaction_thread_ends(thread);
    move_counts(thread);
    preload_thread.thread = NULL;
    if (pool_let_go(&thread->item))
        pool_give(&pool, thread);
    preload_leave(saved_errno);
}

void thread_for_each(void (*look)(struct thread *thread))
{
    struct thread *thread;

    for (uint32_t index = 0; (thread = pool_at(&pool, index)); index++) {
        if (!pool_try(&thread->item, pool_generation(&thread->item)))
            continue;
        look(thread);
        if (pool_let_go(&thread->item))
            pool_give(&pool, thread);
    }
}

void thread_forget_all(void)
{
    pool_forget(&pool);
    memset(counts, 0, sizeof(counts));
    preload_thread.thread = NULL;
    preload_thread.round = 0;
}

__attribute__((constructor(102))) static void follow_threads(void)
{
    has_key = pthread_key_create(&exit_key, at_thread_exit) == 0;
}

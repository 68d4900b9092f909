/* SPDX-License-Identifier: BSD-2-Clause */
#include "thread.h"

#include "libblkin/base/debug.h"
#include "pool.h"
#include "preload.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct thread {
    struct pool_item item;
    uint64_t counts[PRELOAD_COUNTS];
} __attribute__((aligned(64)));

static struct pool thread_pool = {.size = sizeof(struct thread)};
static __thread struct thread *thread_own __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_key;
static bool thread_has_key;
static uint64_t thread_counts[PRELOAD_COUNTS]; /* of ended threads, and of those without a state */

/* ---- counts ---- */

void preload_count(enum preload_count what)
{
    uint64_t *count = thread_own ? &thread_own->counts[what] : &thread_counts[what];

    (void)__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

static void thread_move_counts(void *object)
{
    struct thread *thread = object;

    for (int i = 0; i < PRELOAD_COUNTS; i++) {
        const uint64_t count = __atomic_exchange_n(&thread->counts[i], 0, __ATOMIC_RELAXED);

        if (count)
            (void)__atomic_fetch_add(&thread_counts[i], count, __ATOMIC_RELAXED);
    }
}

static void thread_print_counts(void)
{
#define NAME_OF_(which, name) name,
    static const char *const names[] = {PRELOAD_EACH_COUNT(NAME_OF_)};
    char text[1024];
    size_t length;

    if (!secure_getenv("BLKIN_DEBUG"))
        return;
    pool_for_each(&thread_pool, thread_move_counts);
    length = (size_t)snprintf(text, sizeof(text),
                              "libblkin-preload: %s %d:", preload_service_name(), (int)getpid());
    for (int i = 0; i < PRELOAD_COUNTS && length < sizeof(text); i++)
        length += (size_t)snprintf(
            text + length, sizeof(text) - length, " %s %llu", names[i],
            (unsigned long long)__atomic_load_n(&thread_counts[i], __ATOMIC_RELAXED));
    blkin_debug_say("%s", text);
}

/* ---- threads ---- */

void thread_end_process(void)
{
    PRELOAD_INSIDE(start_end_all(), preload_is_quiet() ? (void)0 : thread_print_counts());
}

/* This function must run after main() and before LTTng's end. So it is not a destructor: the first
 * call of thread_follow() registers it with atexit(3). */
static void thread_at_exit(void)
{
    if (!preload_is_filtered)
        thread_end_process();
}

static void thread_follow_exit(void)
{
    static bool is_followed;

    if (!__atomic_exchange_n(&is_followed, true, __ATOMIC_ACQ_REL))
        (void)atexit(thread_at_exit);
}

void thread_reserve(void)
{
    pool_reserve(&thread_pool);
}

bool thread_follow(void)
{
    struct thread *thread;

    if (thread_own)
        return true;
    thread_follow_exit();
    thread = pool_take(&thread_pool);
    if (!thread)
        return false;
    memset((char *)thread + sizeof(thread->item), 0, sizeof(*thread) - sizeof(thread->item));
    if (thread_has_key)
        (void)pthread_setspecific(thread_key, thread);
    pool_publish(&thread->item);
    thread_own = thread;
    return true;
}

bool thread_is_any_followed(void)
{
    return pool_at(&thread_pool, 0) != NULL;
}

/* A destructor of the program that runs later may make another struct thread. */
static void thread_at_end(void *state)
{
    struct thread *thread = state;
    const int saved_errno = errno;

    if (preload_thread.is_inside) /* left by siglongjmp(3), or by a handler that ends the thread */
        preload_repair();
    (void)preload_enter();
    start_end_thread();
    thread_move_counts(thread);
    thread_own = NULL;
    if (pool_release(&thread->item))
        pool_give(&thread_pool, thread);
    preload_leave(saved_errno);
}

void thread_forget_all(void)
{
    pool_forget(&thread_pool);
    memset(thread_counts, 0, sizeof(thread_counts));
    thread_own = NULL;
    if (thread_has_key) /* the parent's key values may not belong to this thread */
        (void)pthread_setspecific(thread_key, NULL);
}

__attribute__((constructor(102))) static void thread_start(void)
{
    thread_has_key = pthread_key_create(&thread_key, thread_at_end) == 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "thread.h"

#include "clock.h"
#include "tracepoints/format/digits.h"
#include "tracepoints/format/events.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

_Thread_local struct blkin_thread blkin_thread = {.id_counter = BLKIN_ID_COUNTER_UNSEEDED};

blkin_thread_fn *blkin_thread_prepare;

const uint64_t blkin_id_factors[2] = {BLKIN_ID_FACTOR, BLKIN_ID_INCREMENT};

/* Returns a seed that differs by process, thread and time: for kernels and sandboxes without
 * getrandom(2). */
static uint64_t thread_weak_seed(const void *address)
{
    return (blkin_monotonic_ns() << 20) ^ ((uint64_t)getpid() << 44) ^ (uintptr_t)address;
}

static uint64_t thread_quiet_seed;

/* Returns a seed that differs by process and call: for a quiet process. */
static uint64_t thread_next_quiet_seed(void)
{
    uint64_t seed =
        __atomic_add_fetch(&thread_quiet_seed, UINT64_C(0x9e3779b97f4a7c15), __ATOMIC_RELAXED);

    seed = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    seed = (seed ^ seed >> 27) * UINT64_C(0x94d049bb133111eb);
    return seed ^ seed >> 31;
}

void blkin_thread_seed(struct blkin_thread *thread)
{
    uint64_t *counter = &thread->id_counter;
    const int saved_errno = errno;

    /* getrandom() returns all 8 bytes or fails. With GRND_NONBLOCK it never waits, not even early
     * in boot. */
    if (blkin_is_quiet)
        *counter = thread_next_quiet_seed();
    else if (getrandom(counter, sizeof(*counter), GRND_NONBLOCK) != sizeof(*counter))
        *counter = thread_weak_seed(thread);
    errno = saved_errno;
}

void blkin_thread_begin(struct blkin_thread *thread)
{
    blkin_thread_fn *prepare = __atomic_load_n(&blkin_thread_prepare, __ATOMIC_RELAXED);
    const int saved_errno = errno;

    if (prepare)
        prepare();
    errno = saved_errno;
    blkin_thread_seed(thread); /* even if the counter has advanced: it may not have been seeded */
    thread->sequence = thread->streamed_sequence = 0;
    do
        thread->number = blkin_id_next(thread) >> (64 - BLKIN_THREAD_BITS);
    while (thread->number == 0);
    thread->digits[0] = '0' + BLKIN_FORMAT_VERSION;
    (void)blkin_put_length(blkin_put_word(thread->digits + 1, thread->number),
                           (size_t)(thread->number >> 48));
}

/* ---- quiet processes: replacements for getpid(2) and getrandom(2) ---- */

bool blkin_is_quiet;

static uint32_t thread_quiet_pid;

uint32_t blkin_pid(void)
{
    return blkin_is_quiet ? thread_quiet_pid : (uint32_t)getpid();
}

void blkin_quiet_begin(void)
{
    if (getrandom(&thread_quiet_seed, sizeof(thread_quiet_seed), GRND_NONBLOCK) !=
        sizeof(thread_quiet_seed))
        thread_quiet_seed = blkin_monotonic_ns() << 20;
    thread_quiet_seed ^= (uint64_t)getpid() << 40;
    thread_quiet_pid = (uint32_t)getpid();
    __atomic_store_n(&blkin_is_quiet, true, __ATOMIC_RELEASE);
}

/* Returns the thread's id, which is the pid in a child with one thread. glibc stores the id in a
 * locked mutex. */
static uint32_t thread_id_by_mutex(void)
{
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    uint32_t number;

    (void)pthread_mutex_lock(&mutex);
    number = (uint32_t)mutex.__data.__owner;
    (void)pthread_mutex_unlock(&mutex);
    return number;
}

void blkin_quiet_after_fork(void)
{
    if (!blkin_is_quiet)
        return;
    thread_quiet_pid = thread_id_by_mutex();
    thread_quiet_seed =
        thread_next_quiet_seed() ^ ((uint64_t)thread_quiet_pid << 32) ^ blkin_counter();
}

/*
 * What a quiet process has instead of getpid(2) and getrandom(2).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "quiet.h"

#include "clock.h"

#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

bool blkin_is_quiet;

static uint32_t quiet_pid;
static uint64_t quiet_seed;

uint32_t blkin_pid(void)
{
    return blkin_is_quiet ? quiet_pid : (uint32_t)getpid();
}

uint64_t blkin_quiet_seed(void)
{
    uint64_t seed = __atomic_add_fetch(&quiet_seed, UINT64_C(0x9e3779b97f4a7c15), __ATOMIC_RELAXED);

    seed = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    seed = (seed ^ seed >> 27) * UINT64_C(0x94d049bb133111eb);
    return seed ^ seed >> 31;
}

void blkin_quiet_begin(void)
{
    if (getrandom(&quiet_seed, sizeof(quiet_seed), GRND_NONBLOCK) != sizeof(quiet_seed))
        quiet_seed = blkin_monotonic_ns() << 20;
    quiet_seed ^= (uint64_t)getpid() << 40;
    quiet_pid = (uint32_t)getpid();
    __atomic_store_n(&blkin_is_quiet, true, __ATOMIC_RELEASE);
}

/* The thread's number, which is that of a child with one thread. The kernel has written it into the
 * thread's memory, and glibc writes it into a mutex that the thread owns. */
static uint32_t quiet_thread(void)
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
    quiet_pid = quiet_thread();
    quiet_seed = blkin_quiet_seed() ^ ((uint64_t)quiet_pid << 32) ^ blkin_counter();
}

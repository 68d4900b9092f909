/*
 * The conditions that send the begin and the end of a span to the slow path: periodic work is due
 * (see process/), spans are checked, or usage is measured.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PERIODIC_H
#define BLKIN_PERIODIC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __x86_64__
#define BLKIN_PAGE_SIZE 4096
#else
#define BLKIN_PAGE_SIZE 65536 /* the largest page size */
#endif

/* A page that the kernel clears in a child with memory of its own (MADV_WIPEONFORK). So the first
 * span of a child of _Fork(3) or clone(2) takes the slow path, which checks the mark. */
struct blkin_wiped {
    /* When the periodic work is due: a cached copy. BLKIN_PERIODIC_ALWAYS forces the slow path
     * while usage is measured or spans are checked. */
    uint64_t periodic_due_ticks;
    uint32_t process_mark; /* 0: no handler of forks has run in this child: see process.h */
} __attribute__((aligned(BLKIN_PAGE_SIZE)));

extern __attribute__((visibility("hidden"))) struct blkin_wiped blkin_wiped;

#define BLKIN_PERIODIC_ALWAYS UINT64_C(0)

/* BLKIN_DEBUG=check: the slow paths check spans. Set once, before the first span. */
extern __attribute__((visibility("hidden"))) bool blkin_checks;

/* Longer than any interval of periodic work, in ns and in ticks of a counter of up to 8 GHz. */
#define BLKIN_PERIODIC_HORIZON (UINT64_C(1) << 33)

/* Returns true also if the counter has stepped back, for example if a process was restored on
 * another host. */
static inline bool blkin_is_due(uint64_t now_ticks, uint64_t due_ticks)
{
    return now_ticks - due_ticks < -BLKIN_PERIODIC_HORIZON;
}

static inline bool blkin_periodic_is_due(uint64_t now_ticks)
{
    const uint64_t due = __atomic_load_n(&blkin_wiped.periodic_due_ticks, __ATOMIC_RELAXED);

    return __builtin_expect(blkin_is_due(now_ticks, due), 0);
}

/* The next periodic work is due at once, although its time has not come. */
extern __attribute__((visibility("hidden"))) bool blkin_periodic_is_early;

/* Makes the periodic work due. Async-signal-safe. */
static inline void blkin_periodic_hurry(void)
{
    __atomic_store_n(&blkin_periodic_is_early, true, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_wiped.periodic_due_ticks, BLKIN_PERIODIC_ALWAYS, __ATOMIC_RELAXED);
}

/* Returns true once after blkin_periodic_hurry(). */
static inline bool blkin_periodic_take_early(void)
{
    return __atomic_load_n(&blkin_periodic_is_early, __ATOMIC_RELAXED) &&
           __atomic_exchange_n(&blkin_periodic_is_early, false, __ATOMIC_ACQUIRE);
}

/* ---- the level of usage: set by the sampling policy, read at each begin of a span ---- */

#define BLKIN_USAGE_LEVEL_MAX 3

/* The lower two bits are the level. The upper bits count changes of the level, because readings of
 * different levels must not be subtracted. */
extern __attribute__((visibility("hidden"))) uint32_t blkin_usage_state;

/* BLKIN_WITHOUT_USAGE is for measuring the cost of this test: bench/without/blkin.c. */
static inline bool blkin_usage_is_on(void)
{
#ifdef BLKIN_WITHOUT_USAGE
    return false;
#else
    return __builtin_expect(
        (__atomic_load_n(&blkin_usage_state, __ATOMIC_RELAXED) & BLKIN_USAGE_LEVEL_MAX) != 0, 0);
#endif
}

/* Sets the level: 0 to BLKIN_USAGE_LEVEL_MAX. In a quiet process, the level becomes 0. One thread
 * at a time. */
void blkin_usage_set(unsigned level);

#endif

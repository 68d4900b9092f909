/*
 * What makes begins and ends of spans take their slow paths: the chores of once a second are due,
 * which is the work of process/; spans are checked; usage is measured.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CHORES_H
#define BLKIN_CHORES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __x86_64__
#define BLKIN_PAGE_SIZE 4096
#else
#define BLKIN_PAGE_SIZE 65536 /* the largest of all */
#endif

/*
 * A page that the kernel fills with zeros in a child that does not share this memory. So the first
 * span that a child of _Fork(3) or clone(2) begins or ends takes the slow path, which looks at the
 * mark: fast paths need not.
 */
struct blkin_wiped {
    /* Cached copy of the deadline; BLKIN_CHORES_ALWAYS forces the slow path while usage is measured
     * or spans are checked. */
    uint64_t chores_due_ticks;
    uint32_t process_mark; /* 0: no handler of forks has run here; see blkin_forked_() */
} __attribute__((aligned(BLKIN_PAGE_SIZE)));

extern __attribute__((visibility("hidden"))) struct blkin_wiped blkin_wiped;

#define BLKIN_CHORES_ALWAYS UINT64_C(0)

/* BLKIN_DEBUG=check: spans are checked, on the slow paths. Set once, before the first span. */
extern __attribute__((visibility("hidden"))) bool blkin_checks;

/* Longer than chores are ever put off, in ns and in ticks of up to 8 GHz. */
#define BLKIN_CHORES_HORIZON (UINT64_C(1) << 33)

/* Also where the counter has stepped back, as in a process that was restored on another host. */
static inline bool blkin_is_due(uint64_t now_ticks, uint64_t due_ticks)
{
    return now_ticks - due_ticks < -BLKIN_CHORES_HORIZON;
}

static inline bool blkin_chores_are_due(uint64_t now_ticks)
{
    const uint64_t due = __atomic_load_n(&blkin_wiped.chores_due_ticks, __ATOMIC_RELAXED);

    return __builtin_expect(blkin_is_due(now_ticks, due), 0);
}

/* ---- the level of usage, which a sampling policy sets and which begins of spans look at ---- */

#define BLKIN_USAGE_LEVEL_MAX 3

/* The level, in two bits, and above them how often it was changed: readings of two are no pair. */
extern __attribute__((visibility("hidden"))) uint32_t blkin_usage_state;

/* -DBLKIN_WITHOUT_USAGE: for the benchmark, what the test costs. */
static inline bool blkin_usage_is_on(void)
{
#ifdef BLKIN_WITHOUT_USAGE
    return false;
#else
    return __builtin_expect(
        (__atomic_load_n(&blkin_usage_state, __ATOMIC_RELAXED) & BLKIN_USAGE_LEVEL_MAX) != 0, 0);
#endif
}

/* Of 0 to BLKIN_USAGE_LEVEL_MAX. One thread at a time. */
void blkin_usage_set(unsigned level);

#endif

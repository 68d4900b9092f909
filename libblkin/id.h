/*
 * Trace and span ids: 64 random bits, never 0, from a generator that no two threads share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ID_H
#define BLKIN_ID_H

#include <stdint.h>

/*
 * The state is one counter per thread, seeded with getrandom(2) at the thread's first id and again
 * after fork(2). The id is a bijection of the counter (splitmix64: Steele, Lea, Flood, "Fast
 * splittable pseudorandom number generators", OOPSLA 2014), so one thread never repeats an id, and
 * two threads do only if their stretches of one 2^64 cycle overlap. Not for secrets: who sees one
 * id can compute the next.
 */
struct blkin_id_generator {
    uint64_t counter;
    unsigned fork_generation; /* 0: not seeded */
};

extern __attribute__((
    visibility("hidden"),
    tls_model("initial-exec"))) _Thread_local struct blkin_id_generator blkin_id_generator;
extern __attribute__((visibility("hidden"))) unsigned blkin_fork_generation;

/* Seeds the calling thread's generator. Cold. */
void blkin_id_seed(struct blkin_id_generator *generator);

static inline uint64_t blkin_id_new(void)
{
    struct blkin_id_generator *generator = &blkin_id_generator;
    uint64_t id;

    if (__builtin_expect(generator->fork_generation != blkin_fork_generation, 0))
        blkin_id_seed(generator);
    do {
        id = generator->counter += UINT64_C(0x9e3779b97f4a7c15);
        id = (id ^ (id >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        id = (id ^ (id >> 27)) * UINT64_C(0x94d049bb133111eb);
        id ^= id >> 31;
    } while (__builtin_expect(id == 0, 0));
    return id;
}

#endif

/*
 * Which back end gets the next request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "choice.h"

#include <time.h>

#define DOWN_MS 1000

static int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Of the back ends of which something is known: what the others are taken for. */
static uint64_t least_wait_ns(const struct choice *choice)
{
    uint64_t least = 0;

    for (size_t i = 0; i < choice->count; i++) {
        const uint64_t wait = atomic_load(&choice->back[i].wait_ns);

        if (wait && (!least || wait < least))
            least = wait;
    }
    return least ? least : 1;
}

/*
 * What a request would wait there: those that are under way come first. To take the one that was
 * fastest in the last second alone would send it all requests of the next one.
 */
static double cost(const struct choice *choice, const struct back_end *back, uint64_t least_ns)
{
    const double before = atomic_load(&back->under_way);
    const uint64_t wait = atomic_load(&back->wait_ns);

    switch (choice->policy) {
    case POLICY_WAIT:
        return (before + 1) * (double)(wait ? wait : least_ns);
    case POLICY_LEAST:
        return before;
    default:
        return 0;
    }
}

size_t choice_next(struct choice *choice)
{
    const uint64_t turn = atomic_fetch_add(&choice->turn, 1);
    const uint64_t least_ns = least_wait_ns(choice);
    const int64_t now_ms = clock_ms();
    size_t best = (size_t)(turn % choice->count);
    double least = 0;
    bool found = false;

    for (size_t i = 0; i < choice->count; i++) { /* of equal ones, each in its turn */
        const size_t number = (size_t)((turn + i) % choice->count);
        const double wait = cost(choice, &choice->back[number], least_ns);

        if (atomic_load(&choice->back[number].down_until_ms) > now_ms || (found && wait >= least))
            continue;
        found = true;
        best = number;
        least = wait;
    }
    atomic_fetch_add(&choice->back[best].requests, 1);
    atomic_fetch_add(&choice->back[best].under_way, 1);
    return best;
}

void choice_done(struct choice *choice, size_t number)
{
    atomic_fetch_sub(&choice->back[number].under_way, 1);
}

void choice_failed(struct choice *choice, size_t number)
{
    atomic_store(&choice->back[number].down_until_ms, clock_ms() + DOWN_MS);
    atomic_fetch_sub(&choice->back[number].requests, 1);
    choice_done(choice, number);
}

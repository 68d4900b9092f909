/*
 * A ring of loss intervals. They come in no particular order, and there are few: they are searched
 * one by one, and only for spans that end soon after a loss.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "loss.h"

#include <stdlib.h>

struct loss_ring {
    unsigned next;
    unsigned count;
    bool has_forgotten;
    int64_t forgotten_begin_ns;
    int64_t forgotten_end_ns;
    struct loss_interval intervals[LOSSES_MAX];
};

void losses_init(struct losses *losses)
{
    *losses = (struct losses){.last_end_ns = INT64_MIN};
}

void losses_destroy(struct losses *losses)
{
    free(losses->ring);
}

static void forget(struct loss_ring *ring, const struct loss_interval *interval)
{
    if (!ring->has_forgotten || interval->begin_ns < ring->forgotten_begin_ns)
        ring->forgotten_begin_ns = interval->begin_ns;
    if (!ring->has_forgotten || interval->end_ns > ring->forgotten_end_ns)
        ring->forgotten_end_ns = interval->end_ns;
    ring->has_forgotten = true;
}

bool losses_add(struct losses *losses, const struct loss_interval *interval)
{
    struct loss_interval *place;

    if (!losses->ring)
        losses->ring = calloc(1, sizeof(*losses->ring));
    if (!losses->ring)
        return false;
    place = &losses->ring->intervals[losses->ring->next];
    if (losses->ring->count == LOSSES_MAX)
        forget(losses->ring, place);
    else
        losses->ring->count++;
    losses->ring->next = (losses->ring->next + 1) % LOSSES_MAX;
    *place = *interval;
    if (place->end_ns < place->begin_ns)
        place->end_ns = place->begin_ns;
    if (place->end_ns > losses->last_end_ns)
        losses->last_end_ns = place->end_ns;
    return true;
}

/* A trace may claim any number. */
static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

bool losses_overlap(const struct losses *losses, int64_t start_ns, int64_t end_ns, int64_t pid,
                    struct loss_sum *sum)
{
    const struct loss_ring *ring = losses->ring;
    bool found;

    *sum = (struct loss_sum){.packets = 0};
    if (!ring)
        return false;
    found = sum->is_more = ring->has_forgotten && ring->forgotten_begin_ns <= end_ns &&
                           ring->forgotten_end_ns >= start_ns;
    for (unsigned i = 0; i < ring->count; i++) {
        const struct loss_interval *interval = &ring->intervals[i];

        if (interval->begin_ns > end_ns || interval->end_ns < start_ns ||
            (interval->pid && pid && interval->pid != pid))
            continue;
        sum->pid = !found || sum->pid == interval->pid ? interval->pid : 0;
        found = true;
        sum->events = add(sum->events, interval->events);
        sum->packets = add(sum->packets, interval->packets);
    }
    return found;
}

/*
 * A ring of loss intervals. Losses are few and in no order. Only spans that end soon after a loss
 * search them, one by one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "loss.h"

#include <stdlib.h>

struct loss_ring {
    unsigned next;
    unsigned count;
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

static void forget(struct losses *losses, const struct loss_interval *interval)
{
    if (!losses->has_forgotten || interval->begin_ns < losses->forgotten_begin_ns)
        losses->forgotten_begin_ns = interval->begin_ns;
    if (!losses->has_forgotten || interval->end_ns > losses->forgotten_end_ns)
        losses->forgotten_end_ns = interval->end_ns;
    losses->has_forgotten = true;
}

static void keep(struct losses *losses, const struct loss_interval *interval)
{
    struct loss_ring *ring = losses->ring;
    struct loss_interval *slot = &ring->intervals[ring->next];

    if (ring->count == LOSSES_MAX)
        forget(losses, slot);
    else
        ring->count++;
    ring->next = (ring->next + 1) % LOSSES_MAX;
    *slot = *interval;
}

bool losses_add(struct losses *losses, const struct loss_interval *added)
{
    struct loss_interval interval = *added;

    if (interval.end_ns < interval.begin_ns)
        interval.end_ns = interval.begin_ns;
    if (interval.end_ns > losses->last_end_ns)
        losses->last_end_ns = interval.end_ns;
    if (!losses->ring)
        losses->ring = calloc(1, sizeof(*losses->ring));
    if (losses->ring)
        keep(losses, &interval);
    else
        forget(losses, &interval);
    return losses->ring != NULL;
}

/* Saturates: a trace may contain any number. */
static uint64_t loss_add_up(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

bool losses_overlap(const struct losses *losses, int64_t start_ns, int64_t end_ns, uint64_t process,
                    struct loss_sum *sum)
{
    const struct loss_ring *ring = losses->ring;
    bool found;

    *sum = (struct loss_sum){.packets = 0};
    found = sum->is_more = losses->has_forgotten && losses->forgotten_begin_ns <= end_ns &&
                           losses->forgotten_end_ns >= start_ns;
    for (unsigned i = 0; ring && i < ring->count; i++) {
        const struct loss_interval *interval = &ring->intervals[i];

        if (interval->begin_ns > end_ns || interval->end_ns < start_ns ||
            (interval->process && process && interval->process != process))
            continue;
        sum->process = !found || sum->process == interval->process ? interval->process : 0;
        found = true;
        sum->events = loss_add_up(sum->events, interval->events);
        sum->packets = loss_add_up(sum->packets, interval->packets);
        sum->is_more |= !interval->events && !interval->packets;
    }
    return found;
}

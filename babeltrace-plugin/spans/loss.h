/*
 * Recent losses, as intervals of trace time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_LOSS_H
#define BLKIN_CORE_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loss_interval {
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t process; /* origin_process(); 0: any */
    uint64_t events;
    uint64_t packets; /* of unknown content; this and events 0: unknown */
};

/* The last LOSSES_MAX intervals are stored. Of older intervals only the time from the first to the
 * last is known: then a sum is a lower bound. */
#define LOSSES_MAX 64

struct losses {
    int64_t last_end_ns; /* of all stored intervals: a later span is not touched */
    struct loss_ring *ring;
    bool has_forgotten;
    int64_t forgotten_begin_ns;
    int64_t forgotten_end_ns;
};

/* The losses during a span. */
struct loss_sum {
    uint64_t events;
    uint64_t packets;
    uint64_t process; /* 0: two or more, or not known */
    bool is_more;     /* other losses of unknown size come on top */
};

void losses_init(struct losses *losses);
void losses_destroy(struct losses *losses);

/* Returns false when out of memory: then the loss is forgotten. */
bool losses_add(struct losses *losses, const struct loss_interval *interval);

/* Sums the losses that overlap a span of the process (0: not known). Returns false if there are
 * none. */
bool losses_overlap(const struct losses *losses, int64_t start_ns, int64_t end_ns, uint64_t process,
                    struct loss_sum *sum);

/* A cheap test for every span. */
static inline bool losses_may_touch(const struct losses *losses, int64_t start_ns)
{
    return start_ns <= losses->last_end_ns;
}

#endif

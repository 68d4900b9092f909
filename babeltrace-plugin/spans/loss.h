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
    uint64_t process; /* origin_process(); 0: of any */
    uint64_t events;
    uint64_t packets; /* of unknown content; this and events 0: not known how much */
};

/*
 * The last LOSSES_MAX intervals are kept one by one. Of those before, only the time from the first
 * to the last: what is summed up then counts as a lower bound.
 */
#define LOSSES_MAX 64

struct losses {
    int64_t last_end_ns; /* of all that are kept: a span that starts later is untouched */
    struct loss_ring *ring;
    bool has_forgotten;
    int64_t forgotten_begin_ns;
    int64_t forgotten_end_ns;
};

/* What was lost in a span's time. */
struct loss_sum {
    uint64_t events;
    uint64_t packets;
    uint64_t process; /* 0: of more than one, or not known */
    bool is_more;     /* others, not known how much, come on top */
};

void losses_init(struct losses *losses);
void losses_destroy(struct losses *losses);

/* Returns false when out of memory: then it is forgotten at once. */
bool losses_add(struct losses *losses, const struct loss_interval *interval);

/* Sums up what overlaps the times of a span of the process (0: not known). False: nothing does. */
bool losses_overlap(const struct losses *losses, int64_t start_ns, int64_t end_ns, uint64_t process,
                    struct loss_sum *sum);

/* Cheap enough for every span: most never get further. */
static inline bool losses_may_touch(const struct losses *losses, int64_t start_ns)
{
    return start_ns <= losses->last_end_ns;
}

#endif

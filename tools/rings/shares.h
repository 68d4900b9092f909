/*
 * How large the memories of users may be: shares, and not first come.
 *
 * A user pays for his own memory, and for those of his subordinate users (users.h). Most of the
 * room is divided so that nobody gets more than he wants, and nobody less than another one who
 * wants more. The rest is for users that come.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_SHARES_H
#define BLKIN_TOOLS_RINGS_SHARES_H

#include "held.h"

struct share {
    uint32_t payer;
    unsigned memories; /* that programs get now */
    uint64_t bytes;    /* of these */
    uint64_t wants;    /* as many as they would have if there were room */
};

struct shares {
    struct share *list; /* in the order of payers */
    unsigned count;
    uint64_t level; /* the most bytes for a payer */
};

/* A small memory, which is made at once while a program waits. */
struct memory_size shares_first_size(const struct memory_size *full);

/* Of these memories, as the options say. Returns false when out of memory. */
bool shares_divide(struct shares *shares, const struct held *all,
                   const struct holder_options *options);
void shares_free(struct shares *shares);

/* What is left for other users than those that have memories. */
uint64_t shares_reserve(const struct holder_options *options);

/*
 * May the payer have one more of this size? The first one needs a place only; for more of them all
 * have to be within the level, and within a quarter of the places.
 */
bool shares_have_place(const struct shares *shares, uint32_t payer, uint64_t bytes,
                       const struct holder_options *options);

/* The size that the memory is to have. Its event_bytes are 0 if the payer has one too many. */
struct memory_size shares_size(const struct shares *shares, const struct held *held,
                               const struct holder_options *options);

#endif

/*
 * Divides the memory for rings among users by max-min fairness, not first come, first served.
 *
 * A payer is a user with its subordinate users (users.h). No payer gets more than it wants. A payer
 * that gets less than it wants gets as much as the payer with the most. A reserve is for new users.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_SHARES_H
#define BLKIN_TOOLS_RINGS_SHARES_H

#include "held.h"

struct share {
    uint32_t payer;
    unsigned memories; /* the number of memories that the agent has not left */
    uint64_t bytes;    /* of these memories */
    uint64_t wants;    /* the bytes of these memories if there were no limit */
};

struct shares {
    struct share *list; /* sorted by payer */
    unsigned count;
    uint64_t level; /* the most bytes for a payer */
};

/* Returns the size of a user's first memory, which is small, as a program waits for it. */
struct memory_size shares_first_size(const struct memory_size *full);

/* Computes the shares of these memories. Returns false when out of memory. */
bool shares_divide(struct shares *shares, const struct held *all,
                   const struct holder_options *options);
void shares_free(struct shares *shares);

/* Returns the bytes that are reserved for new users. */
uint64_t shares_reserve(const struct holder_options *options);

/* Returns true if the payer may have one more memory of this size. The first memory is always
 * granted. With further ones, the payer must stay within an equal share of the bytes, and have at
 * most max_users / 4 memories. */
bool shares_allow(const struct shares *shares, uint32_t payer, uint64_t bytes,
                  const struct holder_options *options);

/* Returns the size that the memory should have. event_bytes is 0 if the payer has too many memories
 * for its share. */
struct memory_size shares_size(const struct shares *shares, const struct held *held,
                               const struct holder_options *options);

#endif

/*
 * Divides the memory for rings among users by max-min fairness, not first come, first served.
 *
 * A payer is a user with the subordinate users (users.h). No payer gets more than it wants, and no
 * payer gets less than another one that wants more. A reserve is for new users.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_SHARES_H
#define BLKIN_TOOLS_RINGS_SHARES_H

#include "held.h"

struct share {
    uint32_t payer;
    unsigned memories; /* memories that are not left */
    uint64_t bytes;    /* of these memories */
    uint64_t wants;    /* bytes that they would have without a limit */
};

struct shares {
    struct share *list; /* sorted by payer */
    unsigned count;
    uint64_t level; /* most bytes for a payer */
};

/* The size of a first memory: small, as a program waits for it. */
struct memory_size shares_first_size(const struct memory_size *full);

/* Computes the shares of these memories. Returns false when out of memory. */
bool shares_divide(struct shares *shares, const struct held *all,
                   const struct holder_options *options);
void shares_free(struct shares *shares);

/* Bytes that are reserved for new users. */
uint64_t shares_reserve(const struct holder_options *options);

/*
 * True if the payer may have one more memory of this size. The first one is always granted. With
 * more, the payer must stay within an equal share and a quarter of max_users.
 */
bool shares_have_place(const struct shares *shares, uint32_t payer, uint64_t bytes,
                       const struct holder_options *options);

/* The size that the memory should have. event_bytes is 0 if the payer has a memory too many. */
struct memory_size shares_size(const struct shares *shares, const struct held *held,
                               const struct holder_options *options);

#endif

/*
 * The cap on what all recorders together ask each other for: hub-traces-per-s.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CAP_H
#define BLKIN_TOOLS_CAP_H

#include "tools/exchange/seen.h"

#include <jansson.h>
#include <stdint.h>

/*
 * One host's part of the cap: while less than half of the allowance is left, a host may ask for its
 * part of the rate only. So a host that asks for everything cannot use up what the others need, and
 * has nearly all of the cap while they ask for little.
 */
struct cap_share {
    double allowance; /* as in struct cap */
    int64_t allowed_ms;
    unsigned shares; /* so many hosts share the cap */
};

struct cap {
    int64_t traces_per_s;
    double allowance;   /* traces that may be asked for now */
    int64_t allowed_ms; /* as of then */
    struct seen asked;  /* traces: to ask for one again costs nothing */
};

void cap_open(struct cap *cap, int64_t traces_per_s, int64_t now_ms);
void cap_close(struct cap *cap);

/* Fills the share up, from its last time until now; one that is all 0 begins full. */
void cap_refill_share(const struct cap *cap, struct cap_share *share, unsigned shares,
                      int64_t now_ms);

/*
 * share: that of the host that asks. What it lets pass of a message "keep" (exchange.h): the
 * message itself, another one with fewer traces, or NULL; the reference is the caller's. *dropped:
 * NULL, or a new array of the ids that do not pass, which is empty where a request for all of the
 * last seconds does not.
 */
json_t *cap_part(struct cap *cap, struct cap_share *share, const json_t *message, int64_t now_ms,
                 json_t **dropped);

#endif

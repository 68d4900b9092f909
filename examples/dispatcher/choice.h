/*
 * Which back end gets the next request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXAMPLES_DISPATCHER_CHOICE_H_
#define EXAMPLES_DISPATCHER_CHOICE_H_

#include "../net.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BACK_ENDS_MAX 32

enum policy {
    POLICY_WAIT,  /* where a request waits least, as the traces tell */
    POLICY_LEAST, /* where the fewest requests are under way */
    POLICY_TURN,  /* one after the other, blindly */
};

/* All threads use them; none waits for another. */
struct back_end {
    char name[64]; /* the service in the traces */
    struct net_address address;
    _Atomic uint64_t requests;
    _Atomic uint32_t under_way;
    _Atomic uint64_t wait_ns; /* of a request there, as last told; 0: nobody knows */
    _Atomic int64_t down_until_ms;
};

struct choice {
    enum policy policy;
    struct back_end back[BACK_ENDS_MAX];
    size_t count;
    _Atomic uint64_t turn;
};

/* Returns the number of the back end, whose request is under way from then on. */
size_t choice_next(struct choice *choice);

/* It has begun to answer, or never will. */
void choice_done(struct choice *choice, size_t number);

/* It cannot be reached: it is left alone for a second. */
void choice_failed(struct choice *choice, size_t number);

#endif

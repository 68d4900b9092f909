/*
 * The counts of begins and ends of spans by rules.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULES_COUNTS_H
#define BLKIN_RULES_COUNTS_H

#include <stdint.h>

struct rule_counts {
    uint64_t begins;      /* with events that are a whole span; the sum of the next members */
    uint64_t spans;       /* made spans */
    uint64_t shorter;     /* shorter than `least` */
    uint64_t begun_again; /* the same key began again */
    uint64_t dropped;     /* from a thread's stack: a span around them ended */
    uint64_t unmatched;   /* no end in time, nor before the trace's end; or evicted */
    uint64_t unusable;    /* no memory, or an impossible duration */
    uint64_t open;        /* current number */
    /* not in the sum */
    uint64_t ends_unmatched;
    uint64_t stages_unmatched; /* stages and marks without a begin */
    uint64_t keyless;          /* events without a field of their key */
    uint64_t evicted;          /* of the unmatched: to make room */
    uint64_t stages;           /* spans made of stages */
    uint64_t with_parent;      /* of the spans that asked for a parent */
    uint64_t without_parent;
    uint64_t no_room;    /* values, stages, lookups: no memory, or at a limit */
    uint64_t open_bytes; /* current size */
};

#endif

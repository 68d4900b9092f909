/*
 * What has become of the begins and ends that rules name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULES_COUNTS_H
#define BLKIN_RULES_COUNTS_H

#include <stdint.h>

struct rule_counts {
    uint64_t begins;      /* with those of events that are all of a span; the next ones add up */
    uint64_t spans;       /* made */
    uint64_t shorter;     /* than `least` */
    uint64_t begun_again; /* the same key began once more */
    uint64_t dropped;     /* from a thread's stack: what was around them ended */
    uint64_t unmatched;   /* no end came in time, or before the trace's end, or they made room */
    uint64_t unusable;    /* no memory, or a duration that makes no sense */
    uint64_t open;        /* now */
    /* in no sum */
    uint64_t ends_unmatched;
    uint64_t stages_unmatched; /* stages and marks without a begin */
    uint64_t keyless;          /* events without a field of their key */
    uint64_t evicted;          /* of those unmatched: to make room */
    uint64_t stages;           /* spans made of stages */
    uint64_t with_parent;      /* of those that asked for a parent */
    uint64_t without_parent;
    uint64_t no_room;    /* values, stages, lookups: no memory, or a bound */
    uint64_t open_bytes; /* now */
};

#endif

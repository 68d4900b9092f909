/*
 * What all workers have counted, to a collector of OpenTelemetry's: cumulative metrics, so that a
 * request that has failed is no loss.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_PUSH_H
#define BLKIN_TOOLS_WORK_PUSH_H

#include "job.h"
#include "tools/config/config.h"
#include "tools/merged/merged.h"

struct push_result {
    uint64_t requests;
    bool is_taken;
    char problem[512]; /* "": none, or what the collector had to say */
};

struct push {
    struct loop *loop;
    const struct config *config;
    const struct merged *merged; /* what is sent, as it is at that time */
    uint64_t requests, failed;   /* rounds, the latter */
    bool has_worked;             /* the last one has */
    char problem[512];           /* of the last one; "": none */
    /* its own */
    struct timer timer;
    struct job job;
    struct push_message *messages; /* of the round, as they were when it began */
    struct push_result result;     /* and what became of them */
};

/* When the members above are set, but counters. Sends by itself from now on; the URL is the key
 * otlp-metrics. Returns false with error set. */
bool push_open(struct push *push, struct error *error);

/* Waits for the round that is under way. */
void push_close(struct push *push);

#endif

/*
 * Sending a run of spans: attempts until the collector answers, the spool takes it, or nobody waits
 * any longer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_ATTEMPTS_H
#define BLKIN_OUTPUT_ATTEMPTS_H

#include "courier.h"

/* The spans of a body from first up to, not including, end. */
struct run {
    struct body *body;
    uint32_t first;
    uint32_t end;
    bool is_half;
    bool has_partition; /* all spans are of this partition, of so many */
    uint32_t partition, partitions;
};

static inline uint32_t run_length(struct run run)
{
    return run.end - run.first;
}

enum sent {
    SENT_ANSWERED, /* courier->reply has the final answer */
    SENT_ASIDE,    /* the run is in the spool */
    SENT_GIVEN_UP,
};

/* answer: to a first attempt that was made already; NULL: there was none. */
enum sent run_send(struct courier *courier, struct run run, const struct reply *answer);

void run_frame(struct courier *courier, struct run run, struct framed *framed);

/* Puts the run into the spool. Returns false, with error set, if the spool does not take it. */
bool run_put(struct courier *courier, struct run run, struct error *error);

/* Puts the run into the spool if the spool has spans to send first. Returns false if the caller has
 * to send the run. */
bool run_put_behind(struct courier *courier, struct run run);

/* So many spans of the batch or record get this outcome. */
void courier_settle(struct courier *courier, enum outcome outcome, uint32_t spans);

/* How long this batch or record may be tried. */
struct outbox_patience courier_patience(struct courier *courier);

#endif

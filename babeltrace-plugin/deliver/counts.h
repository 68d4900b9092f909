/*
 * The account of spans: each finished span has one outcome, or waits for it. A transport's answer
 * to a batch is an outcome of all its spans, too, or OUTCOME_AGAIN.
 *
 *     spans = the sum of outcome[] + waiting + held, always
 *
 * A span that was put into the spool has that outcome here. The spool, which may have spans of an
 * earlier sink, has an account of its own:
 *
 *     spans = found + put in = the sum of outcome[] + expired + corrupt + waiting, always
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_COUNTS_H
#define BLKIN_OUTPUT_COUNTS_H

#include <stdint.h>

enum outcome {
    OUTCOME_ACCEPTED,           /* by the collector, or written to the file */
    OUTCOME_REFUSED,            /* the collector refused its batch, and a retry is of no use */
    OUTCOME_INVALID,            /* the collector refused this very span (400) */
    OUTCOME_TOO_LARGE,          /* the same (413) */
    OUTCOME_POSSIBLY_PERSISTED, /* Kafka may have it ("possibly persisted"), so no retry */
    OUTCOME_UNDELIVERED,        /* given up: the collector could not be reached in time */
    OUTCOME_DROPPED,            /* the queue was full */
    OUTCOME_NO_MEMORY,          /* to keep or to encode it */
    OUTCOME_SKIPPED,            /* an earlier run has delivered it: stages/chain.h */
    OUTCOME_SAMPLED_OUT,        /* with its trace, by tail sampling: stages/tail_stage.h */
    OUTCOME_SPOOLED,            /* it is on disk, and from now on in the spool's account */
    OUTCOMES,
    OUTCOME_AGAIN = OUTCOMES /* none yet: it may be sent again */
};

struct spool_counts {
    uint64_t in_use;            /* 1: there is a spool */
    uint64_t spans;             /* found, and put in since */
    uint64_t found;             /* an earlier sink left them */
    uint64_t outcome[OUTCOMES]; /* dropped: the spool was full */
    uint64_t expired;           /* were too old */
    uint64_t corrupt;           /* in records that have a wrong checksum, or end too early */
    uint64_t unknown; /* outcome unknown, as their reader was killed; 0 in the spool's own counts */
    uint64_t waiting;
    uint64_t unreadable; /* pieces of files that are no record, of an unknown number of spans */
    uint64_t errors;     /* records that the disk did not take: their spans stayed in the queue */
    uint64_t bytes;      /* on disk */
    uint64_t lost_own;   /* spans that this sink put in, and that are lost */
};

struct exporter_counts {
    uint64_t spans;
    uint64_t outcome[OUTCOMES];
    uint64_t waiting;
    uint64_t held;        /* by the stages before the exporter: the account's, 0 here */
    uint64_t cut;         /* spans without some of their parts, see encoder.h; counted above, too */
    uint64_t unsure;      /* accepted by a file whose end failed, so maybe not in the file */
    uint64_t requests;    /* attempts to send */
    uint64_t retries;     /* requests after a failure */
    uint64_t tap_dropped; /* not shown to a reader of the tap */
    struct spool_counts spool;
};

#endif

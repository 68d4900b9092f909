/*
 * The counts of spans. Each finished span has one outcome, or waits for its outcome. A transport's
 * answer to a batch is the outcome of all its spans, or OUTCOME_AGAIN.
 *
 *     spans = the sum of outcome[] + waiting + held, always
 *
 * A span that went into the spool is counted as OUTCOME_SPOOLED here. The spool, which may have
 * spans of an earlier sink, has its own counts:
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
    OUTCOME_REFUSED,            /* the collector refused the batch, and a retry is useless */
    OUTCOME_INVALID,            /* the collector refused this very span (400) */
    OUTCOME_TOO_LARGE,          /* same (413) */
    OUTCOME_POSSIBLY_PERSISTED, /* Kafka's report for a message that may be in the log, so no retry
                                 */
    OUTCOME_UNDELIVERED,        /* given up: the collector was away for too long */
    OUTCOME_DROPPED,            /* the queue was full */
    OUTCOME_NO_MEMORY,          /* no memory to copy or to encode the span */
    OUTCOME_SKIPPED,            /* an earlier run has delivered the span: stages/chain.h */
    OUTCOME_SAMPLED_OUT,        /* with its trace, by tail sampling: stages/tail_stage.h */
    OUTCOME_SPOOLED,            /* on disk; the spool's counts have the span from now on */
    OUTCOMES,
    OUTCOME_AGAIN = OUTCOMES /* none yet: the span may be sent again */
};

struct spool_counts {
    uint64_t in_use;            /* 1: there is a spool */
    uint64_t spans;             /* found, and put in later */
    uint64_t found;             /* left by an earlier sink */
    uint64_t outcome[OUTCOMES]; /* dropped: the spool was full */
    uint64_t expired;           /* too old */
    uint64_t corrupt;           /* in records that have a wrong checksum, or end too early */
    uint64_t
        unknown; /* outcome unknown, because their reader was killed; 0 in the spool's own counts */
    uint64_t waiting;
    uint64_t unreadable; /* pieces of files that are no record, of an unknown number of spans */
    uint64_t errors;     /* records that the disk did not take: their spans stay in the queue */
    uint64_t bytes;      /* on disk */
    uint64_t lost_own;   /* spans of this sink that are lost */
};

struct exporter_counts {
    uint64_t spans;
    uint64_t outcome[OUTCOMES];
    uint64_t waiting;
    uint64_t held;     /* in the stages before the exporter; set by the account, 0 here */
    uint64_t cut;      /* spans with parts left out, see encoder.h; also counted above */
    uint64_t unsure;   /* accepted by a file whose end failed, so perhaps not in the file */
    uint64_t requests; /* attempts to send */
    uint64_t retries;  /* requests after a failure */
    struct spool_counts spool;
};

#endif

/*
 * A checkpoint: what makes that a trace which is read a second time is not sent a second time, and
 * that a recording in several traces gives the spans of one. doc/delivery.md tells what it is for.
 *
 * All functions are the graph's thread's, but for checkpoint_settle().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CHECKPOINT_H
#define BLKIN_CHECKPOINT_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/deliver/counts.h"
#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/spans/hold.h"
#include "babeltrace-plugin/stages/chain.h"

struct checkpoint_options {
    const char *path;
    const char *trace; /* its name; NULL: a live session is read, or what is no part of another */
    bool flush;        /* nothing follows on this trace: what is open at its end is sent */
    bool is_again;     /* the live session is read from its beginning: nothing is missed */
    int64_t period_ms; /* for a live session: how often it is written */
};

struct checkpoint_counts {
    uint64_t spans_taken_over; /* open ones, that an earlier trace has begun */
    uint64_t events_held;      /* that wait, and will be the next trace's: see hold.h */
    uint64_t errors;           /* progress, or a live session's state, could not be written */
};

/* A message for the operator, from any thread. */
struct checkpoint_callbacks {
    void (*warn)(void *context, const char *message);
    void *context;
};

struct checkpoint;

/*
 * Restores into the assembler, and of a recorded trace into the stages, all new ones, which must
 * live longer. NULL with error set.
 */
struct checkpoint *checkpoint_open(const struct checkpoint_options *options,
                                   const struct checkpoint_callbacks *callbacks,
                                   struct assembler *assembler, struct chain *chain,
                                   struct error *error);
void checkpoint_free(struct checkpoint *checkpoint);

struct checkpoint_counts checkpoint_counts(const struct checkpoint *checkpoint);

/* ---- of a recorded trace --------------------------------------------------------------------- */

/* Was all of this trace delivered before? Then there is nothing to do. */
bool checkpoint_is_done(const struct checkpoint *checkpoint);

/* Through which events go to the assembler; NULL for a live session. */
struct hold *checkpoint_hold(struct checkpoint *checkpoint);

/* A stage_skip_fn, for each span, in order: returns whether an earlier run has delivered it. */
bool checkpoint_skips(void *checkpoint, struct span *span);

/* From any thread, after each batch: so many of the spans that were not skipped have their outcome.
 */
void checkpoint_settle(struct checkpoint *checkpoint, const struct exporter_counts *counts,
                       uint64_t settled);

/* The spans did not come as they did in an earlier run: error is set. It is no use to go on. */
bool checkpoint_has_failed(const struct checkpoint *checkpoint, struct error *error);

/* Of what an earlier run has sent nothing is to be skipped in the next one. */
void checkpoint_begin_anew(struct checkpoint *checkpoint);

/* All of the trace was read. is_gone: there was none, as who gives one up has it. */
void checkpoint_end_trace(struct checkpoint *checkpoint, int64_t end_ns, bool is_gone);

/* All spans have their outcome, and the sender has ended: the trace is done. */
bool checkpoint_finish(struct checkpoint *checkpoint, struct error *error);

/* ---- of a live session ----------------------------------------------------------------------- */

bool checkpoint_is_due(const struct checkpoint *checkpoint);

/* After a batch of messages: writes the state, if it is time to. */
void checkpoint_keep(struct checkpoint *checkpoint, bool at_once);

#endif

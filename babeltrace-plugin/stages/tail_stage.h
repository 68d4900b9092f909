/*
 * Tail sampling as a stage: holds spans until their trace is complete, then passes on or leaves out
 * the whole trace according to the rules (model/tail.h).
 *
 * A trace is complete when no span of it has arrived for wait_ms of trace time. If held spans
 * exceed max_bytes, or a trace has 10000 spans, the stage decides earlier. A later span follows the
 * decision while the stage remembers the decision.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STAGES_TAIL_STAGE_H
#define BLKIN_STAGES_TAIL_STAGE_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/spans/assembler.h"
#include "chain.h"

struct tail_options {
    const char *rules; /* a file, read again when it changes */
    int64_t wait_ms;
    int64_t max_bytes;
    struct assembler *assembler; /* adds the tag blkin.sampled to a kept trace */
    void (*warn)(void *context, const char *message); /* reports a change of the file */
    void *context;
};

struct tail_counts {
    uint64_t traces_kept;
    uint64_t traces_sampled_out;
    uint64_t traces_early; /* of both: decided before they were complete */
    uint64_t spans_late;   /* arrived after their trace was decided */
    uint64_t spans_unheld; /* no memory: passed on at once */
    uint64_t names_merged; /* spans whose service or name found no room among the names */
    uint64_t traces_held;  /* current number */
    uint64_t held_bytes;
};

/* Returns NULL with error set. */
struct stage *tail_stage_new(const struct tail_options *options, struct error *error);

struct tail_counts tail_stage_counts(const struct stage *stage);

#endif

/*
 * Tail sampling: finished spans wait until their trace is complete, then all of it is delivered or
 * left out, as the rules say (model/tail.h). Between the assembler and the exporter.
 *
 * A trace is complete when no span of it has come for wait_ms of trace time; or early, when there
 * is no room to wait. What comes later follows the decision, as long as that is remembered.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_H
#define BLKIN_SAMPLER_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/spans/assembler.h"

struct sampler_options {
    const char *rules; /* a file; it is read again when it changes */
    int64_t wait_ms;
    int64_t max_bytes;
};

struct sampler_counts {
    uint64_t traces_kept;
    uint64_t traces_sampled_out;
    uint64_t traces_early; /* of both: decided before they were complete */
    uint64_t spans_late;   /* came after their trace was decided */
    uint64_t spans_unheld; /* no memory: delivered at once */
    uint64_t traces_held;  /* now */
    uint64_t held_bytes;
    uint64_t rules_errors; /* the changed file could not be used: the rules of before hold */
};

struct sampler;

/* warn() is told of a change of the file. Returns NULL with error set. */
struct sampler *sampler_new(const struct sampler_options *options, struct assembler *assembler,
                            struct exporter *exporter, void (*warn)(void *, const char *),
                            void *context, struct error *error);
void sampler_free(struct sampler *sampler);

/* Takes a copy. is_held: it was held before, too, and is counted so: exporter_hold(). */
void sampler_add(struct sampler *sampler, const struct span *span, bool is_held);

/* After a batch of events: decides what is complete by now, and looks after the file. */
void sampler_advance(struct sampler *sampler);

/* Decides so many traces, complete or not; returns whether there are more. */
bool sampler_flush_some(struct sampler *sampler, unsigned traces);

struct sampler_counts sampler_counts(const struct sampler *sampler);

#endif

/*
 * Sampling: which of the traces that this process starts are recorded.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLING_H
#define BLKIN_SAMPLING_H

#include "policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blkin_decision {
    bool sampled;
    uint32_t ppm; /* sampled share in millionths; 0: not known, as with a rate limit */
};

/* Decides for a root span. trace_id: the low 64 bits. */
struct blkin_decision blkin_sampling_decide(const char *name, size_t length, uint64_t trace_id);

/* The policy's limit: blkin:span does not contain less severe annotations. (A session for streaming
 * events selects them by LTTng's log levels.) */
extern __attribute__((visibility("hidden"))) uint32_t blkin_least_severity;

static inline bool blkin_is_severe_enough(uint32_t severity)
{
    return severity <= __atomic_load_n(&blkin_least_severity, __ATOMIC_RELAXED);
}

/* Reads BLKIN_SAMPLING and the sampling file. Called once, before the first decision. */
void blkin_sampling_init(void);

/* The flags of a trace that starts here: BLKIN_CONTEXT_RANDOM if BLKIN_RANDOM_FLAG=1 is set, else
 * 0. OpenTelemetry's SDK for Go before 1.42 refuses a traceparent with that flag. */
extern __attribute__((visibility("hidden"))) uint32_t blkin_root_flags;

/* The sources of the policy: see policy.h. */
extern __attribute__((visibility("hidden"))) struct blkin_policy_source blkin_sampling_source;

/* Returns the current policy, in the form of blkin_set_sampling(). */
const char *blkin_sampling_text(void);

#endif

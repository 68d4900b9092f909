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
    uint32_t ppm; /* sampled share in millionths; 0: not a share, but a rate limit */
};

/* Decides for a root span. trace_id: the low 64 bits. */
struct blkin_decision blkin_sampling_decide(const char *name, size_t length, uint64_t trace_id);

/* The policy's limit: less severe annotations are not recorded in blkin:span. Streaming has LTTng's
 * log levels for that. */
extern __attribute__((visibility("hidden"))) uint32_t blkin_least_severity;

static inline bool blkin_is_severe_enough(uint32_t severity)
{
    return severity <= __atomic_load_n(&blkin_least_severity, __ATOMIC_RELAXED);
}

/* Reads BLKIN_SAMPLING and the sampling file. Once, before the first decision. */
void blkin_sampling_init(void);

/* BLKIN_CONTEXT_RANDOM for traces that start here, if BLKIN_RANDOM_FLAG=1 is set. It is off by
 * default: OpenTelemetry's SDK for Go before 1.42 refuses a traceparent with that flag. */
extern __attribute__((visibility("hidden"))) uint32_t blkin_root_flags;

/* Where the policy comes from: see policy.h. */
extern __attribute__((visibility("hidden"))) struct blkin_policy_source blkin_sampling_source;

/* Returns the policy in force, as blkin_set_sampling() takes it. */
const char *blkin_sampling_text(void);

#endif

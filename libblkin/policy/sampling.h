/*
 * Which of the traces that this process starts are recorded.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLING_H
#define BLKIN_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blkin_decision {
    bool sampled;
    uint32_t ppm; /* the share that is sampled, in millionths; 0: not a share (rate limit) */
};

/* For the root span of this name in the trace of this id (its low 64 bits). */
struct blkin_decision blkin_sampling_decide(const char *name, size_t length, uint64_t trace_id);

/*
 * Annotations of a severity above this are not recorded in blkin:span: the policy's word. Streaming
 * has LTTng's log levels for that.
 */
extern __attribute__((visibility("hidden"))) uint32_t blkin_least_severity;

static inline bool blkin_is_severe_enough(uint32_t severity)
{
    return severity <= __atomic_load_n(&blkin_least_severity, __ATOMIC_RELAXED);
}

/* Reads BLKIN_SAMPLING and finds the sampling file. Once, before the first decision. */
void blkin_sampling_init(void);

/* BLKIN_CONTEXT_RANDOM for traces that start here, if BLKIN_RANDOM_FLAG=1 is set: OpenTelemetry's
 * SDK for Go before 1.42 refuses a traceparent that has the flag. */
extern __attribute__((visibility("hidden"))) uint32_t blkin_root_flags;

/* Takes the sampling file's policy over if it has changed. One thread at a time. */
void blkin_sampling_refresh(void);

/* In a child of fork(2), while it has one thread: another one may have held the lock. */
void blkin_sampling_after_fork(void);

/* The policy in force, as blkin_set_sampling() takes it. */
const char *blkin_sampling_text(void);

#endif

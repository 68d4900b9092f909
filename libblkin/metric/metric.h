/*
 * The event blkin:metric. Only the command `blkin` contains this code, not traced programs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_METRIC_H
#define BLKIN_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One sample. Longer texts are cut. */
#define BLKIN_METRIC_GROUP_MAX    31
#define BLKIN_METRIC_INSTANCE_MAX 191
#define BLKIN_METRIC_NAMES_MAX    2600
#define BLKIN_METRIC_VALUES_MAX   32

struct blkin_metric {
    const char *group;
    const char *instance; /* "": the group has only one instance */
    const char *names;    /* as in events.h; "": unchanged */
    uint64_t monotonic;   /* ns */
    uint32_t period_ms;
    const uint64_t *values;
    size_t count; /* of values; more than BLKIN_METRIC_VALUES_MAX are left out */
};

/* Opens the library and loads LTTng. Takes some ms, or 1 s with a session daemon that hangs. */
void blkin_metric_open(void);

/* Returns true if a session or the agent records metrics. Called after blkin_metric_open(). */
bool blkin_metric_is_on(void);

#define BLKIN_METRIC_PAYLOAD_MAX 4096

/* Writes the payload of an event. thread: the number of the recording thread; number: that of the
 * event in the thread's series. Returns the length. */
size_t blkin_metric_payload(char payload[BLKIN_METRIC_PAYLOAD_MAX],
                            const struct blkin_metric *metric, uint64_t thread, uint32_t number);

/* Records the sample if metrics are on. Only one thread may call this function at a time. */
void blkin_metric_record(const struct blkin_metric *metric);

#endif

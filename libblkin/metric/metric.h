/*
 * blkin:metric. Not for programs that are traced: only `blkin host` links it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_METRIC_H
#define BLKIN_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One sample. Texts that are longer are cut. */
#define BLKIN_METRIC_GROUP_MAX    31
#define BLKIN_METRIC_INSTANCE_MAX 191
#define BLKIN_METRIC_NAMES_MAX    2600
#define BLKIN_METRIC_VALUES_MAX   32

struct blkin_metric {
    const char *group;
    const char *instance; /* "": the group has but one */
    const char *names;    /* as in events.h; "": as they were */
    uint64_t monotonic;   /* ns */
    uint32_t period_ms;
    const uint64_t *values;
    size_t count; /* of them; more are left out */
};

/* Registers this process with LTTng, which takes ms; with a session daemon that hangs, seconds. */
void blkin_metric_open(void);

/* Does any session record it? After that. */
bool blkin_metric_is_on(void);

/* Does nothing where none does. One thread. */
void blkin_metric_record(const struct blkin_metric *metric);

#endif

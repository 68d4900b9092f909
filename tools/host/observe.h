/*
 * The last two samples of each instance, and what they say of the time between.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_OBSERVE_H
#define BLKIN_TOOLS_HOST_OBSERVE_H

#include "babeltrace-plugin/base/utf8.h"
#include "babeltrace-plugin/hosts/host_view.h"
#include "sample.h"

/* of an instance, when it is valid UTF-8: a byte that is none becomes U+FFFD */
#define OBSERVED_NAME_BYTES (HOST_NAME_BYTES * sizeof(UTF8_REPLACEMENT))

struct observed {
    enum host_kind kind;
    uint64_t generation;
    uint64_t report; /* that it was seen in last */
    char name[OBSERVED_NAME_BYTES];
    uint64_t before_ns; /* 0: there was but one sample */
    uint64_t after_ns;
    uint64_t before_present;
    uint64_t after_present;
    uint64_t before[HOST_METRICS_MAX];
    uint64_t after[HOST_METRICS_MAX];
};

struct observer {
    uint64_t report;
    size_t count;                      /* of those that this report has */
    struct observed *seen[HOST_SLOTS]; /* in the order that they were read in */
    struct observed slots[HOST_SLOTS];
};

/* Reads all that is wanted, as the observer's next report. */
void observe(struct observer *observer, struct host *host);

/* Returns false if it is not known. */
bool observed_value(const struct observed *observed, const struct host_view *view, double *value);

#endif

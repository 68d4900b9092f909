/*
 * The last two samples of each instance, what they say of the time between, and that as text or
 * JSON on the standard output.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_PRINT_H
#define BLKIN_TOOLS_HOST_PRINT_H

#include "babeltrace-plugin/base/utf8.h"
#include "babeltrace-plugin/hosts/host_view.h"
#include "sample.h"

/* of an instance, when it is valid UTF-8: a byte that is none becomes U+FFFD */
#define OBSERVED_NAME_BYTES (HOST_NAME_BYTES * sizeof(UTF8_REPLACEMENT))

struct observed {
    enum host_kind kind;
    uint64_t generation;
    char name[OBSERVED_NAME_BYTES];
    uint64_t before_ns; /* 0: there was but one sample */
    uint64_t after_ns;
    uint64_t before_present;
    uint64_t after_present;
    uint64_t before[HOST_METRICS_MAX];
    uint64_t after[HOST_METRICS_MAX];
};

struct observer {
    size_t count;                      /* of those that were read last */
    struct observed *seen[HOST_SLOTS]; /* in the order that they were read in */
    struct observed slots[HOST_SLOTS];
};

/* Reads all that is wanted. */
void observe(struct observer *observer, struct host *host);

/* A line for the whole host, as of vmstat(8); a heading before the first and then every screen. */
void host_print_line(const struct observer *observer, size_t line);

/* The views of a group, with a line for each instance. */
void host_print_group(const struct observer *observer, enum host_kind kind);

/* An object in a line for each instance. Out of memory: returns false. */
bool host_print_json(const struct observer *observer);

#endif

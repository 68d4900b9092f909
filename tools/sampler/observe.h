/*
 * Keeps the two latest samples of each instance, and computes views of them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_OBSERVE_H
#define BLKIN_SAMPLER_OBSERVE_H

#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/base/utf8.h"
#include "babeltrace-plugin/hosts/host_view.h"
#include "sample.h"

/* Room for a name in which each invalid byte becomes U+FFFD. */
#define OBSERVED_NAME_BYTES (HOST_NAME_BYTES * sizeof(UTF8_REPLACEMENT))

struct observed {
    enum host_kind kind;
    uint64_t generation; /* 0: no instance */
    char name[OBSERVED_NAME_BYTES];
    uint32_t period_ms;
    uint64_t before_ns; /* 0: only one sample */
    uint64_t after_ns;
    uint64_t before_present;
    uint64_t after_present;
    uint64_t before[HOST_METRICS_MAX];
    uint64_t after[HOST_METRICS_MAX];
};

struct observer {
    struct observed slots[HOST_SLOTS];
};

/* Stores a sample. A host_sampled_fn; the context is the struct observer. */
void observe_sample(void *observer, const struct host_sample *sample);

/* Returns false if the value is unknown. */
bool observed_value(const struct observed *observed, const struct host_view *view, double *value);

/*
 * Prints the samples of this host for Prometheus:
 *
 *     blkin_host_METRIC_total{host,name}     a counter of the kernel
 *     blkin_host_METRIC{host,name}           a gauge
 *     blkin_host_GROUP_VIEW_UNIT{host,name}  a view (host_view.h) of the two latest samples
 *
 * METRIC: system.network.io.receive in By becomes system_network_io_receive_bytes. Times are in
 * seconds. name: the instance, such as "vda". Counters never fall while the kernel runs.
 */
void observer_print(const struct observer *observer, struct printer *page);

#endif

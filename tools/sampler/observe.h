/*
 * Keeps the two latest samples of each instance, and computes views of the samples.
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

/* Writes the instance's name as valid UTF-8. */
void observed_name(char name[OBSERVED_NAME_BYTES], const char *instance);

/* The values of one sample. */
struct host_values {
    uint64_t at; /* ns; 0: there is no sample */
    uint64_t present;
    uint64_t values[HOST_METRICS_MAX];
};

struct host_values host_values_of(const struct host_sample *sample);

/* Computes a view of two samples. Returns false if the value is unknown. */
bool host_values_view(enum host_kind kind, const struct host_view *view,
                      const struct host_values *before, const struct host_values *after,
                      double *value);

struct observed {
    enum host_kind kind;
    uint64_t generation; /* 0: no instance */
    char name[OBSERVED_NAME_BYTES];
    uint32_t period_ms;
    struct host_values before, after;
};

struct observer {
    struct observed slots[HOST_SLOTS];
};

/* Stores a sample. A host_sampled_fn; the context is the struct observer. */
void observe_sample(void *observer, const struct host_sample *sample);

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

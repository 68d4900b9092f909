/*
 * Prints the samples of this host for Prometheus:
 *
 *     blkin_host_METRIC_total{host,name}     a counter of the kernel
 *     blkin_host_METRIC{host,name}           a gauge
 *     blkin_host_GROUP_VIEW_UNIT{host,name}  a view (host_view.h) of the two latest samples
 *
 * METRIC: system.network.io.receive in By becomes system_network_io_receive_bytes. Times are in
 * seconds. name: the instance, such as "vda". Counters never fall while the kernel runs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_PRINT_H
#define BLKIN_SAMPLER_PRINT_H

#include "babeltrace-plugin/base/printer.h"
#include "observe.h"

void observer_print(const struct observer *observer, struct printer *page);

#endif

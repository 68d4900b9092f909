/*
 * What hosts do, added up over groups of them, for Prometheus:
 *
 *     blkin_hosts_reporting{hosts}          hosts, when the window that is shown began
 *     blkin_hosts_window_end_seconds{hosts} until when that is, since 1970
 *     blkin_hosts_samples_total{hosts}      metrics between two samples of a host, that are in it
 *     blkin_hosts_METRIC_total{hosts,instance}            of a counter
 *     blkin_hosts_METRIC_per_second{hosts,instance,stat}  the same in the window
 *     blkin_hosts_METRIC{hosts,instance,stat}             of a gauge, in the window
 *
 * METRIC: system.network.io.receive in By is system_network_io_receive_bytes; ns are seconds. stat:
 * sum, average, min, max.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_FLEET_PAGE_H
#define BLKIN_ACCOUNT_FLEET_PAGE_H

#include "../analysis/fleet.h"
#include "printer.h"

#define METRIC_NAME_MAX 320

void fleet_page(struct printer *page, const struct fleet *fleet, int64_t now_ns);

/* Prometheus' name of a metric with its unit, behind `prefix`; and what its values are to be
 * multiplied with. */
double metric_name(char name[METRIC_NAME_MAX], const char *prefix, struct text metric,
                   struct text unit);

#endif

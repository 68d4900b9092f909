/*
 * What hosts do, added up over groups of them, for Prometheus:
 *
 *     blkin_hosts_reporting{hosts}          hosts, when the window that is shown began
 *     blkin_hosts_window_end_seconds{hosts} until when that is, since 1970
 *     blkin_hosts_samples_total{hosts}      metrics between two samples of a host, that are in it
 *     blkin_hosts_METRIC_total{hosts,name}            of a counter
 *     blkin_hosts_METRIC_per_second{hosts,name,stat}  the same in the window
 *     blkin_hosts_METRIC{hosts,name,stat}             of a gauge, in the window
 *     blkin_hosts_GROUP_VIEW_UNIT{hosts,name,stat}    a view (host_view.h) in the window: an
 *                                        average or a percent; min and max where it is of one
 * metric
 *
 * METRIC: system.network.io.receive in By is system_network_io_receive_bytes; ns are seconds. stat:
 * sum, average, min, max. name: the instance ("vda"); Prometheus has a label of that name already.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_FLEET_PAGE_H
#define BLKIN_ACCOUNT_FLEET_PAGE_H

#include "fleet.h"
#include "host_view.h"
#include "page.h"

#define METRIC_NAME_MAX 320

void fleet_page(struct page *page, const struct fleet *fleet, int64_t now_ns);

/* Prometheus' name of a metric with its unit, behind `prefix`; and what its values are to be
 * multiplied with. */
double metric_name(char name[METRIC_NAME_MAX], const char *prefix, struct text metric,
                   struct text unit);

/* The same of a view: blkin_host_disk_busy_percent. What a metric says by itself is not shown. */
double view_name(char name[METRIC_NAME_MAX], const char *prefix, const struct host_view *view);
bool view_is_shown(const struct host_view *view);

#endif

/*
 * The page of this host for Prometheus (key host-listen):
 *
 *     blkin_host_METRIC_total{host,name}     a counter, as the kernel has it
 *     blkin_host_METRIC{host,name}           a gauge
 *     blkin_host_GROUP_VIEW_UNIT{host,name}  a view (host_view.h) of the two latest samples
 *
 * METRIC: system.network.io.receive in By becomes system_network_io_receive_bytes. Times are in
 * seconds. name is the instance, such as "vda". Counters never fall while the kernel runs, so a
 * Prometheus that was away has lost only resolution.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_PAGE_H
#define BLKIN_TOOLS_HOST_PAGE_H

#include "observe.h"
#include "tools/base/loop.h"

struct host_page;

/* where: "[ADDRESS:]PORT". Returns NULL with error set. */
struct host_page *host_page_open(struct loop *loop, const char *where, struct error *error);
void host_page_close(struct host_page *page); /* NULL is allowed */

/* A host_sampled_fn: the context is the page. */
void host_page_take(void *page, const struct host_sample *sample);

#endif

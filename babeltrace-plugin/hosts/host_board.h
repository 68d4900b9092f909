/*
 * What hosts do, as a page for Prometheus: the latest sample of each, with what it says about the
 * time since the one before, and all of them added up over groups of hosts (fleet_page.h).
 *
 *     blkin_host_METRIC_total{host,name}    of a counter, as the kernel has it
 *     blkin_host_METRIC{host,name}          of a gauge
 *     blkin_host_GROUP_VIEW_UNIT{host,name} a view (host_view.h): rates, averages, percents
 *
 * METRIC as in fleet_page.h. A host is shown until nothing has come of it for a while.
 *
 * Takes samples in one thread and gives the page in another.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_HOST_BOARD_H
#define BLKIN_ACCOUNT_HOST_BOARD_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/spans/event.h"
#include "samples.h"

struct host_board;

/* groups: as of fleet_new(). has_groups: false: of one host, nothing is added up. Returns NULL with
 * error set. */
struct host_board *host_board_new(bool has_groups, const char *groups, struct error *error);
void host_board_free(struct host_board *board); /* NULL is allowed */

/* Any values. Where there is no memory, or no room, it is left out. */
void host_board_take(struct host_board *board, const struct sample *sample);

/* An EVENT_METRIC; time_ns: of what it tells. One whose names did not come yet is left out. */
void host_board_take_event(struct host_board *board, const struct event *event, int64_t time_ns);

/* free() it. NULL: out of memory. */
char *host_board_page(void *board);

#endif

/*
 * What all workers have counted, for Prometheus: under the names that Grafana's service graph and
 * span metrics know, self times, and the workers themselves.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_MERGED_PAGE_H
#define BLKIN_TOOLS_WORK_MERGED_PAGE_H

#include "merged.h"

/* Returns NULL when out of memory; free() it. */
char *merged_page(const struct merged *merged, int64_t now_ns);

#endif

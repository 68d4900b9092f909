/*
 * The counters as a page of Prometheus' text format, version 0.0.4.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_PROMETHEUS_H
#define BLKIN_ACCOUNT_PROMETHEUS_H

#include "babeltrace-plugin/base/printer.h"
#include "counters.h"

#define PROMETHEUS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

void prometheus_print(struct printer *page, const struct counts *counts,
                      const struct run_info *run);

#endif

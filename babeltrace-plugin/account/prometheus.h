/*
 * The account as a page of Prometheus' text format, version 0.0.4.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_PROMETHEUS_H
#define BLKIN_ACCOUNT_PROMETHEUS_H

#include "counters.h"

#define PROMETHEUS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Returns NULL when out of memory; free() it. */
char *prometheus_page(const struct counts *counts, const struct run_info *run);

#endif

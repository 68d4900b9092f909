/*
 * What a worker shows of itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_WORKER_PAGE_H
#define BLKIN_TOOLS_WORK_WORKER_PAGE_H

#include "stage.h"

/* The page for Prometheus, of a struct work_stage; a metrics_page_fn. */
char *worker_page(void *stage);

/* The account in one line. */
#define ACCOUNT_LINE_MAX 512
void worker_account_line(const struct work_counts *counts, char line[ACCOUNT_LINE_MAX]);

#endif

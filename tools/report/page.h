/*
 * The whole page.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_REPORT_PAGE_H
#define BLKIN_TOOLS_REPORT_PAGE_H

#include "tools/trace/summary.h"

#include <stdbool.h>
#include <stdio.h>

/* Out of memory: returns false. */
bool page_put(FILE *file, const char *source, struct summary *summary, size_t max_traces);

#endif

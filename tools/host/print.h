/*
 * What was observed, as text or JSON on the standard output.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_PRINT_H
#define BLKIN_TOOLS_HOST_PRINT_H

#include "observe.h"

/* A line for the whole host, as of vmstat(8); a heading before the first and then every screen. */
void host_print_line(const struct observer *observer, size_t line);

/* The views of a group, with a line for each instance. */
void host_print_group(const struct observer *observer, enum host_kind kind);

/* An object in a line for each instance. Out of memory: returns false. */
bool host_print_json(const struct observer *observer);

#endif

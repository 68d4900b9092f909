/*
 * How the thread of a span spent its time: columns of a table, and in words.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SHOW_USAGE_H
#define BLKIN_TOOLS_SHOW_USAGE_H

#include "tools/trace/thread_time.h"

#define USAGE_COLUMNS 21

/* Cells of so many columns in all: the heads, and those of a span. */
void usage_put_heads(void);
void usage_put(const struct thread_time *time);

/* As thread_time_parts() has them. */
void usage_explain(const struct thread_time *time, int64_t self_us);

#endif

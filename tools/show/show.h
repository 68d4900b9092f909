/*
 * blkin show: prints a trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SHOW_H
#define BLKIN_TOOLS_SHOW_H

#include "tools/trace/traces.h"

/* Prints a trace as a timeline, in lines of at most `width` columns. model: the linked model of the
 * trace. annotations: also prints ids, tags and annotations of the spans. */
void draw(const struct trace *trace, const struct trace_model *model, size_t width,
          bool annotations);

#endif

/*
 * A trace as a timeline.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_DRAW_H
#define BLKIN_TOOLS_DRAW_H

#include "tools/trace/traces.h"

/* To the standard output, in lines of at most `width` columns; the model is that of the trace. */
void draw(const struct trace *trace, const struct trace_model *model, size_t width,
          bool annotations);

#endif

/*
 * A trace as a timeline.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_DRAW_H
#define BLKIN_TOOLS_DRAW_H

#include "../trace/traces.h"

/* To the standard output, in lines of at most `width` columns; the model is that of the trace. */
void draw(const struct trace *trace, const struct trace_model *model, size_t width,
          bool annotations);

/* When it began, in local time, or "at an unknown time". */
struct date_text {
    char text[64];
};
struct date_text date_text(int64_t ns);

#endif

/*
 * blkin show: prints a trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SHOW_H
#define BLKIN_TOOLS_SHOW_H

#include "tools/trace/traces.h"

/* argv[0] is how messages begin. Returns the exit status. */
int show(int argc, char *argv[]);

/* A trace as a timeline. */

/* To the standard output, in lines of at most `width` columns; the model is that of the trace. */
void draw(const struct trace *trace, const struct trace_model *model, size_t width,
          bool annotations);

/* What else ran on a span's host while it was open: spans of any trace, by time. */

/* id: the span's, or its first digits; it is in the trace `within` (NULL: in any). Prints, or says
 * why not; returns the exit status. */
int show_around(const struct trace_list *traces, const struct trace *within, const char *id,
                const char *source);

/* Traces for Perfetto's user interface. */

/*
 * To the standard output, in the Trace Event Format (JSON), of which Perfetto asks that what shares
 * a thread nests. Spans whose start is not known are left out: *left_out of them. Out of memory:
 * returns false.
 */
bool perfetto(const struct trace *traces, size_t count, const char *source, size_t *left_out);

#endif

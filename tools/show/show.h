/*
 * blkin show: prints a trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SHOW_H
#define BLKIN_TOOLS_SHOW_H

#include "tools/trace/traces.h"

/* argv[0]: the prefix of messages. Returns the exit status. */
int show(int argc, char *argv[]);

/* A trace as a timeline. */

/* Prints lines of at most `width` columns. model: of the trace. */
void draw(const struct trace *trace, const struct trace_model *model, size_t width,
          bool annotations);

/* The spans of any trace that were open on a span's host meanwhile, by time. */

/* id: of a span in the trace `within` (NULL: in any), or its first digits. Returns the exit status.
 */
int show_around(const struct trace_list *traces, const struct trace *within, const char *id,
                const char *source);

/* Traces for Perfetto's user interface. */

/*
 * Prints the Trace Event Format (JSON). Perfetto requires that the spans of a thread nest. Leaves
 * out spans without a start and sets *left_out to their number. Returns false when out of memory.
 */
bool perfetto(const struct trace *traces, size_t count, const char *source, size_t *left_out);

#endif

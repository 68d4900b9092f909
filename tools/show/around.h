/*
 * What else ran on a span's host while it was open: spans of any trace, by time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AROUND_H
#define BLKIN_TOOLS_AROUND_H

#include "tools/trace/traces.h"

/* id: the span's, or its first digits; it is in the trace `within` (NULL: in any). Prints, or says
 * why not; returns the exit status. */
int show_around(const struct trace_list *traces, const struct trace *within, const char *id,
                const char *source);

#endif

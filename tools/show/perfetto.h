/*
 * Traces for Perfetto's user interface.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PERFETTO_H
#define BLKIN_TOOLS_PERFETTO_H

#include "tools/trace/traces.h"

/*
 * To the standard output, in the Trace Event Format (JSON), of which Perfetto asks that what shares
 * a thread nests. Spans whose start is not known are left out: *left_out of them. Out of memory:
 * returns false.
 */
bool perfetto(const struct trace *traces, size_t count, const char *source, size_t *left_out);

#endif

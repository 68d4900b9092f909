/*
 * The traces of a service, of a file with spans as the sink writes it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SERVICE_TRACES_H
#define BLKIN_TOOLS_SERVICE_TRACES_H

#include <stdbool.h>

#define SERVICE_TRACES_MAX 4096

/* Writes {"traces": [{"id": ..., "spans": n}, ...]} to the file `to`: those that have a span of the
 * service, up to SERVICE_TRACES_MAX. Says what is wrong on the standard error, and returns false.
 */
bool service_traces_write(const char *spans, const char *service, const char *to);

#endif

/*
 * The span that reports an incomplete trace. The span is part of the trace: service "blkin-agent",
 * name "incomplete".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_INCOMPLETE_H
#define BLKIN_TOOLS_INCOMPLETE_H

#include "judge.h"
#include "export.h"

/* Gives the span to the export. */
void incomplete_report(struct export *export, const struct verdict *verdict);

#endif

/*
 * The span that tells of an incomplete trace, in the trace itself: service "blkin-agent", name
 * "incomplete".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_INCOMPLETE_H
#define BLKIN_TOOLS_INCOMPLETE_H

#include "ledger.h"
#include "export.h"

/* Gives the span to the export. */
void incomplete_tell(struct export *export, const struct verdict *verdict);

#endif

/*
 * Which part of a recorded span is slow.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SLOW_SPAN_H
#define BLKIN_SLOW_SPAN_H

#include "blkin.h"

/* Looks at a span that has been recorded just now, or at a step of it in an event of its own. */
void blkin_slow_span(struct blkin_span *span, uint64_t duration_ns, uint64_t end_ns);
void blkin_slow_step(const struct blkin_span *span, uint64_t id, const char *name,
                     uint64_t duration_ns, uint64_t end_ns);

#endif

/*
 * The open steps of a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STEP_H
#define BLKIN_STEP_H

#include "blkin.h"

#include <stdbool.h>

/* The id of the innermost open step, or the span's own. */
uint64_t blkin_open_id(const struct blkin_span *span);
/* Of the step that is open at this depth; 0: of the span. */
uint64_t blkin_id_at(const struct blkin_span *span, unsigned depth);

/* Ends the open steps of a span that ends; if it is dropped, for those only who read the stream. */
void blkin_end_steps(struct blkin_span *span, uint64_t end_ns, bool is_recorded);

#endif

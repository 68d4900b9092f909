/*
 * The begin of a span whose id may be known already.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BEGIN_H
#define BLKIN_BEGIN_H

#include "blkin.h"

/* As blkin_span_begin_remote() begins it, in so many bytes; id 0: a new one. */
__attribute__((visibility("hidden"))) void
blkin_begin_with_id(struct blkin_span *span, size_t size, const char *name, size_t name_length,
                    uint32_t kind, const struct blkin_context *context, uint64_t id);

#endif

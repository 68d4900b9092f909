/*
 * BLKIN_DEBUG=check: misuse of spans, each told once per place with the caller's address.
 *
 * Recorded spans alone are checked. While checks are on, every begin takes the slow path, every
 * span is told so by a limit of 0, and a span that has ended keeps a state, so that calls on it
 * come here. Off, the slow paths test one byte for it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CHECK_H
#define BLKIN_CHECK_H

#include "blkin.h"
#include "libblkin/base/chores.h"

#include <stdbool.h>

enum check_call { CHECK_USE, CHECK_END, CHECK_STEP_BEGIN, CHECK_STEP_END };

__attribute__((cold)) void blkin_check_begun(const struct blkin_span *span);

/* The call is a misuse, and has been told: do nothing. */
__attribute__((cold)) bool blkin_check_refuses(const struct blkin_span *span, enum check_call call);

static inline bool blkin_is_misuse(const struct blkin_span *span, enum check_call call)
{
    return __builtin_expect(blkin_checks, 0) && blkin_check_refuses(span, call);
}

#endif

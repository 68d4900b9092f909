/*
 * The deadline of the chores, due at first, and the level of usage.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "chores.h"

struct blkin_wiped blkin_wiped;
bool blkin_checks;
uint32_t blkin_usage_state;

void blkin_usage_set(unsigned level)
{
    const uint32_t state = blkin_usage_state;

    if ((state & BLKIN_USAGE_LEVEL_MAX) == level)
        return;
    __atomic_store_n(&blkin_usage_state, (state | BLKIN_USAGE_LEVEL_MAX) + 1 + level,
                     __ATOMIC_SEQ_CST);
    if (level)
        __atomic_store_n(&blkin_wiped.chores_due_ticks, BLKIN_CHORES_ALWAYS, __ATOMIC_SEQ_CST);
}

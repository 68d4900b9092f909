/*
 * The deadline of the chores: due at first.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "chores.h"

uint64_t blkin_chores_due_ticks;
bool blkin_checks;

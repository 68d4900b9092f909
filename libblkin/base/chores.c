/*
 * The deadline of the chores: due at first.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "chores.h"

struct blkin_wiped blkin_wiped;
bool blkin_checks;

/*
 * libblkin/blkin.c without usage. The difference is the cost of level 0.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define BLKIN_WITHOUT_USAGE
#include "libblkin/blkin.c"

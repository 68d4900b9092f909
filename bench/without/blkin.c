/*
 * libblkin/blkin.c without usage. Compared with libblkin/blkin.c, it shows the cost of level 0.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define BLKIN_WITHOUT_USAGE
#include "libblkin/blkin.c"

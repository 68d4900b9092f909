/*
 * libblkin/blkin.c without usage: what level 0 costs is the difference.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define BLKIN_WITHOUT_USAGE
#include "libblkin/blkin.c"

/*
 * A unit of systemd: do its filters allow what the preload needs?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RUN_UNIT_H
#define BLKIN_RUN_UNIT_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>

/*
 * Prints the begin of a drop-in, with comments on which lines of the unit matter. unit: a name such
 * as nginx, or the path of its file. library: what is preloaded. False: there is no such unit.
 */
bool unit_print(const char *unit, const char *library, struct error *error);

#endif

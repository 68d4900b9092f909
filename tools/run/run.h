/*
 * Command "blkin run": runs a program with libblkin-preload.so.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RUN_H
#define BLKIN_TOOLS_RUN_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <limits.h>

/*
 * Prints the beginning of a drop-in for a systemd unit. It has comments on the lines of the unit
 * that affect tracing, and commented-out lines that allow tracing. unit: a name such as nginx, or
 * the path of the unit's file. library: the library to preload. Returns false with error set if
 * there is no such unit.
 */
bool unit_print_drop_in(const char *unit, const char *library, struct error *error);

/* Finds the file that execvp(3) would run. Returns false with errno set: ENOENT, EACCES. */
bool program_find(const char *name, char path[PATH_MAX]);

/*
 * Returns true if the library can trace the program, or the interpreter of a script. Returns true
 * also if a file cannot be read. Returns false with the reason and the remedy in error.
 */
bool program_can_preload(const char *path, const char *library, struct error *error);

#endif

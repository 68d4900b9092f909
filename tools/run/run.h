/*
 * blkin run: runs a program with libblkin-preload.so.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RUN_H
#define BLKIN_TOOLS_RUN_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <limits.h>

/* A unit of systemd: do its filters allow what the preload needs? */

/*
 * Prints the begin of a drop-in, with comments on the unit's lines that matter. unit: a name such
 * as nginx, or the path of its file. library: the library to preload. Returns false with error set
 * if there is no such unit.
 */
bool unit_print(const char *unit, const char *library, struct error *error);

/* Programs as files: where one is, and whether a library can be preloaded into it. */

/* Finds the path that execvp(3) would run. Returns false with errno set: ENOENT, EACCES. */
bool program_find(const char *name, char path[PATH_MAX]);

/*
 * Returns whether ld.so can preload the library into the program, or into the interpreter of a
 * script. Returns false with the reason and the remedy in error. Assumes that an unreadable file
 * can.
 */
bool program_takes(const char *path, const char *library, struct error *error);

#endif

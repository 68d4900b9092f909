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

/* argv[0] is how messages begin. Returns the exit status if the program was not run. */
int run_command(int argc, char *argv[]);

/* A unit of systemd: do its filters allow what the preload needs? */

/*
 * Prints the begin of a drop-in, with comments on which lines of the unit matter. unit: a name such
 * as nginx, or the path of its file. library: what is preloaded. False: there is no such unit.
 */
bool unit_print(const char *unit, const char *library, struct error *error);

/* Programs as files: where one is, and whether a library can be preloaded into it. */

/* Where execvp(3) finds it. False with errno: ENOENT, EACCES. */
bool program_find(const char *name, char path[PATH_MAX]);

/*
 * Will ld.so preload the library into what runs when this file is executed? Of a script that is its
 * interpreter. False with the reason and what to do; a file that cannot be read is taken for one
 * that can.
 */
bool program_takes(const char *path, const char *library, struct error *error);

#endif

/*
 * Programs as files: where one is, and whether a library can be preloaded into it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RUN_PROGRAM_H
#define BLKIN_TOOLS_RUN_PROGRAM_H

#include "babeltrace-plugin/base/error.h"

#include <limits.h>
#include <stdbool.h>

/* Where execvp(3) finds it. False with errno: ENOENT, EACCES. */
bool program_find(const char *name, char path[PATH_MAX]);

/*
 * Will ld.so preload the library into what runs when this file is executed? Of a script that is its
 * interpreter. False with the reason and what to do; a file that cannot be read is taken for one
 * that can.
 */
bool program_takes(const char *path, const char *library, struct error *error);

#endif

/*
 * Which process has a file open for writing?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_HOLDER_H
#define BLKIN_TOOLS_ROTATE_HOLDER_H

#include <stdbool.h>
#include <sys/types.h>

struct holder {
    pid_t pid;     /* 0: no process that we may look at has it open */
    bool is_guess; /* we may not look at its files, but it is a consumer daemon of LTTng */
    char name[32]; /* of the program */
};

/* Looks at all processes, which may take long: for a child. */
struct holder holder_find(const char *path);

#endif

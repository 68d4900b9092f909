/*
 * What a child writes on its standard output and error: line by line, told with its name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OUTPUT_LINES_H
#define BLKIN_TOOLS_OUTPUT_LINES_H

#include "loop.h"

#include <stddef.h>

struct output_lines {
    struct loop *loop;
    char source[352];     /* who it is */
    const char *dull;     /* how lines begin that are not told; NULL: none */
    struct watched input; /* fd -1: it has ended, or has not begun */
    int child_fd;         /* the other end */
    char line[4096];
    size_t length;
};

/* child_fd is for the child, and then to be closed. Returns false with errno set. */
bool output_lines_open(struct output_lines *lines, struct loop *loop);

/* Says what is left. */
void output_lines_close(struct output_lines *lines);

#endif

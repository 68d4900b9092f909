/*
 * Where a command writes to: the standard output, or a file that is there when all of it is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OUTPUT_H
#define BLKIN_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file;
    const char *command; /* how messages begin */
    const char *path;    /* NULL: the standard output */
    char *part;          /* what is written until then */
};

/* These report by themselves, and return false. */
bool output_open(struct output *output, const char *command, const char *path);

/* !is_whole: a file is not made, what was there before stays. */
bool output_close(struct output *output, bool is_whole);

/* For one that has only the standard output: the exit status, 1 after it has reported that not all
 * could be written. */
int output_flush(const char *command, int status);

#endif

/*
 * The output of a command: the standard output, or a file that replaces an older one when complete.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OUTPUT_H
#define BLKIN_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file;
    const char *command; /* the prefix of messages */
    const char *path;    /* NULL: the standard output */
    char *part;          /* the temporary file */
};

/* Both functions return false after printing an error. */
bool output_open(struct output *output, const char *command, const char *path);

/* is_whole false: keeps the older file, and returns false. */
bool output_close(struct output *output, bool is_whole);

/* For a command without --output: returns status, or 1 after printing that the output is
 * incomplete. */
int output_flush(const char *command, int status);

#endif

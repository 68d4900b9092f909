/* Reads a file, the standard input, a URL, or a recorded trace by babeltrace2.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READ_H
#define BLKIN_TOOLS_READ_H

#include "babeltrace-plugin/base/buffer.h"

#include <stdbool.h>
#include <sys/types.h>

/* Returns whether the source is a folder: the commands read each folder as a recorded trace. */
bool is_trace(const char *source);

/* Returns the name of the source for messages. */
static inline const char *source_text(const char *source)
{
    return source[0] == '-' && !source[1] ? "standard input" : source;
}

/* Names the rules that make spans of events of programs without BlkKin: see rules_read(). The rules
 * apply to recorded traces only. NULL: no rules. */
extern const char *source_rules_path;

/* Starts a program of the PATH. files: the child's standard input, output and error; -1: that of
 * this process. Returns 0 or an errno. */
int read_spawn(const char *const arguments[], const int files[3], pid_t *child);

/* Returns "--params=PARAMS" for babeltrace2, with the sink's parameter "rules" unless rules is
 * NULL. The caller frees the text; NULL: out of memory. */
char *read_params(const char *params, const char *rules);

/*
 * Runs arguments[0], which is babeltrace2, on the recorded trace arguments[1], and reads the output
 * into *bytes. If the trace is damaged, the function reads the part before the damage and sets
 * source_is_partial: the command then exits with 1. Prints errors and the sink's messages.
 */
bool read_babeltrace(const char *const arguments[], struct buffer *bytes);
extern bool source_is_partial;

/* Reads the source into *bytes. Returns false after printing an error. The caller frees the bytes
 * in any case. */
bool read_source(const char *source, struct buffer *bytes);

#endif

/* Reads the bytes of a file or of a server's answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READ_H
#define BLKIN_TOOLS_READ_H

#include "babeltrace-plugin/base/buffer.h"

#include <stdbool.h>
#include <sys/types.h>

bool is_url(const char *source);

/* Returns whether the source is a folder, that is a recorded trace. */
bool is_trace(const char *source);

/* Returns the name of the source for messages. */
static inline const char *source_text(const char *source)
{
    return source[0] == '-' && !source[1] ? "standard input" : source;
}

/* The rules for recorded traces, which make spans of other programs' events; NULL: none. */
extern const char *read_rules;

/* Starts a program of the PATH. files: its standard input, output and error; -1: those of this
 * process. Returns 0 or an errno. */
int read_spawn(const char *const arguments[], const int files[3], pid_t *child);

/* Returns "--params=PARAMS" for babeltrace2, with the sink's parameter "rules" unless rules is
 * NULL. The caller frees it; NULL: out of memory. */
char *read_params(const char *params, const char *rules);

/*
 * Runs babeltrace2, whose second argument is a recorded trace, and reads its output. For a damaged
 * trace, keeps the part before the damage and sets read_is_partial, with which the command ends
 * with status 1. Prints errors and the sink's messages.
 */
bool read_babeltrace(const char *const arguments[], struct buffer *bytes);
extern bool read_is_partial;

/* Returns false after printing an error. The caller frees the bytes in any case. */
bool read_source(const char *source, struct buffer *bytes);

#endif

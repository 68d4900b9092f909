/*
 * The bytes of a file or of a server's answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READ_H
#define BLKIN_TOOLS_READ_H

#include "babeltrace-plugin/base/buffer.h"

#include <stdbool.h>

bool is_url(const char *source);

/* Is it a folder, as a recorded trace is? */
bool is_trace(const char *source);

/* How messages name it. */
static inline const char *source_text(const char *source)
{
    return source[0] == '-' && !source[1] ? "standard input" : source;
}

/* For recorded traces: rules that make spans of other programs' events; NULL: none. */
extern const char *read_rules;

/* "--params=PARAMS" for babeltrace2, with the sink's parameter "rules" if they are not NULL.
 * free(3) it; NULL: out of memory. */
char *read_params(const char *params, const char *rules);

/*
 * Runs babeltrace2, whose second argument is a recorded trace, and reads what it prints. Where the
 * trace is damaged, what was read before is what there is: then read_is_partial is set, and the
 * command that shows it ends with status 1. Reports by itself what went wrong, and passes the
 * sink's messages on.
 */
bool read_babeltrace(const char *const arguments[], struct buffer *bytes);
extern bool read_is_partial;

/* Reports by itself what went wrong. The bytes are to be freed, whether it worked or not. */
bool read_source(const char *source, struct buffer *bytes);

#endif

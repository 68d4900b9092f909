/*
 * The trace context in the environment of a process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "blkin_context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PARENT_NAME "TRACEPARENT"
#define STATE_NAME  "TRACESTATE"

int blkin_context_from_environment(struct blkin_context *context)
{
    const char *parent = secure_getenv(PARENT_NAME), *state = secure_getenv(STATE_NAME);
    int error;

    if (!context)
        return -EINVAL;
    if (!parent || !*parent)
        return -ENOENT;
    error = blkin_context_from_traceparent(context, parent, strlen(parent));
    if (!error && state)
        (void)blkin_context_set_tracestate(context, state, strlen(state));
    return error;
}

int blkin_context_to_traceparent_variable(const struct blkin_context *context, char *buffer)
{
    static const char prefix[] = PARENT_NAME "=";
    int length;

    if (!buffer)
        return -EINVAL;
    length = blkin_context_to_traceparent(context, buffer + sizeof(prefix) - 1);
    if (length < 0)
        return length;
    memcpy(buffer, prefix, sizeof(prefix) - 1);
    return length + (int)sizeof(prefix) - 1;
}

int blkin_context_to_tracestate_variable(const struct blkin_context *context, char *buffer,
                                         size_t size)
{
    static const char prefix[] = STATE_NAME "=";
    int length;

    if (!buffer || size < sizeof(prefix))
        return -EINVAL;
    length = blkin_context_to_tracestate(context, buffer + sizeof(prefix) - 1,
                                         size - sizeof(prefix) + 1);
    if (length <= 0) {
        if (length == 0)
            *buffer = '\0';
        return length;
    }
    memcpy(buffer, prefix, sizeof(prefix) - 1);
    return length + (int)sizeof(prefix) - 1;
}

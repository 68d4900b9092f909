/*
 * W3C Trace Context: traceparent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "blkin_context.h"
#include "context_hex.h"

#include <errno.h>

/* version - trace id - span id - flags: where each begins */
enum { VERSION = 0, TRACE_ID = 3, SPAN_ID = 36, FLAGS = 53, LENGTH = 55 };

#define W3C_SAMPLED 1u
#define W3C_RANDOM  2u

int blkin_context_from_traceparent(struct blkin_context *context, const char *text, size_t length)
{
    unsigned version, flags, valid = 1;
    struct blkin_context read = {.flags = BLKIN_CONTEXT_DECIDED | BLKIN_CONTEXT_REMOTE};

    if (!context || !text || length < LENGTH)
        return -EINVAL;
    version = (unsigned)blkin_hex_read(text + VERSION, 2, &valid);
    read.trace_id_high = blkin_hex_read(text + TRACE_ID, 16, &valid);
    read.trace_id = blkin_hex_read(text + TRACE_ID + 16, 16, &valid);
    read.span_id = blkin_hex_read(text + SPAN_ID, 16, &valid);
    flags = (unsigned)blkin_hex_read(text + FLAGS, 2, &valid);
    if (!valid || text[TRACE_ID - 1] != '-' || text[SPAN_ID - 1] != '-' || text[FLAGS - 1] != '-')
        return -EINVAL;
    if (version == 0xff || !blkin_context_has_ids(&read))
        return -EINVAL;
    if (length > LENGTH && (version == 0 || text[LENGTH] != '-'))
        return -EINVAL;

    if (flags & W3C_SAMPLED)
        read.flags |= BLKIN_CONTEXT_SAMPLED;
    if (flags & W3C_RANDOM && version == 0)
        read.flags |= BLKIN_CONTEXT_RANDOM;
    *context = read;
    return 0;
}

int blkin_context_to_traceparent(const struct blkin_context *context, char *buffer)
{
    char *end = buffer;

    if (!context || !buffer || !blkin_context_has_ids(context))
        return -EINVAL;
    *end++ = '0';
    *end++ = '0';
    *end++ = '-';
    end = blkin_hex_write(end, context->trace_id_high);
    end = blkin_hex_write(end, context->trace_id);
    *end++ = '-';
    end = blkin_hex_write(end, context->span_id);
    *end++ = '-';
    *end++ = '0';
    *end++ = (char)('0' + (blkin_context_is_sampled(context) ? W3C_SAMPLED : 0) +
                    (context->flags & BLKIN_CONTEXT_RANDOM ? W3C_RANDOM : 0));
    *end = '\0';
    return LENGTH;
}

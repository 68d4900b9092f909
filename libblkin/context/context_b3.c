/* SPDX-License-Identifier: BSD-2-Clause */
#include "blkin_context.h"
#include "context_hex.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define ACCEPT (BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_DECIDED)
#define DENY   BLKIN_CONTEXT_DECIDED
#define DEBUG  (BLKIN_CONTEXT_DEBUG | ACCEPT)

/* Returns the flags for the letter of a decision; 0: no such letter. */
static uint32_t read_decision(char letter)
{
    switch (letter) {
    case '0':
        return DENY;
    case '1':
        return ACCEPT;
    case 'd':
        return DEBUG;
    }
    return 0;
}

/* Returns the letter of the decision; 0: not decided. */
static char decision_of(const struct blkin_context *context)
{
    if (context->flags & BLKIN_CONTEXT_DEBUG)
        return 'd';
    if (context->flags & BLKIN_CONTEXT_SAMPLED)
        return '1';
    return context->flags & BLKIN_CONTEXT_DECIDED ? '0' : '\0';
}

/* Returns 1 if the context can be written: it has all ids, or no id and a decision. */
static int can_write(const struct blkin_context *context)
{
    if (blkin_context_has_ids(context))
        return 1;
    return !(context->trace_id_high | context->trace_id | context->span_id |
             context->parent_span_id) &&
           decision_of(context);
}

/* digits: 16 or 32 */
static void read_trace_id(struct blkin_context *context, const char *text, size_t digits,
                          unsigned *valid)
{
    if (digits == 32)
        context->trace_id_high = blkin_hex_read(text, 16, valid);
    context->trace_id = blkin_hex_read(text + digits - 16, 16, valid);
}

static char *write_trace_id(char *text, const struct blkin_context *context)
{
    if (context->trace_id_high)
        text = blkin_hex_write(text, context->trace_id_high);
    return blkin_hex_write(text, context->trace_id);
}

/* Reads "<decision>[-<16 hex>]", or "<16 hex>": the parent span id. The specification does not
 * allow a parent without a decision, but Brave writes and reads it. */
static int read_decision_and_parent(struct blkin_context *context, const char *text, size_t length)
{
    unsigned valid = 1;

    if (length == 16) {
        context->parent_span_id = blkin_hex_read(text, 16, &valid);
        return valid ? 0 : -EINVAL;
    }
    if (length != 1 && length != 18)
        return -EINVAL;
    context->flags = read_decision(text[0]);
    if (length == 18) {
        context->parent_span_id = blkin_hex_read(text + 2, 16, &valid);
        valid &= text[1] == '-';
    }
    return context->flags && valid ? 0 : -EINVAL;
}

/* Reads "<16 or 32 hex>-<16 hex>[-<rest>]". */
static int read_single(struct blkin_context *context, const char *text, size_t length)
{
    size_t span = length > 16 && text[16] == '-' ? 17 : 33, ids = span + 16;
    unsigned valid = 1;

    if (length < ids || text[span - 1] != '-')
        return -EINVAL;
    read_trace_id(context, text, span - 1, &valid);
    context->span_id = blkin_hex_read(text + span, 16, &valid);
    if (!valid || !blkin_context_has_ids(context))
        return -EINVAL;
    if (length == ids)
        return 0;
    if (text[ids] != '-')
        return -EINVAL;
    return read_decision_and_parent(context, text + ids + 1, length - ids - 1);
}

int blkin_context_from_b3(struct blkin_context *context, const char *text, size_t length)
{
    struct blkin_context read = {0};
    int error;

    if (!context || !text)
        return -EINVAL;
    error = length == 1 ? read_decision_and_parent(&read, text, length)
                        : read_single(&read, text, length);
    if (error)
        return error;
    read.flags |= BLKIN_CONTEXT_REMOTE;
    *context = read;
    return 0;
}

int blkin_context_to_b3(const struct blkin_context *context, char *buffer)
{
    char decision, *end = buffer;

    if (!context || !buffer || !can_write(context))
        return -EINVAL;
    decision = decision_of(context);
    if (context->span_id) {
        end = write_trace_id(end, context);
        *end++ = '-';
        end = blkin_hex_write(end, context->span_id);
        if (decision)
            *end++ = '-';
    }
    if (decision)
        *end++ = decision;
    if (context->parent_span_id) {
        *end++ = '-';
        end = blkin_hex_write(end, context->parent_span_id);
    }
    *end = '\0';
    return (int)(end - buffer);
}

/* Ignores case: some peers send "True" or "TRUE". */
static int is_text(const struct blkin_context_text *field, const char *wanted)
{
    return field->text && field->length == strlen(wanted) &&
           strncasecmp(field->text, wanted, field->length) == 0;
}

/* Returns the flags for the value of "sampled". 0: no value; -EINVAL: a value that is not
 * allowed. */
static int read_sampled(const struct blkin_context_text *sampled)
{
    if (!sampled->text)
        return 0;
    if (is_text(sampled, "1") || is_text(sampled, "true"))
        return (int)ACCEPT;
    if (is_text(sampled, "0") || is_text(sampled, "false"))
        return (int)DENY;
    return -EINVAL;
}

static int read_ids(struct blkin_context *context, const struct blkin_context_b3_fields *fields)
{
    const struct blkin_context_text *trace = &fields->trace_id, *span = &fields->span_id,
                                    *parent = &fields->parent_span_id;
    unsigned valid = 1;

    if (!trace->text || !span->text || span->length != 16 ||
        (trace->length != 16 && trace->length != 32) || (parent->text && parent->length != 16))
        return -EINVAL;
    read_trace_id(context, trace->text, trace->length, &valid);
    context->span_id = blkin_hex_read(span->text, 16, &valid);
    if (parent->text)
        context->parent_span_id = blkin_hex_read(parent->text, 16, &valid);
    return valid && blkin_context_has_ids(context) ? 0 : -EINVAL;
}

int blkin_context_from_b3_fields(struct blkin_context *context,
                                 const struct blkin_context_b3_fields *fields)
{
    struct blkin_context read = {0};
    int sampled, has_ids;

    if (!context || !fields)
        return -EINVAL;
    sampled = read_sampled(&fields->sampled);
    if (sampled < 0)
        return sampled;
    read.flags = is_text(&fields->flags, "1") ? DEBUG : (uint32_t)sampled;
    has_ids = fields->trace_id.text || fields->span_id.text || fields->parent_span_id.text;
    if (has_ids ? read_ids(&read, fields) != 0 : !read.flags)
        return -EINVAL;
    read.flags |= BLKIN_CONTEXT_REMOTE;
    *context = read;
    return 0;
}

int blkin_context_to_b3_fields(const struct blkin_context *context,
                               struct blkin_context_b3_values *values)
{
    char decision;

    if (!context || !values || !can_write(context))
        return -EINVAL;
    decision = decision_of(context);
    memset(values, 0, sizeof(*values));
    if (context->span_id) {
        write_trace_id(values->trace_id, context);
        blkin_hex_write(values->span_id, context->span_id);
        if (context->parent_span_id)
            blkin_hex_write(values->parent_span_id, context->parent_span_id);
    }
    if (decision == 'd')
        values->flags[0] = '1';
    else
        values->sampled[0] = decision;
    return 0;
}

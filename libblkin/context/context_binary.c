/* SPDX-License-Identifier: BSD-2-Clause */
#include "blkin_context.h"
#include "context_hex.h"
#include "zipkin_c.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* OpenCensus: the offsets of the version and of the fields. Each field begins with its id. */
enum { CENSUS_VERSION = 0, CENSUS_TRACE_ID = 1, CENSUS_SPAN_ID = 18, CENSUS_OPTIONS = 27 };
enum { TRACE_ID_FIELD = 0, SPAN_ID_FIELD = 1, OPTIONS_FIELD = 2 };

#define OPTION_SAMPLED 1u

static uint64_t read_be64(const unsigned char *bytes)
{
    uint64_t number;

    memcpy(&number, bytes, sizeof(number));
    return be64toh(number);
}

static void write_be64(unsigned char *bytes, uint64_t number)
{
    number = htobe64(number);
    memcpy(bytes, &number, sizeof(number));
}

/* Sets *options to 0 if their field is missing. Returns -EINVAL if they are cut off, or if the next
 * field has a known id. */
static int read_options(const unsigned char *bytes, size_t length, unsigned *options)
{
    size_t next = CENSUS_OPTIONS;

    *options = 0;
    if (length > next && bytes[next] == OPTIONS_FIELD) {
        if (length < BLKIN_OPENCENSUS_SIZE)
            return -EINVAL;
        *options = bytes[next + 1];
        next = BLKIN_OPENCENSUS_SIZE;
    }
    return length > next && bytes[next] <= OPTIONS_FIELD ? -EINVAL : 0;
}

int blkin_context_from_opencensus(struct blkin_context *context, const void *data, size_t length)
{
    const unsigned char *bytes = data;
    struct blkin_context read = {.flags = BLKIN_CONTEXT_REMOTE};
    unsigned options;

    if (!context || !data || length < CENSUS_OPTIONS)
        return -EINVAL;
    if (bytes[CENSUS_VERSION] != 0 || bytes[CENSUS_TRACE_ID] != TRACE_ID_FIELD ||
        bytes[CENSUS_SPAN_ID] != SPAN_ID_FIELD)
        return -EINVAL;
    read.trace_id_high = read_be64(bytes + CENSUS_TRACE_ID + 1);
    read.trace_id = read_be64(bytes + CENSUS_TRACE_ID + 9);
    read.span_id = read_be64(bytes + CENSUS_SPAN_ID + 1);
    if (read_options(bytes, length, &options) || !blkin_context_has_ids(&read))
        return -EINVAL;
    if (options & OPTION_SAMPLED)
        read.flags |= BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_DECIDED;
    *context = read;
    return 0;
}

int blkin_context_to_opencensus(const struct blkin_context *context, void *buffer)
{
    unsigned char *bytes = buffer;

    if (!context || !buffer || !blkin_context_has_ids(context))
        return -EINVAL;
    bytes[CENSUS_VERSION] = 0;
    bytes[CENSUS_TRACE_ID] = TRACE_ID_FIELD;
    write_be64(bytes + CENSUS_TRACE_ID + 1, context->trace_id_high);
    write_be64(bytes + CENSUS_TRACE_ID + 9, context->trace_id);
    bytes[CENSUS_SPAN_ID] = SPAN_ID_FIELD;
    write_be64(bytes + CENSUS_SPAN_ID + 1, context->span_id);
    bytes[CENSUS_OPTIONS] = OPTIONS_FIELD;
    bytes[CENSUS_OPTIONS + 1] = blkin_context_is_sampled(context) ? OPTION_SAMPLED : 0;
    return BLKIN_OPENCENSUS_SIZE;
}

int blkin_context_from_packed(struct blkin_context *context,
                              const struct blkin_trace_info_packed *packed)
{
    struct blkin_context read = {.flags = BLKIN_CONTEXT_DECIDED | BLKIN_CONTEXT_REMOTE};

    if (!context || !packed)
        return -EINVAL;
    read.trace_id = be64toh(packed->trace_id);
    if (read.trace_id) {
        read.span_id = be64toh(packed->span_id);
        read.parent_span_id = be64toh(packed->parent_span_id);
        read.flags |= BLKIN_CONTEXT_SAMPLED;
        if (!read.span_id)
            return -EINVAL;
    }
    *context = read;
    return 0;
}

int blkin_context_to_packed(const struct blkin_context *context,
                            struct blkin_trace_info_packed *packed)
{
    if (!context || !packed)
        return -EINVAL;
    if (context->flags & BLKIN_CONTEXT_DECIDED && !blkin_context_is_sampled(context)) {
        *packed = (struct blkin_trace_info_packed){0};
        return 0;
    }
    if (!context->trace_id || !context->span_id)
        return -EINVAL;
    packed->trace_id = htobe64(context->trace_id);
    packed->span_id = htobe64(context->span_id);
    packed->parent_span_id = htobe64(context->parent_span_id);
    return 0;
}

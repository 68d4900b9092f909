/*
 * A model of the trace context formats: short and slow readers, and checks that the library accepts
 * the same texts with the same meaning. An accepted text survives writing and reading again; a
 * refused text leaves the context alone.
 *
 * The readers take a text that ends with a NUL, cut it up in place, and return whether it is valid.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CONTEXT_MODEL_H
#define TESTS_CONTEXT_MODEL_H

#include <blkin_context.h>
#include <zipkin_c.h>

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* the texts under test, for the message */
static char subject[600];

#define HOLDS(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not true: %s [%s]\n", __FILE__, __LINE__, #condition, \
                    subject);                                                             \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

#define SAMPLED       BLKIN_CONTEXT_SAMPLED
#define DECIDED       BLKIN_CONTEXT_DECIDED
#define CONTEXT_DEBUG BLKIN_CONTEXT_DEBUG
#define RANDOM        BLKIN_CONTEXT_RANDOM
#define REMOTE        BLKIN_CONTEXT_REMOTE

/* Allocates without slack, so that AddressSanitizer finds a read beyond the end. */
static inline char *exact(size_t size)
{
    char *buffer = malloc(size);

    HOLDS(buffer || !size);
    return buffer;
}

/* Returns a context that no reader makes, to find changes. */
static inline struct blkin_context marked(void)
{
    struct blkin_context context;

    memset(&context, 0x5a, sizeof(context));
    return context;
}

static inline int same(const struct blkin_context *a, const struct blkin_context *b)
{
    return a->trace_id_high == b->trace_id_high && a->trace_id == b->trace_id &&
           a->span_id == b->span_id && a->parent_span_id == b->parent_span_id &&
           a->flags == b->flags && a->tracestate == b->tracestate &&
           a->tracestate_length == b->tracestate_length;
}

/* ---------------------------------------------------------------- naive readers */

#define HEX "0123456789abcdef"

static int naive_hex(const char *text, size_t digits, uint64_t *high, uint64_t *low)
{
    char half[17] = "";

    if (strlen(text) != digits || strspn(text, HEX) != digits)
        return 0;
    *high = 0;
    if (digits == 32) {
        memcpy(half, text, 16);
        *high = strtoull(half, NULL, 16);
    }
    *low = strtoull(text + digits - 16, NULL, 16);
    return 1;
}

/* Cuts text at the dashes. Returns the number of parts, at most 5. */
static int naive_split(char *text, char *parts[5])
{
    int count = 0;

    while (text && count < 5) {
        parts[count++] = text;
        text = strchr(text, '-');
        if (text)
            *text++ = '\0';
    }
    return count;
}

static int naive_traceparent(char *text, size_t length, struct blkin_context *context)
{
    char *parts[5], *rest = length > 55 ? text + 55 : NULL;
    uint64_t none;
    unsigned flags;

    if (length < 55 || (rest && (*rest != '-' || strncmp(text, "00", 2) == 0)))
        return 0;
    if (rest)
        *rest = '\0';
    if (strlen(text) != 55 || naive_split(text, parts) != 4)
        return 0;
    if (strlen(parts[0]) != 2 || strspn(parts[0], HEX) != 2 || strcmp(parts[0], "ff") == 0)
        return 0;
    if (!naive_hex(parts[1], 32, &context->trace_id_high, &context->trace_id) ||
        !naive_hex(parts[2], 16, &none, &context->span_id) || strspn(parts[3], HEX) != 2)
        return 0;
    flags = (unsigned)strtoul(parts[3], NULL, 16);
    context->flags = DECIDED | REMOTE | (flags & 1 ? SAMPLED : 0) |
                     (flags & 2 && strcmp(parts[0], "00") == 0 ? RANDOM : 0);
    return (context->trace_id_high || context->trace_id) && context->span_id;
}

static int naive_decision(const char *text, uint32_t *flags)
{
    if (strcmp(text, "0") == 0)
        *flags |= DECIDED;
    else if (strcmp(text, "1") == 0)
        *flags |= DECIDED | SAMPLED;
    else if (strcmp(text, "d") == 0)
        *flags |= DECIDED | SAMPLED | CONTEXT_DEBUG;
    else
        return 0;
    return 1;
}

static int naive_b3(char *text, size_t length, struct blkin_context *context)
{
    char *parts[5];
    uint64_t none;
    int count;

    context->flags = REMOTE;
    if (strlen(text) != length)
        return 0;
    count = naive_split(text, parts);
    if (count == 1)
        return naive_decision(parts[0], &context->flags);
    if (count > 4)
        return 0;
    if (!naive_hex(parts[0], 16, &context->trace_id_high, &context->trace_id) &&
        !naive_hex(parts[0], 32, &context->trace_id_high, &context->trace_id))
        return 0;
    if (!naive_hex(parts[1], 16, &none, &context->span_id))
        return 0;
    if (count == 3 && naive_hex(parts[2], 16, &none, &context->parent_span_id))
        count = 2;
    if (count > 2 && !naive_decision(parts[2], &context->flags))
        return 0;
    if (count > 3 && !naive_hex(parts[3], 16, &none, &context->parent_span_id))
        return 0;
    return (context->trace_id_high || context->trace_id) && context->span_id;
}

static int naive_opencensus(char *text, size_t length, struct blkin_context *context)
{
    static const size_t sizes[] = {16, 8, 1};
    unsigned char fields[3][16] = {{0}}, *bytes = (unsigned char *)text;
    size_t at = 1;
    int last = -1;

    context->flags = REMOTE;
    if (length == 0 || bytes[0] != 0)
        return 0;
    while (at < length && bytes[at] <= 2) {
        int id = bytes[at++];

        if (id <= last || length - at < sizes[id])
            return 0;
        memcpy(fields[id], bytes + at, sizes[id]);
        at += sizes[id];
        last = id;
    }
    for (int i = 0; i < 8; i++) {
        context->trace_id_high = context->trace_id_high << 8 | fields[0][i];
        context->trace_id = context->trace_id << 8 | fields[0][i + 8];
        context->span_id = context->span_id << 8 | fields[1][i];
    }
    if (fields[2][0] & 1)
        context->flags |= SAMPLED | DECIDED;
    return (context->trace_id_high || context->trace_id) && context->span_id;
}

/* Splits a valid list; each entry ends with a NUL, in place. Returns their number, or -1. */
static int naive_tracestate(char *text, size_t length, char *entries[32])
{
    int members = 0, count = 0;

    if (strlen(text) != length)
        return -1;
    for (char *member = text, *next; member; member = next) {
        char *value;

        next = strchr(member, ',');
        if (next)
            *next++ = '\0';
        if (++members > 32)
            return -1;
        member += strspn(member, " \t");
        for (char *end = member + strlen(member); end > member && strchr(" \t", end[-1]); end--)
            end[-1] = '\0';
        if (!*member)
            continue;
        value = strchr(member, '=');
        if (!value || value == member || value - member > 256)
            return -1;
        for (char *c = member; c < value; c++)
            if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789", *c) &&
                (c == member || !strchr("_-*/@", *c)))
                return -1;
        value++;
        if (!*value || strlen(value) > 256)
            return -1;
        for (; *value; value++)
            if (*value < ' ' || *value > '~' || *value == '=')
                return -1;
        entries[count++] = member;
    }
    return count;
}

/* Writes the list for a buffer of the given size, as the specification says. */
static void naive_truncate(char *entries[32], int count, size_t size, char *written)
{
    for (;;) {
        size_t total = 0;
        int victim = -1;

        for (int i = 0; i < count; i++)
            total += strlen(entries[i]) + (i ? 1 : 0);
        if (total < size)
            break;
        for (int i = 0; i < count; i++)
            if (strlen(entries[i]) > 128)
                victim = i;
        if (victim < 0)
            victim = count - 1;
        memmove(entries + victim, entries + victim + 1,
                (size_t)(count - victim - 1) * sizeof(*entries));
        count--;
    }
    *written = '\0';
    for (int i = 0; i < count; i++) {
        if (i)
            written = stpcpy(written, ",");
        written = stpcpy(written, entries[i]);
    }
}

/* Reads trace id, span id, parent, sampled, flags; NULL: missing. */
static int naive_fields(char *const texts[5], struct blkin_context *context)
{
    const char *trace = texts[0], *span = texts[1], *parent = texts[2], *sampled = texts[3];
    uint64_t none;

    context->flags = REMOTE;
    if (sampled) {
        if (strcasecmp(sampled, "true") == 0)
            sampled = "1";
        else if (strcasecmp(sampled, "false") == 0)
            sampled = "0";
        if (strcmp(sampled, "d") == 0 || !naive_decision(sampled, &context->flags))
            return 0;
    }
    if (texts[4] && strcmp(texts[4], "1") == 0)
        context->flags |= DECIDED | SAMPLED | CONTEXT_DEBUG;
    if (!trace && !span && !parent)
        return context->flags != REMOTE;
    if (!trace || !span)
        return 0;
    if (!naive_hex(trace, 16, &context->trace_id_high, &context->trace_id) &&
        !naive_hex(trace, 32, &context->trace_id_high, &context->trace_id))
        return 0;
    if (!naive_hex(span, 16, &none, &context->span_id))
        return 0;
    if (parent && !naive_hex(parent, 16, &none, &context->parent_span_id))
        return 0;
    return (context->trace_id_high || context->trace_id) && context->span_id;
}

/* ---------------------------------------------------------------- checks */

typedef int parse_function(struct blkin_context *context, const char *text, size_t length);
typedef int to_function(const struct blkin_context *context, char *buffer);
typedef int naive_function(char *text, size_t length, struct blkin_context *context);

static int from_opencensus(struct blkin_context *context, const char *text, size_t length)
{
    return blkin_context_from_opencensus(context, text, length);
}

static int to_opencensus(const struct blkin_context *context, char *buffer)
{
    return blkin_context_to_opencensus(context, buffer);
}

enum { TRACEPARENT, B3, OPENCENSUS };

static const struct format {
    parse_function *from;
    to_function *to;
    naive_function *naive;
    size_t size; /* of the buffer */
} formats[] = {
    {blkin_context_from_traceparent, blkin_context_to_traceparent, naive_traceparent,
     BLKIN_TRACEPARENT_SIZE},
    {blkin_context_from_b3, blkin_context_to_b3, naive_b3, BLKIN_B3_SIZE},
    {from_opencensus, to_opencensus, naive_opencensus, BLKIN_OPENCENSUS_SIZE},
};

/* Writes and reads again. Returns 0 if the format cannot carry the context. */
static int again(const struct format *format, const struct blkin_context *context,
                 struct blkin_context *got)
{
    char *buffer = exact(format->size);
    int length = format->to(context, buffer);

    *got = marked();
    HOLDS(length == -EINVAL || (length > 0 && (size_t)length <= format->size));
    if (length > 0)
        HOLDS(format->from(got, buffer, (size_t)length) == 0);
    free(buffer);
    return length > 0;
}

/* checks a text that ends where the memory ends */
static void check_text(const struct format *format, const char *text, size_t length)
{
    struct blkin_context context = marked(), untouched = context, naive = {0}, got;
    char *copy = exact(length + 1);
    int error = format->from(&context, text, length);

    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    HOLDS(error == 0 || error == -EINVAL);
    HOLDS(format->naive(copy, length, &naive) == (error == 0));
    free(copy);
    if (error) {
        HOLDS(memcmp(&context, &untouched, sizeof(context)) == 0);
        return;
    }
    HOLDS(same(&context, &naive));
    HOLDS(again(format, &context, &got) && same(&got, &context));
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
        if (again(&formats[i], &context, &got))
            HOLDS(got.trace_id == context.trace_id && got.span_id == context.span_id &&
                  got.trace_id_high == context.trace_id_high);
}

static void check_tracestate(const char *text, size_t length, size_t size)
{
    struct blkin_context context = {.trace_id = 1, .span_id = 2}, before = context;
    char *copy = exact(length + 1), *wanted = exact(length + 1), *buffer = exact(size);
    char *entries[32];
    int count, error = blkin_context_set_tracestate(&context, text, length), written;

    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    count = naive_tracestate(copy, length, entries);
    HOLDS(error == (count < 0 ? -EINVAL : 0));
    HOLDS(context.tracestate == (count > 0 ? text : NULL));
    HOLDS(context.tracestate_length == (count > 0 ? length : 0));
    context.tracestate = NULL;
    context.tracestate_length = 0;
    HOLDS(same(&context, &before));
    if (error) {
        /* set directly: a list that is long enough to be checked is refused */
        context.tracestate = text;
        context.tracestate_length = (uint32_t)length;
        written = blkin_context_to_tracestate(&context, buffer, size);
        HOLDS(written == (length < size ? (int)length : -EINVAL));
    } else {
        HOLDS(blkin_context_set_tracestate(&context, text, length) == 0);
        if (length < size && count) {
            memcpy(wanted, text, length);
            wanted[length] = '\0';
        } else {
            naive_truncate(entries, count, size ? size : 1, wanted);
        }
        written = blkin_context_to_tracestate(&context, buffer, size);
        HOLDS(written == (size ? (int)strlen(wanted) : -EINVAL));
        HOLDS(size == 0 || strcmp(buffer, wanted) == 0);
        /* the shortened list is as valid as the original */
        if (written > 0) {
            HOLDS(blkin_context_set_tracestate(&context, buffer, (size_t)written) == 0);
            HOLDS(context.tracestate == buffer);
        }
    }
    free(copy);
    free(wanted);
    free(buffer);
}

/* Returns a field as a string; NULL if it is missing, or invalid because it has a NUL. */
static char *field_string(const struct blkin_context_text *field)
{
    char *text;

    if (!field->text)
        return NULL;
    text = exact(field->length + 1);
    if (field->length)
        memcpy(text, field->text, field->length);
    text[field->length] = '\0';
    if (strlen(text) != field->length)
        *text = '\0'; /* malformed like the empty string */
    return text;
}

static void check_fields(const struct blkin_context_b3_fields *fields)
{
    struct blkin_context context = marked(), untouched = context, naive = {0}, got = {0};
    struct blkin_context_b3_values values;
    char *texts[5] = {field_string(&fields->trace_id), field_string(&fields->span_id),
                      field_string(&fields->parent_span_id), field_string(&fields->sampled),
                      field_string(&fields->flags)};
    int error = blkin_context_from_b3_fields(&context, fields);

    HOLDS(error == 0 || error == -EINVAL);
    HOLDS(naive_fields(texts, &naive) == (error == 0));
    for (int i = 0; i < 5; i++)
        free(texts[i]);
    if (error) {
        HOLDS(memcmp(&context, &untouched, sizeof(context)) == 0);
        return;
    }
    HOLDS(same(&context, &naive));
    memset(&values, '#', sizeof(values));
    HOLDS(blkin_context_to_b3_fields(&context, &values) == 0);
#define CONTEXT_FIELD(name) {*values.name ? values.name : NULL, strlen(values.name)}
    HOLDS(
        blkin_context_from_b3_fields(&got, &(struct blkin_context_b3_fields){
                                               CONTEXT_FIELD(trace_id), CONTEXT_FIELD(span_id),
                                               CONTEXT_FIELD(parent_span_id),
                                               CONTEXT_FIELD(sampled), CONTEXT_FIELD(flags)}) == 0);
    HOLDS(same(&got, &context));
}

static void check_packed(const uint8_t *data, size_t size)
{
    struct blkin_trace_info_packed packed = {0}, written;
    struct blkin_context context = marked(), untouched = context, got;
    int error;

    memcpy(&packed, data, size < sizeof(packed) ? size : sizeof(packed));
    error = blkin_context_from_packed(&context, &packed);
    HOLDS(error == (packed.trace_id && !packed.span_id ? -EINVAL : 0));
    if (error) {
        HOLDS(memcmp(&context, &untouched, sizeof(context)) == 0);
        return;
    }
    HOLDS(context.trace_id == be64toh(packed.trace_id) && !context.trace_id_high);
    HOLDS(blkin_context_has_ids(&context) == (packed.trace_id != 0));
    HOLDS(blkin_context_to_packed(&context, &written) == 0);
    HOLDS(!packed.trace_id || memcmp(&written, &packed, sizeof(packed)) == 0);
    HOLDS(blkin_context_from_packed(&got, &written) == 0 && same(&got, &context));
}

#endif

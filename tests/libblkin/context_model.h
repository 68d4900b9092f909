/*
 * Rules for each text in a trace context format. The library writes an accepted context again, and
 * reads the written text. The rule of the format says how the texts may differ. A refused text does
 * not change the context. B3's fields mean the same as B3's single header. A second, short and slow
 * reader checks lists (tracestate).
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

/* The text under test, for the message of HOLDS(). */
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

#define HEX "0123456789abcdef"

/* ---------------------------------------------------------------- a naive reader of lists */

/* Splits a list in place; a NUL then ends each entry. Returns the number of entries; -1: the list
 * is not valid. */
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

/* ---------------------------------------------------------------- checks */

typedef int parse_function(struct blkin_context *context, const char *text, size_t length);
typedef int to_function(const struct blkin_context *context, char *buffer);
typedef int meaning_function(const char *text, size_t length, const struct blkin_context *context,
                             const char *written, size_t written_length);

static int from_opencensus(struct blkin_context *context, const char *text, size_t length)
{
    return blkin_context_from_opencensus(context, text, length);
}

static int to_opencensus(const struct blkin_context *context, char *buffer)
{
    return blkin_context_to_opencensus(context, buffer);
}

/* Only the version and the flags of the written text may differ. */
static int is_traceparent(const char *text, size_t length, const struct blkin_context *context,
                          const char *written, size_t written_length)
{
    const int is_version_0 = memcmp(text, "00", 2) == 0;
    unsigned flags = 0;

    if (length < 55 || written_length != 55 || sscanf(text + 53, "%2x", &flags) != 1)
        return 0;
    if (length > 55 && (is_version_0 || text[55] != '-'))
        return 0;
    return strchr(HEX, text[0]) && strchr(HEX, text[1]) && memcmp(text, "ff", 2) != 0 &&
           memcmp(text + 2, written + 2, 51) == 0 && strchr(HEX, text[53]) &&
           strchr(HEX, text[54]) &&
           context->flags == (DECIDED | REMOTE | (flags & 1 ? SAMPLED : 0) |
                              (flags & 2 && is_version_0 ? RANDOM : 0));
}

#define NO_ID "0000000000000000"

/* The written text has no upper 16 digits of zeros, and no parent of zeros. */
static int is_b3(const char *text, size_t length, const struct blkin_context *context,
                 const char *written, size_t written_length)
{
    if (length > 32 && text[32] == '-' && memcmp(text, NO_ID, 16) == 0) {
        text += 16;
        length -= 16;
    }
    if (length > 33 && memcmp(text + length - 17, "-" NO_ID, 17) == 0)
        length -= 17;
    return length == written_length && memcmp(text, written, length) == 0 &&
           context->flags & REMOTE;
}

static int is_opencensus(const char *text, size_t length, const struct blkin_context *context,
                         const char *written, size_t written_length)
{
    const int has_options = length > 27 && text[27] == 2;

    return length >= (has_options ? 29 : 27) && written_length >= 27 &&
           memcmp(text, written, 27) == 0 &&
           !(context->flags & SAMPLED) == !(has_options && text[28] & 1);
}

enum { TRACEPARENT, B3, OPENCENSUS };

static const struct format {
    parse_function *from;
    to_function *to;
    meaning_function *is;
    size_t size; /* of the buffer */
} formats[] = {
    {blkin_context_from_traceparent, blkin_context_to_traceparent, is_traceparent,
     BLKIN_TRACEPARENT_SIZE},
    {blkin_context_from_b3, blkin_context_to_b3, is_b3, BLKIN_B3_SIZE},
    {from_opencensus, to_opencensus, is_opencensus, BLKIN_OPENCENSUS_SIZE},
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

/* Checks a text. The memory must end where the text ends: see exact(). */
static void check_text(const struct format *format, const char *text, size_t length)
{
    struct blkin_context context = marked(), untouched = context, got;
    char written[BLKIN_TRACEPARENT_SIZE + BLKIN_B3_SIZE];
    int error = format->from(&context, text, length), written_length;

    HOLDS(error == 0 || error == -EINVAL);
    if (error) {
        HOLDS(memcmp(&context, &untouched, sizeof(context)) == 0);
        return;
    }
    HOLDS(!context.tracestate && !context.tracestate_length);
    written_length = format->to(&context, written);
    HOLDS(written_length > 0 &&
          format->is(text, length, &context, written, (size_t)written_length));
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
        /* set directly: only a list that is too long for the buffer is checked */
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

/* Appends a field and a dash. Returns 0 if the field cannot be a part of B3's single header. */
static int join_field(char *header, const struct blkin_context_text *field)
{
    if (!field->text)
        return 1;
    if (field->length == 0 || field->length > 32 || memchr(field->text, '-', field->length) ||
        memchr(field->text, '\0', field->length))
        return 0;
    strncat(header, field->text, field->length);
    strcat(header, "-");
    return 1;
}

static int is_field(const struct blkin_context_text *field, const char *text)
{
    return field->text && field->length == strlen(text) &&
           strncasecmp(field->text, text, field->length) == 0;
}

/* Makes B3's single header of the fields. Returns 0 if no header can have the fields. */
static int join_fields(char *header, const struct blkin_context_b3_fields *fields)
{
    const struct blkin_context_text *sampled = &fields->sampled;
    const int is_yes = is_field(sampled, "1") || is_field(sampled, "true");
    const int is_no = is_field(sampled, "0") || is_field(sampled, "false");
    int holds = join_field(header, &fields->trace_id) && join_field(header, &fields->span_id);

    if (!fields->trace_id.text != !fields->span_id.text ||
        (fields->parent_span_id.text && !fields->span_id.text) ||
        (sampled->text && !is_yes && !is_no))
        return 0;
    strcat(header, is_field(&fields->flags, "1") ? "d-" : is_yes ? "1-" : is_no ? "0-" : "");
    holds = holds && join_field(header, &fields->parent_span_id);
    if (*header)
        header[strlen(header) - 1] = '\0';
    return holds;
}

static void check_fields(const struct blkin_context_b3_fields *fields)
{
    struct blkin_context context = marked(), untouched = context, single = {0}, got = {0};
    struct blkin_context_b3_values values;
    char header[140] = "";
    int error = blkin_context_from_b3_fields(&context, fields);

    HOLDS(error == 0 || error == -EINVAL);
    HOLDS((join_fields(header, fields) &&
           blkin_context_from_b3(&single, header, strlen(header)) == 0) == (error == 0));
    if (error) {
        HOLDS(memcmp(&context, &untouched, sizeof(context)) == 0);
        return;
    }
    HOLDS(same(&context, &single));
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

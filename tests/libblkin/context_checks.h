/*
 * What the tests of trace contexts share: inputs are heap copies without slack, so that
 * AddressSanitizer sees a read too far.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_CONTEXT_CHECKS_H
#define TESTS_CONTEXT_CHECKS_H

#include <blkin_context.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not true: %s [%s]\n", __FILE__, __LINE__, #condition, \
                    subject);                                                             \
            failures++;                                                                   \
        }                                                                                 \
    } while (0)

/* what the checks are about, for the message */
static char subject[600];

#define SAMPLED BLKIN_CONTEXT_SAMPLED
#define DECIDED BLKIN_CONTEXT_DECIDED
#define DEBUG   BLKIN_CONTEXT_DEBUG
#define RANDOM  BLKIN_CONTEXT_RANDOM
#define REMOTE  BLKIN_CONTEXT_REMOTE

static inline void about(const char *what, const void *text, size_t length)
{
    int at = snprintf(subject, sizeof(subject), "%s: ", what);

    for (size_t i = 0; i < length && at + 5 < (int)sizeof(subject); i++) {
        unsigned char c = ((const unsigned char *)text)[i];

        at += snprintf(subject + at, sizeof(subject) - (size_t)at,
                       c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
    }
}

static inline void *exact_copy(const void *bytes, size_t length)
{
    void *copy = malloc(length);

    if (!copy)
        abort();
    memcpy(copy, bytes, length);
    return copy;
}

static inline char *repeated(char c, size_t count)
{
    char *text = malloc(count + 1);

    if (!text)
        abort();
    memset(text, c, count);
    text[count] = '\0';
    return text;
}

/* A buffer without slack and without a NUL. */
static inline char *marked_buffer(size_t size)
{
    char *buffer = malloc(size);

    if (!buffer)
        abort();
    memset(buffer, '#', size);
    return buffer;
}

static inline int same(const struct blkin_context *a, const struct blkin_context *b)
{
    return a->trace_id_high == b->trace_id_high && a->trace_id == b->trace_id &&
           a->span_id == b->span_id && a->parent_span_id == b->parent_span_id &&
           a->flags == b->flags && a->tracestate == b->tracestate &&
           a->tracestate_length == b->tracestate_length;
}

/* ---------------------------------------------------------------- parsers behind one type */

typedef int parse_function(struct blkin_context *context, const char *text, size_t length);

static inline int from_opencensus(struct blkin_context *context, const char *text, size_t length)
{
    return blkin_context_from_opencensus(context, text, length);
}

/* A tracestate needs a context, and must leave its ids alone. */
static inline int as_tracestate(struct blkin_context *context, const char *text, size_t length)
{
    const struct blkin_context before = *context;
    int error = blkin_context_set_tracestate(context, text, length);

    CHECK(context->trace_id == before.trace_id && context->span_id == before.span_id &&
          context->flags == before.flags);
    return error;
}

/* Parses a copy without slack; on error the context must be as it was. */
static inline int parse(parse_function *function, struct blkin_context *context, const void *bytes,
                        size_t length)
{
    char *copy = exact_copy(bytes, length);
    struct blkin_context before = *context;
    int error = function(context, copy, length);

    CHECK(error == 0 || error == -EINVAL);
    CHECK(error == 0 || memcmp(&before, context, sizeof(before)) == 0);
    if (context->tracestate == copy)
        context->tracestate = NULL;
    free(copy);
    return error;
}

/* A context that no reader makes, to see what is left of it. */
static inline struct blkin_context marked(void)
{
    struct blkin_context context;

    memset(&context, 0x5a, sizeof(context));
    return context;
}

static inline int accepts(parse_function *function, const void *bytes, size_t length)
{
    struct blkin_context context = marked();

    return parse(function, &context, bytes, length) == 0;
}

static inline void refuses(parse_function *function, const char *what, const char *text)
{
    about(what, text, strlen(text));
    CHECK(!accepts(function, text, strlen(text)));
}

/* ---------------------------------------------------------------- traceparent */

#define PARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

struct expected {
    const char *text;
    uint64_t trace_id_high, trace_id, span_id, parent_span_id;
    uint32_t flags; /* besides REMOTE */
    const char *written;
};

static inline void reads_as(parse_function *function, const struct expected *expected)
{
    struct blkin_context context = marked();
    const struct blkin_context wanted = {
        .trace_id_high = expected->trace_id_high,
        .trace_id = expected->trace_id,
        .span_id = expected->span_id,
        .parent_span_id = expected->parent_span_id,
        .flags = expected->flags | REMOTE,
    };

    CHECK(parse(function, &context, expected->text, strlen(expected->text)) == 0);
    CHECK(same(&context, &wanted));
}

/*
 * A valid text with each of its characters replaced by each byte, and cut at each length. classes:
 * 'h' takes any lower-case hex digit, 's' a decision, any other character only itself.
 */
static inline void test_each_byte(parse_function *function, const char *text, const char *classes)
{
    size_t length = strlen(text);
    char changed[80];

    for (size_t i = 0; i < length; i++) {
        for (int c = 0; c < 256; c++) {
            int wanted = classes[i] == 'h'   ? c && strchr("0123456789abcdef", c)
                         : classes[i] == 's' ? c && strchr("01d", c)
                                             : (unsigned char)classes[i] == c;

            memcpy(changed, text, length);
            changed[i] = (char)c;
            about("each byte", changed, length);
            CHECK(accepts(function, changed, length) == (wanted != 0));
        }
    }
    for (size_t i = 0; i < length; i++) {
        about("cut", text, i);
        /* B3 is complete after the ids and after the decision */
        CHECK(accepts(function, text, i) ==
              (classes[length - 18] == 's' && (i == length - 19 || i == length - 17)));
    }
}

static inline struct blkin_context with_parent(void)
{
    struct blkin_context context = {0};

    CHECK(blkin_context_from_traceparent(&context, PARENT, strlen(PARENT)) == 0);
    return context;
}

/* key, "=", value of the given lengths */
static inline char *entry_of(const char *key, size_t key_length, size_t value_length)
{
    char *text = malloc(key_length + value_length + 2), *z = repeated('z', key_length);
    size_t named = strlen(key);

    if (!text)
        abort();
    if (named)
        memcpy(z, key, named < key_length ? named : key_length);
    sprintf(text, "%s=", z);
    memset(text + key_length + 1, 'v', value_length);
    text[key_length + 1 + value_length] = '\0';
    free(z);
    return text;
}

static inline int context_status(void)
{
    if (failures)
        fprintf(stderr, "%d checks failed\n", failures);
    return failures != 0;
}

#endif

/*
 * Fuzzes the trace context formats. Each input is read by the library and by a second, naive reader
 * of the same format, and both must agree on what is accepted and on what it means. What is
 * accepted must survive writing and reading again; what is refused must leave the context alone.
 *
 * The first byte of the input chooses the format, and whether the rest is taken as it is or builds
 * a valid text that is then damaged a little: random bytes alone would hardly ever be valid.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "blkin_context.h"
#include "fuzz.h"
#include "naive_context.h"
#include "tests/libblkin/context_checks.h"
#include "zipkin_c.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned take_byte(struct input *source)
{
    return (unsigned)take(source, 1);
}

/* ids that are small, full, or zero, and any flags */
static struct blkin_context take_context(struct input *source)
{
    struct blkin_context context = {0};
    unsigned shape = take_byte(source);

    context.trace_id_high = shape & 1 ? take(source, 8) : 0;
    context.trace_id = shape & 2 ? take_byte(source) : take(source, 8);
    context.span_id = shape & 4 ? take_byte(source) : take(source, 8);
    context.parent_span_id = shape & 8 ? take(source, 8) : 0;
    context.flags = take_byte(source) & 31;
    return context;
}

/* Changes some bytes of the text and cuts or extends it. Returns the new length. */
static size_t damage(struct input *source, char *text, size_t length, size_t room)
{
    static const char characters[] = HEX "-=, \t";

    while (source->at < source->end && length) {
        unsigned how = take_byte(source), what = take_byte(source);

        switch (how < 0xc0 ? 0 : how & 7) {
        case 1:
            return what % length;
        case 2:
            if (length < room)
                text[length++] = characters[what % (sizeof(characters) - 1)];
            break;
        case 3: /* zeros: the id that begins there */
            for (size_t i = what % length; i < length && text[i] != '-'; i++)
                text[i] = '0';
            break;
        case 4: /* another version */
            if (length > 2)
                memcpy(text, what & 1 ? "ff" : what & 2 ? "01" : "fe", 2);
            break;
        case 5:
        case 6:
            text[what % length] = characters[take_byte(source) % (sizeof(characters) - 1)];
            break;
        default:
            text[how % length] = (char)what;
        }
    }
    return length;
}

/* ---------------------------------------------------------------- checks */

typedef int to_function(const struct blkin_context *context, char *buffer);
typedef int naive_function(char *text, size_t length, struct blkin_context *context);

static int to_opencensus(const struct blkin_context *context, char *buffer)
{
    return blkin_context_to_opencensus(context, buffer);
}

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

static char *exact(size_t size)
{
    char *buffer = malloc(size);

    REQUIRE(buffer || !size);
    return buffer;
}

/* Writes and reads again. Returns 0 if the format cannot carry the context. */
static int again(const struct format *format, const struct blkin_context *context,
                 struct blkin_context *got)
{
    char *buffer = exact(format->size);
    int length = format->to(context, buffer);

    *got = marked();
    REQUIRE(length == -EINVAL || (length > 0 && (size_t)length <= format->size));
    if (length > 0)
        REQUIRE(format->from(got, buffer, (size_t)length) == 0);
    free(buffer);
    return length > 0;
}

/* text ends where the memory does */
static void check_text(const struct format *format, const char *text, size_t length)
{
    struct blkin_context context = marked(), untouched = context, naive = {0}, got;
    char *copy = exact(length + 1);
    int error = format->from(&context, text, length);

    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    REQUIRE(error == 0 || error == -EINVAL);
    REQUIRE(format->naive(copy, length, &naive) == (error == 0));
    free(copy);
    if (error) {
        REQUIRE(memcmp(&context, &untouched, sizeof(context)) == 0);
        return;
    }
    REQUIRE(same(&context, &naive));
    REQUIRE(again(format, &context, &got) && same(&got, &context));
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
        if (again(&formats[i], &context, &got))
            REQUIRE(got.trace_id == context.trace_id && got.span_id == context.span_id &&
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
    REQUIRE(error == (count < 0 ? -EINVAL : 0));
    REQUIRE(context.tracestate == (count > 0 ? text : NULL));
    REQUIRE(context.tracestate_length == (count > 0 ? length : 0));
    context.tracestate = NULL;
    context.tracestate_length = 0;
    REQUIRE(same(&context, &before));
    if (error) {
        /* put in by hand: what is long enough to be looked at is refused */
        context.tracestate = text;
        context.tracestate_length = (uint32_t)length;
        written = blkin_context_to_tracestate(&context, buffer, size);
        REQUIRE(written == (length < size ? (int)length : -EINVAL));
    } else {
        REQUIRE(blkin_context_set_tracestate(&context, text, length) == 0);
        if (length < size && count) {
            memcpy(wanted, text, length);
            wanted[length] = '\0';
        } else {
            naive_truncate(entries, count, size ? size : 1, wanted);
        }
        written = blkin_context_to_tracestate(&context, buffer, size);
        REQUIRE(written == (size ? (int)strlen(wanted) : -EINVAL));
        REQUIRE(size == 0 || strcmp(buffer, wanted) == 0);
        /* what is shortened is as valid as what came */
        if (written > 0) {
            REQUIRE(blkin_context_set_tracestate(&context, buffer, (size_t)written) == 0);
            REQUIRE(context.tracestate == buffer);
        }
    }
    free(copy);
    free(wanted);
    free(buffer);
}

/* A field as a string, if it came: NULL if not, or if it cannot be valid for it has a NUL. */
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
        *text = '\0'; /* as malformed as the empty string */
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

    REQUIRE(error == 0 || error == -EINVAL);
    REQUIRE(naive_fields(texts, &naive) == (error == 0));
    for (int i = 0; i < 5; i++)
        free(texts[i]);
    if (error) {
        REQUIRE(memcmp(&context, &untouched, sizeof(context)) == 0);
        return;
    }
    REQUIRE(same(&context, &naive));
    memset(&values, '#', sizeof(values));
    REQUIRE(blkin_context_to_b3_fields(&context, &values) == 0);
#define FIELD(name) {*values.name ? values.name : NULL, strlen(values.name)}
    REQUIRE(blkin_context_from_b3_fields(
                &got, &(struct blkin_context_b3_fields){FIELD(trace_id), FIELD(span_id),
                                                        FIELD(parent_span_id), FIELD(sampled),
                                                        FIELD(flags)}) == 0);
    REQUIRE(same(&got, &context));
}

static void check_packed(const uint8_t *data, size_t size)
{
    struct blkin_trace_info_packed packed = {0}, written;
    struct blkin_context context = marked(), untouched = context, got;
    int error;

    memcpy(&packed, data, size < sizeof(packed) ? size : sizeof(packed));
    error = blkin_context_from_packed(&context, &packed);
    REQUIRE(error == (packed.trace_id && !packed.span_id ? -EINVAL : 0));
    if (error) {
        REQUIRE(memcmp(&context, &untouched, sizeof(context)) == 0);
        return;
    }
    REQUIRE(context.trace_id == be64toh(packed.trace_id) && !context.trace_id_high);
    REQUIRE(blkin_context_has_ids(&context) == (packed.trace_id != 0));
    REQUIRE(blkin_context_to_packed(&context, &written) == 0);
    REQUIRE(!packed.trace_id || memcmp(&written, &packed, sizeof(packed)) == 0);
    REQUIRE(blkin_context_from_packed(&got, &written) == 0 && same(&got, &context));
}

/* ---------------------------------------------------------------- inputs */

static size_t build_context_text(struct input *source, unsigned format, char *text, size_t room)
{
    const struct blkin_context context = take_context(source);
    int length = formats[format].to(&context, text);

    return damage(source, text, length < 0 ? 0 : (size_t)length, room);
}

/* One entry for each byte, whose value is the length of its value; some white space. */
static size_t build_tracestate(struct input *source, char *text, size_t room)
{
    unsigned count = take_byte(source) % 36;
    size_t length = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned value = take_byte(source);

        if (i)
            length += (size_t)sprintf(text + length, "%s,", value & 1 ? "" : " \t");
        if (value)
            length += (size_t)sprintf(text + length, "k%u=%0*u", i, (int)value, i);
    }
    return damage(source, text, length, room);
}

static const char *exact_part(const char *text, size_t length, int came)
{
    char *part = came ? exact(length) : NULL;

    if (part && length)
        memcpy(part, text, length);
    return part;
}

/* Cuts the text into the five fields: ids where a valid text has them, damaged or not. */
static void fuzz_fields(struct input *source)
{
    const struct blkin_context context = take_context(source);
    static const char *const decisions[] = {"0", "1", "true", "false", "d", "", "x", "10"};
    unsigned came = take_byte(source), decision = take_byte(source);
    const char *sampled = decisions[decision & 7], *flags = decisions[decision >> 3 & 7];
    struct blkin_context_b3_values values = {"", "", "", "", ""};
    struct blkin_context_b3_fields fields;
    size_t trace, span, parent;

    (void)blkin_context_to_b3_fields(&context, &values);
    trace = damage(source, values.trace_id, strlen(values.trace_id), 32);
    span = strlen(values.span_id);
    parent = strlen(values.parent_span_id);
    if (came & 32 && span)
        span = damage(source, values.span_id, span, 16);
    if (came & 64 && parent)
        parent = damage(source, values.parent_span_id, parent, 16);
    fields.trace_id.text = exact_part(values.trace_id, trace, came & 1);
    fields.trace_id.length = trace;
    fields.span_id.text = exact_part(values.span_id, span, came & 2);
    fields.span_id.length = span;
    fields.parent_span_id.text = exact_part(values.parent_span_id, parent, came & 4);
    fields.parent_span_id.length = parent;
    fields.sampled.text = exact_part(sampled, strlen(sampled), came & 8);
    fields.sampled.length = strlen(sampled);
    fields.flags.text = exact_part(flags, strlen(flags), came & 16);
    fields.flags.length = strlen(flags);
    check_fields(&fields);
    free((void *)fields.trace_id.text);
    free((void *)fields.span_id.text);
    free((void *)fields.parent_span_id.text);
    free((void *)fields.sampled.text);
    free((void *)fields.flags.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[36 * 264 + 4096];
    struct input source = {data, data + size};
    unsigned choice = take_byte(&source), format = choice % 6, built = choice & 0x80;
    size_t length, room;
    const char *input;
    char *copy = NULL;

    if (format == 4) {
        fuzz_fields(&source);
        return 0;
    }
    if (format == 5) {
        check_packed(source.at, (size_t)(source.end - source.at));
        return 0;
    }
    room = format == 3 ? take_byte(&source) * 17 : 0;
    if (built) {
        length = format == 3 ? build_tracestate(&source, text, sizeof(text))
                             : build_context_text(&source, format, text, sizeof(text));
        copy = exact(length);
        if (length)
            memcpy(copy, text, length);
        input = copy;
    } else {
        length = (size_t)(source.end - source.at);
        input = (const char *)source.at;
    }
    if (format == 3)
        check_tracestate(input, length, room);
    else
        check_text(&formats[format], input, length);
    free(copy);
    return 0;
}

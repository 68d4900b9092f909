/*
 * Fuzzes the trace context formats against tests/libblkin/context_model.h.
 *
 * The first byte of the input chooses the format and the use of the other bytes. These bytes are
 * the text itself, or they build a valid text that is then damaged a little: random bytes are
 * hardly ever valid.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "tests/libblkin/context_model.h"

static unsigned take_byte(struct fuzz *source)
{
    return (unsigned)take(source, 1);
}

/* Returns ids that are small, full, or zero, and any flags. */
static struct blkin_context take_context(struct fuzz *source)
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
static size_t damage(struct fuzz *source, char *text, size_t length, size_t room)
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
        case 3: /* zeros in place of the id that begins there */
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

/* ---- inputs ---------------------------------------------------------------------------------- */

/* After the three formats of context_model.h. */
enum { TRACESTATE = 3, B3_FIELDS, PACKED_TEXT, CONTEXT_FORMATS };

static size_t build_context_text(struct fuzz *source, unsigned format, char *text, size_t room)
{
    const struct blkin_context context = take_context(source);
    int length = formats[format].to(&context, text);

    return damage(source, text, length < 0 ? 0 : (size_t)length, room);
}

/* Makes entries; the length of each value is a byte of the input. Some entries have white space
 * before them. */
static size_t build_tracestate(struct fuzz *source, char *text, size_t room)
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

static const char *exact_part(const char *text, size_t length, int is_given)
{
    char *part = is_given ? exact(length) : NULL;

    if (part && length)
        memcpy(part, text, length);
    return part;
}

/* Makes the five fields of a valid context, some of them damaged or missing. */
static void fuzz_fields(struct fuzz *source)
{
    const struct blkin_context context = take_context(source);
    static const char *const decisions[] = {"0", "1", "true", "false", "d", "", "x", "10"};
    unsigned came = take_byte(source), decision = take_byte(source);
    const char *sampled = decisions[decision & 7], *flags = decisions[decision >> 3 & 7];
    struct blkin_context_b3_values values = {"", "", "", "", ""};
    const char *const parts[] = {values.trace_id, values.span_id, values.parent_span_id, sampled,
                                 flags};
    struct blkin_context_text texts[5];
    size_t lengths[5];

    (void)blkin_context_to_b3_fields(&context, &values);
    for (unsigned i = 0; i < 5; i++)
        lengths[i] = strlen(parts[i]);
    lengths[0] = damage(source, values.trace_id, lengths[0], 32);
    if (came & 32 && lengths[1])
        lengths[1] = damage(source, values.span_id, lengths[1], 16);
    if (came & 64 && lengths[2])
        lengths[2] = damage(source, values.parent_span_id, lengths[2], 16);
    for (unsigned i = 0; i < 5; i++)
        texts[i] = (struct blkin_context_text){exact_part(parts[i], lengths[i], came & 1U << i),
                                               lengths[i]};
    check_fields(
        &(struct blkin_context_b3_fields){texts[0], texts[1], texts[2], texts[3], texts[4]});
    for (unsigned i = 0; i < 5; i++)
        free((void *)texts[i].text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[36 * 264 + 4096];
    struct fuzz source = {data, data + size};
    unsigned choice = take_byte(&source), format = choice % CONTEXT_FORMATS, built = choice & 0x80;
    size_t length, room;
    const char *input;
    char *copy = NULL;

    if (format == B3_FIELDS) {
        fuzz_fields(&source);
        return 0;
    }
    if (format == PACKED_TEXT) {
        check_packed(source.at, (size_t)(source.end - source.at));
        return 0;
    }
    room = format == TRACESTATE ? take_byte(&source) * 17 : 0;
    if (built) {
        length = format == TRACESTATE ? build_tracestate(&source, text, sizeof(text))
                                      : build_context_text(&source, format, text, sizeof(text));
        copy = exact(length);
        if (length)
            memcpy(copy, text, length);
        input = copy;
    } else {
        length = (size_t)(source.end - source.at);
        input = (const char *)source.at;
    }
    if (format == TRACESTATE)
        check_tracestate(input, length, room);
    else
        check_text(&formats[format], input, length);
    free(copy);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "otlp_value.h"

#include "babeltrace-plugin/base/duration.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* levels of nested values; deeper values are written as "..." */
#define DEPTH_MAX 32

void otlp_line_put(struct otlp_line *line, struct text text)
{
    const size_t room = line->size - line->length;
    const size_t length = text.length < room ? text.length : room;

    if (length)
        memcpy(line->data + line->length, text.data, length);
    line->length += length;
}

void otlp_line_put_string(struct otlp_line *line, const char *string)
{
    otlp_line_put(line, text_of(string));
}

/* Writes a text in quotes. */
static void otlp_line_put_quoted(struct otlp_line *line, struct text text)
{
    char escaped[8];

    otlp_line_put_string(line, "\"");
    for (size_t i = 0; i < text.length && line->length < line->size; i++) {
        const unsigned char c = (unsigned char)text.data[i];

        if (c == '"' || c == '\\')
            (void)snprintf(escaped, sizeof(escaped), "\\%c", c);
        else if (c < 0x20)
            (void)snprintf(escaped, sizeof(escaped), "\\u%04x", c);
        else
            escaped[0] = '\0';
        otlp_line_put(line, escaped[0] ? text_of(escaped) : (struct text){&text.data[i], 1});
    }
    otlp_line_put_string(line, "\"");
}

static void otlp_line_put_base64(struct otlp_line *line, struct text bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes.length && line->length < line->size; i += 3) {
        const size_t count = bytes.length - i < 3 ? bytes.length - i : 3;
        unsigned char three[3] = {0};
        char four[5] = "====";

        memcpy(three, bytes.data + i, count);
        four[0] = digits[three[0] >> 2];
        four[1] = digits[(three[0] & 3) << 4 | three[1] >> 4];
        if (count > 1)
            four[2] = digits[(three[1] & 15) << 2 | three[2] >> 6];
        if (count > 2)
            four[3] = digits[three[2] & 63];
        otlp_line_put_string(line, four);
    }
}

/* Writes a double; NaN and infinity as a text, because JSON has no number for them. */
static void otlp_line_put_double(struct otlp_line *line, double real, unsigned depth)
{
    const char *quote = depth && !isfinite(real) ? "\"" : "";
    char number[32];

    if (isfinite(real))
        (void)real_show(number, sizeof(number), real);
    else
        (void)snprintf(number, sizeof(number), "%s%s%s", quote,
                       isnan(real) ? "NaN"
                       : real > 0  ? "Infinity"
                                   : "-Infinity",
                       quote);
    otlp_line_put_string(line, number);
}

/* Writes an array or, with_keys, an object of attributes. tag: of the elements or attributes. */
static void otlp_value_put_members(struct otlp_line *line, struct text message, enum otlp_field tag,
                                   bool with_keys, unsigned depth)
{
    struct pb_reader reader = pb_reader_of(message);
    const char *const begin = with_keys ? "{" : "[", *before = begin;
    struct pb_member field;

    while (pb_next(&reader, &field) && line->length < line->size) {
        struct text value = pb_text(&field);

        if (field.tag != (uint32_t)tag)
            continue;
        otlp_line_put_string(line, before);
        if (with_keys) {
            otlp_line_put_quoted(line, otlp_find(value, OTLP_ATTRIBUTE_KEY));
            otlp_line_put_string(line, ":");
            value = otlp_find(value, OTLP_ATTRIBUTE_VALUE);
        }
        otlp_value_put(line, value, depth + 1);
        before = ",";
    }
    if (before == begin)
        otlp_line_put_string(line, begin);
    otlp_line_put_string(line, with_keys ? "}" : "]");
}

void otlp_value_put_attributes(struct otlp_line *line, struct text message, enum otlp_field tag,
                               unsigned depth)
{
    otlp_value_put_members(line, message, tag, true, depth);
}

void otlp_value_put(struct otlp_line *line, struct text value, unsigned depth)
{
    const char *quote = depth ? "\"" : "";
    struct pb_member field;
    char number[32];

    if (depth > DEPTH_MAX || !otlp_find_field(value, OTLP_ANY, &field)) {
        otlp_line_put_string(line, depth > DEPTH_MAX ? "\"...\"" : depth ? "null" : "");
        return;
    }
    switch (field.tag) {
    case OTLP_VALUE_STRING:
        if (depth)
            otlp_line_put_quoted(line, pb_text(&field));
        else
            otlp_line_put(line, pb_text(&field));
        break;
    case OTLP_VALUE_BOOL:
        otlp_line_put_string(line, field.value ? "true" : "false");
        break;
    case OTLP_VALUE_INT:
        (void)snprintf(number, sizeof(number), "%" PRId64, (int64_t)field.value);
        otlp_line_put_string(line, number);
        break;
    case OTLP_VALUE_DOUBLE:
        otlp_line_put_double(line, pb_double(field.value), depth);
        break;
    case OTLP_VALUE_ARRAY:
        otlp_value_put_members(line, pb_text(&field), OTLP_ARRAY_VALUE, false, depth);
        break;
    case OTLP_VALUE_LIST:
        otlp_value_put_attributes(line, pb_text(&field), OTLP_LIST_ATTRIBUTE, depth);
        break;
    case OTLP_VALUE_BYTES:
        otlp_line_put_string(line, quote);
        otlp_line_put_base64(line, pb_text(&field));
        otlp_line_put_string(line, quote);
        break;
    default:
        otlp_line_put_string(line, depth ? "null" : "");
        break;
    }
}

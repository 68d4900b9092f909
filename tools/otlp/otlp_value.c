/*
 * Values of attributes, as text.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of values within values: what is deeper is left out. */
#define DEPTH_MAX 8

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

/* In quotes, where it is a part of something. */
static void otlp_line_put_quoted(struct otlp_line *line, struct text text)
{
    otlp_line_put_string(line, "\"");
    for (size_t i = 0; i < text.length; i++) {
        const char c = text.data[i];

        if (c == '"' || c == '\\')
            otlp_line_put_string(line, "\\");
        otlp_line_put(line, c == '\n'                 ? text_of("\\n")
                            : (unsigned char)c < 0x20 ? text_of(" ")
                                                      : (struct text){&text.data[i], 1});
    }
    otlp_line_put_string(line, "\"");
}

static void otlp_line_put_hex(struct otlp_line *line, struct text bytes)
{
    for (size_t i = 0; i < bytes.length && line->length < line->size; i++) {
        char digits[4];

        (void)snprintf(digits, sizeof(digits), "%02x", (unsigned char)bytes.data[i]);
        otlp_line_put_string(line, digits);
    }
}

/* The field of a message AnyValue that tells its value: the last one. */
bool otlp_value_field(struct text value, struct pb_member *last)
{
    struct pb_reader reader = pb_reader_of(value);
    struct pb_member field;
    bool is_there = false;

    while (pb_next(&reader, &field)) {
        *last = field;
        is_there = true;
    }
    return is_there;
}

static void otlp_value_put_array(struct otlp_line *line, struct text array, unsigned depth)
{
    struct pb_reader reader = pb_reader_of(array);
    struct pb_member field;
    const char *before = "[";

    while (pb_next(&reader, &field) && line->length < line->size) {
        if (field.tag != OTLP_ARRAY_VALUE)
            continue;
        otlp_line_put_string(line, before);
        otlp_value_put(line, pb_text(&field), depth + 1);
        before = ",";
    }
    otlp_line_put_string(line, *before == '[' ? "[]" : "]");
}

void otlp_value_put_attributes(struct otlp_line *line, struct text message, enum otlp_field tag,
                               unsigned depth)
{
    struct pb_reader reader = pb_reader_of(message);
    struct text key, value;
    const char *before = "{";

    while (line->length < line->size && otlp_next_attribute(&reader, tag, &key, &value)) {
        otlp_line_put_string(line, before);
        otlp_line_put_quoted(line, key);
        otlp_line_put_string(line, ":");
        otlp_value_put(line, value, depth + 1);
        before = ",";
    }
    if (*before == ',')
        otlp_line_put_string(line, "}");
}

/* As JSON, but for a text that is the whole. */
void otlp_value_put(struct otlp_line *line, struct text value, unsigned depth)
{
    struct pb_member field;
    char number[32];

    if (depth > DEPTH_MAX || !otlp_value_field(value, &field))
        return;
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
        (void)snprintf(number, sizeof(number), "%.17g", pb_double(field.value));
        otlp_line_put_string(line, number);
        break;
    case OTLP_VALUE_ARRAY:
        otlp_value_put_array(line, pb_text(&field), depth);
        break;
    case OTLP_VALUE_LIST:
        otlp_value_put_attributes(line, pb_text(&field), OTLP_LIST_ATTRIBUTE, depth);
        break;
    case OTLP_VALUE_BYTES:
        otlp_line_put_hex(line, pb_text(&field));
        break;
    default:
        break;
    }
}

/*
 * Writes values of OTLP's attributes as JSON, as OpenTelemetry specifies for other protocols
 * (common, AnyValue). If the whole value is a text, bytes (base64) or empty, it has no quotes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_VALUE_H
#define BLKIN_TOOLS_OTLP_VALUE_H

#include "otlp_fields.h"

#include <stdbool.h>
#include <stddef.h>

/* A text in a fixed array. The part that does not fit is cut off. */
struct otlp_line {
    char *data;
    size_t size;
    size_t length;
};

void otlp_line_put(struct otlp_line *line, struct text text);
void otlp_line_put_string(struct otlp_line *line, const char *string);

static inline struct text otlp_line_text(const struct otlp_line *line)
{
    return (struct text){line->data, line->length};
}

/* Finds the next attribute of a message whose attributes are fields of this tag. value: the message
 * AnyValue. */
static inline bool otlp_next_attribute(struct pb_reader *reader, enum otlp_field tag,
                                       struct text *key, struct text *value)
{
    struct pb_member field;

    while (pb_next(reader, &field)) {
        if (field.tag != (uint32_t)tag)
            continue;
        *key = otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY);
        *value = otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE);
        return true;
    }
    return false;
}

/* Returns the message AnyValue of the first attribute with this key; data is NULL without one. */
static inline struct text otlp_attribute(struct text message, enum otlp_field tag, struct text key)
{
    struct pb_reader reader = pb_reader_of(message);
    struct text found, value;

    while (otlp_next_attribute(&reader, tag, &found, &value)) {
        if (text_equal(found, key))
            return value;
    }
    return (struct text){NULL, 0};
}

/* Returns the code of a message Status. */
static inline uint64_t otlp_status_code(struct text status)
{
    struct pb_member field;

    return otlp_find_field(status, OTLP_STATUS_CODE, &field) ? field.value : 0;
}

/* Returns false if the value is no integer. */
static inline bool otlp_value_integer(struct text value, int64_t *number)
{
    struct pb_member field;

    if (!otlp_find_field(value, OTLP_ANY, &field) || field.tag != OTLP_VALUE_INT)
        return false;
    *number = (int64_t)field.value;
    return true;
}

/* Writes a message AnyValue. depth: the number of values around it. */
void otlp_value_put(struct otlp_line *line, struct text value, unsigned depth);

/* Writes the attributes of a message, which are fields of this tag: {"key":value,...}, or {}. */
void otlp_value_put_attributes(struct otlp_line *line, struct text message, enum otlp_field tag,
                               unsigned depth);

#endif

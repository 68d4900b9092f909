/*
 * Values of attributes in OTLP, as text: JSON, but for a text that is the whole value.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_OTLP_VALUE_H
#define BLKIN_OUTPUT_OTLP_VALUE_H

#include "otlp_fields.h"

#include <stdbool.h>
#include <stddef.h>

/* What does not fit is cut off. */
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

/* The field of a message AnyValue that tells its value: the last one. Returns false if there is
 * none. */
bool otlp_value_field(struct text value, struct pb_member *last);

/* A message AnyValue; depth: of values that it is in, 0 for the whole. */
void otlp_value_put(struct otlp_line *line, struct text value, unsigned depth);

/* Of a message that has attributes in fields of this tag: {"key":value,...}; "" if it has none. */
void otlp_value_put_attributes(struct otlp_line *line, struct text message, enum otlp_field tag,
                               unsigned depth);

#endif

/*
 * Members of a JSON document, whatever it is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_JSON_H
#define BLKIN_TOOLS_JSON_H

#include <jansson.h>
#include <stdint.h>

/* "": there is no such text. */
static inline const char *text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

/* 0: there is no such integer. */
static inline int64_t number_in(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

#endif

/*
 * Members of a JSON document of unknown form.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_JSON_H
#define BLKIN_TOOLS_JSON_H

#include <jansson.h>
#include <stdint.h>

/* Returns "" if the member is missing or no string. */
static inline const char *text_in(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

/* Returns 0 if the member is missing or no integer. */
static inline int64_t number_in(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

#endif

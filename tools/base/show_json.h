/*
 * A JSON document as a person reads it: "name: value" lines, and lists of objects as tables.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SHOW_JSON_H
#define BLKIN_TOOLS_SHOW_JSON_H

#include <jansson.h>

/* Counters that are 0, and what is null or empty, are left out. */
void show_json(const json_t *json);

#endif

/*
 * Prints a JSON document for people: "name value" lines, and lists of objects as tables.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SHOW_JSON_H
#define BLKIN_TOOLS_SHOW_JSON_H

#include <jansson.h>

/* Leaves out counters that are 0, nulls, and empty values. */
void show_json(const json_t *json);

#endif

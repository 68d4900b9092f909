/*
 * Halves of requests between programs that send each other no ids
 * (babeltrace-plugin/stages/join.h): a list of halves, and the text of a half in a message of the
 * cluster.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HALVES_H
#define BLKIN_TOOLS_HALVES_H

#include "babeltrace-plugin/stages/join.h"
#include "trace_id.h"

#include <jansson.h>

struct halves {
    struct join_half *list;
    size_t count, room;
};

void halves_free(struct halves *halves);

/* Appends a copy. Returns false when out of memory. */
bool halves_add(struct halves *halves, const struct join_half *half);

/* Returns true if the half has exactly this trace id, with the upper half. */
bool half_is_of(const struct join_half *half, struct trace_id id);

/* Returns the half as a text: "c" or "s" and nine numbers of 16 hex digits. The numbers are key,
 * network, bytes of request and answer, the trace's id (two numbers), the span's id, begin and end
 * in ns since 1970. */
json_t *half_json(const struct join_half *half);
/* Returns false if the text has another form, or if the end is before the begin. */
bool half_read(const json_t *text, struct join_half *half);

#endif

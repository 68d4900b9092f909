/*
 * Batches of encoded spans: frames them as a request, and reads their units.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_parts.h"

#include "json.h"

#include <stdio.h>

static bool otlp_begins_group(const char *unit)
{
    return *unit == OTLP_RESOURCE_SPANS;
}

/* Skips a length of one or two bytes. */
static char *otlp_skip(char *at)
{
    const unsigned low = (unsigned char)at[0], high = (unsigned char)at[1];

    return low < 128 ? at + 1 + low : at + 2 + (low - 128 + (high << 7));
}

/* Returns the first ScopeSpans of a ResourceSpans, or the first span of a ScopeSpans. `at` is
 * behind the message's tag. Skips the resource or scope and the schema URL. */
static char *otlp_first_in(char *at)
{
    at += 1 + PB_PADDED;
    while (*at != OTLP_SCOPE_SPANS) /* also the field number of spans */
        at = otlp_skip(at + 1);
    return at;
}

/* Returns the ScopeSpans of a unit that begins a group. */
static char *otlp_scope_spans_of(char *unit)
{
    return otlp_first_in(unit);
}

size_t otlp_head_length(const char *unit)
{
    char *const at = (char *)(uintptr_t)unit; /* const in effect: only read */

    return otlp_begins_group(unit) ? (size_t)(otlp_first_in(otlp_scope_spans_of(at)) - at) : 0;
}

static void otlp_end_group(char *unit, const char *end)
{
    char *const spans = otlp_scope_spans_of(unit) + 1;

    pb_put_padded(unit + 1, (uint32_t)(end - (unit + 1 + PB_PADDED)), PB_PADDED);
    pb_put_padded(spans, (uint32_t)(end - (spans + PB_PADDED)), PB_PADDED);
}

/* Writes a head before the unit, over a head and a span of the same group. */
static void otlp_begin_group(char *data, uint32_t *starts, uint32_t unit)
{
    uint32_t first = unit;
    size_t length;

    while (!otlp_begins_group(data + starts[first]))
        first--;
    if (first == unit)
        return;
    length = otlp_head_length(data + starts[first]);
    memmove(data + starts[unit] - length, data + starts[first], length);
    starts[unit] -= (uint32_t)length;
}

void otlp_frame(char *data, uint32_t *starts, uint32_t first, uint32_t end, size_t length)
{
    uint32_t group = first;

    otlp_begin_group(data, starts, first);
    for (uint32_t i = first + 1; i < end; i++) {
        if (!otlp_begins_group(data + starts[i]))
            continue;
        otlp_end_group(data + starts[group], data + starts[i]);
        group = i;
    }
    otlp_end_group(data + starts[group], data + length);
}

/* The ids are the first fields of a span. */
static const char *otlp_ids_of(struct text unit)
{
    const char *const at = unit.data + otlp_head_length(unit.data);

    return at + 1 + (at[2] & 0x80 ? PB_PADDED : OTLP_SPAN_LENGTH) + 2;
}

void otlp_trace_of(struct text unit, uint64_t id[2])
{
    memcpy(id, otlp_ids_of(unit), 16);
    id[0] = be64toh(id[0]);
    id[1] = be64toh(id[1]);
}

void otlp_describe(struct text unit, char *line, size_t size)
{
    const char *const at = otlp_ids_of(unit);
    uint64_t ids[3];
    char digits[3 * 16];

    memcpy(ids, at, 16);
    memcpy(ids + 2, at + 16 + 2, 8);
    for (int i = 0; i < 3; i++)
        (void)json_put_hex(digits + 16 * i, be64toh(ids[i]));
    snprintf(line, size, "trace %.32s, span %.16s", digits, digits + 32);
}

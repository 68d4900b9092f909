/* SPDX-License-Identifier: BSD-2-Clause */
#include "halves.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of a half's text, in their order: members of struct join_half of 8 bytes. */
static const size_t half_numbers[] = {
    offsetof(struct join_half, key),           offsetof(struct join_half, network),
    offsetof(struct join_half, request_bytes), offsetof(struct join_half, response_bytes),
    offsetof(struct join_half, trace_id_high), offsetof(struct join_half, trace_id),
    offsetof(struct join_half, span_id),       offsetof(struct join_half, start_ns),
    offsetof(struct join_half, end_ns)};

#define HALF_NUMBERS (sizeof(half_numbers) / sizeof(half_numbers[0]))

void halves_free(struct halves *halves)
{
    free(halves->list);
    *halves = (struct halves){.count = 0};
}

bool halves_add(struct halves *halves, const struct join_half *half)
{
    if (!ARRAY_FITS(halves->list, halves->room, halves->count))
        return false;
    halves->list[halves->count++] = *half;
    return true;
}

bool half_is_of(const struct join_half *half, struct trace_id id)
{
    return half->trace_id == id.low && half->trace_id_high == id.high;
}

json_t *half_json(const struct join_half *half)
{
    char text[2 + HALF_NUMBERS * 16];

    text[0] = half->is_client ? 'c' : 's';
    for (size_t i = 0; i < HALF_NUMBERS; i++) {
        uint64_t number;

        memcpy(&number, (const char *)half + half_numbers[i], sizeof(number));
        (void)snprintf(text + 1 + i * 16, 17, "%016" PRIx64, number);
    }
    return json_string(text);
}

bool half_read(const json_t *text, struct join_half *half)
{
    const char *at = json_string_value(text);

    if (!at || json_string_length(text) != 1 + HALF_NUMBERS * 16 || (*at != 'c' && *at != 's'))
        return false;
    *half = (struct join_half){.is_client = *at == 'c'};
    for (size_t i = 0; i < HALF_NUMBERS; i++) {
        uint64_t number;

        if (!hex_read((struct text){at + 1 + i * 16, 16}, &number))
            return false;
        memcpy((char *)half + half_numbers[i], &number, sizeof(number));
    }
    return half->start_ns >= 0 && half->end_ns >= half->start_ns;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "halves.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HALF_NUMBERS 9

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
    const uint64_t numbers[HALF_NUMBERS] = {half->key,
                                            half->network,
                                            half->request_bytes,
                                            half->response_bytes,
                                            half->trace_id_high,
                                            half->trace_id,
                                            half->span_id,
                                            (uint64_t)half->start_ns,
                                            (uint64_t)half->end_ns};
    char text[2 + HALF_NUMBERS * 16];

    text[0] = half->is_client ? 'c' : 's';
    for (size_t i = 0; i < HALF_NUMBERS; i++)
        (void)snprintf(text + 1 + i * 16, 17, "%016" PRIx64, numbers[i]);
    return json_string(text);
}

bool half_read(const json_t *text, struct join_half *half)
{
    const char *at = json_string_value(text);
    uint64_t numbers[HALF_NUMBERS];

    if (!at || json_string_length(text) != 1 + HALF_NUMBERS * 16 || (*at != 'c' && *at != 's'))
        return false;
    for (size_t i = 0; i < HALF_NUMBERS; i++) {
        if (!hex_read((struct text){at + 1 + i * 16, 16}, &numbers[i]))
            return false;
    }
    *half = (struct join_half){.is_client = *at == 'c',
                               .key = numbers[0],
                               .network = numbers[1],
                               .request_bytes = numbers[2],
                               .response_bytes = numbers[3],
                               .trace_id_high = numbers[4],
                               .trace_id = numbers[5],
                               .span_id = numbers[6],
                               .start_ns = (int64_t)numbers[7],
                               .end_ns = (int64_t)numbers[8]};
    return half->start_ns >= 0 && half->end_ns >= half->start_ns;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "halves.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/hex.h"

#include <inttypes.h>
#include <limits.h>
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

/* ---- halves that are known for a while ------------------------------------------------------- */

bool half_set_init(struct half_set *set)
{
    return table_init(&set->halves);
}

static void half_set_free_link(struct table_link *link)
{
    free(caa_container_of(link, struct known_half, half.in_table));
}

void half_set_free(struct half_set *set)
{
    if (set->halves.buckets)
        table_destroy(&set->halves, half_set_free_link);
}

bool half_set_add(struct half_set *set, const struct join_half *half, int64_t until_ms)
{
    const uint64_t hash = hash_number(set->halves.seed, half->key);
    struct known_half *known;

    table_find(known, &set->halves, hash, half.in_table,
               known->half.span_id == half->span_id && known->half.trace_id == half->trace_id &&
                   known->half.is_client == half->is_client);
    if (known || set->halves.count >= HALF_SET_MAX)
        return false;
    known = malloc(sizeof(*known));
    if (!known)
        return false;
    known->half = *half;
    known->until_ms = until_ms;
    table_add(&set->halves, &known->half.in_table, hash);
    return true;
}

void half_set_forget(struct half_set *set, int64_t now_ms)
{
    struct known_half *known;

    table_for_each(known, &set->halves, half.in_table)
    {
        if (known->until_ms >= now_ms)
            continue;
        table_remove(&set->halves, &known->half.in_table);
        free(known);
    }
}

struct stage *half_set_decide(const struct half_set *set, int64_t skew_ns)
{
    struct stage *stage = join_stage_new(&(struct join_options){.wait_ns = INT64_MAX,
                                                                .root_wait_ns = INT64_MAX,
                                                                .skew_ns = skew_ns,
                                                                .max_bytes = UINT64_MAX / 2});
    const struct known_half *known;

    if (!stage)
        return NULL;
    table_for_each(known, &set->halves, half.in_table) join_stage_know(stage, &known->half);
    (void)stage->kind->flush_some(stage, UINT_MAX);
    return stage;
}

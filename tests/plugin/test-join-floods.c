/*
 * Joining with malicious spans: memory stays bounded, and the stage delivers every span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "join_checks.h"

static struct made unjoined_servers(uint64_t i)
{
    return SERVES(i + 1, i + 1, 1, 2, i + 1);
}

static struct made equal_keys(uint64_t i)
{
    return i % 2 ? SERVES(i + 1, i + 1, 1, 2, 99)
                 : CLIENT(i % 4 ? MARK : 0, i + 1, i + 1, 0, 1, 2, 99);
}

static struct made children_only(uint64_t i)
{
    return CALL(i + 1, i + 1, 5, 1, 2);
}

static struct made one_trace(uint64_t i)
{
    return CALL(7, i + 1, 5, 1, 2);
}

/* Returns a span of a chain: each server is called by the next one. */
static struct made endless_chain(uint64_t i)
{
    return i % 2 ? CLIENT(MARK, i / 2 + 2, i + 1, 5, 1, 2, i / 2 + 1)
                 : SERVES(i / 2 + 1, i + 1, 1, 2, i / 2 + 1);
}

static void flood(struct made (*make)(uint64_t), size_t max_bytes)
{
    struct join_options little = options;
    struct stage *join;

    little.max_bytes = max_bytes;
    join = begin(&little);
    is_quiet = true;
    for (uint64_t i = 0; i < MANY; i++) {
        give_at(join, 1 + (int64_t)(i / 1000), make(i));
        CHECK(join_stage_counts(join).held_bytes <= max_bytes);
    }
    /* each held span of these was a trace of its own */
    if (make == unjoined_servers || make == children_only)
        CHECK(join_stage_counts(join).early == MANY - held && held > 0);
    (void)end(join);
    CHECK(out_count == MANY);
}

TEST(test_floods)
{
    static struct made (*const floods[])(uint64_t) = {unjoined_servers, equal_keys, children_only,
                                                      one_trace, endless_chain};

    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        flood(floods[i], 1 << 20);
        flood(floods[i], 60 << 20);
    }
}

CHECK_MAIN

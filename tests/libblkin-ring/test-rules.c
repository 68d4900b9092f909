/*
 * Slow rules of the host, which a program gets with its rings if it has no rules of its own; and
 * the flags of traces that begin in a program. The tests run without LTTng.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "libblkin/policy/slow.h"
#include "libblkin-ring/parts/scenarios.h"

#include <string.h>

/* ---- the host's rules ---- */

/* Does this machine have slow rules itself? Then the checks cannot know the rules of the program.
 */
static bool host_has_rules(void)
{
    return access("/run/blkin/slow", F_OK) == 0;
}

static bool rule_is_above_s(uint64_t seconds)
{
    return blkin_slow_least_ns == seconds * 1000000000 + 1;
}

/* A program gets rules with its rings, and changed rules with its periodic work. Damaged rules
 * change nothing. */
TEST(rules)
{
    struct ring_rules *there = (struct ring_rules *)(void *)(memory.memory.at + RING_RULES_AT);
    unsigned before;

    memory_set_rules(&memory.memory, "*>5s");
    agent_start(&agent, &memory);
    blkin_init();
    CHECK(rule_is_above_s(5) || host_has_rules());
    memory_set_rules(&memory.memory, "*>7s, max=2/s");
    RECORD_UNTIL(rule_is_above_s(7) || host_has_rules());
    before = rings_count(&memory, BLKIN_EVENT_PROCESS);
    memset(there->text, 'x', sizeof(there->text));
    there->generation += 2;
    RECORD_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) > before + 1);
    memory_set_rules(&memory.memory, "*>9s");
    there->generation++;
    RECORD_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) > before + 3);
    CHECK(rule_is_above_s(7) || host_has_rules());
    memory_set_rules(&memory.memory, "*>9s");
    RECORD_UNTIL(rule_is_above_s(9) || host_has_rules());
    memory_set_rules(&other.memory, "*>11s");
    agent_give(&agent, &other);
    __atomic_store_n(&memory.head->state, RING_LEFT, __ATOMIC_RELAXED);
    RECORD_UNTIL(rule_is_above_s(11) || host_has_rules());
    agent_stop(&agent);
}

static void check_own_rules(void)
{
    const uint64_t least_ns = blkin_slow_least_ns;

    memory_set_rules(&memory.memory, "*>5s");
    agent_start(&agent, &memory);
    RECORD_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) > 1);
    CHECK(blkin_slow_least_ns == least_ns);
    agent_stop(&agent);
}

TEST(rules_of_the_environment)
{
    setenv("BLKIN_SLOW", "*>1s", 1);
    blkin_init();
    CHECK(rule_is_above_s(1) || host_has_rules());
    check_own_rules();
}

TEST(rules_of_a_file)
{
    setenv("BLKIN_SLOW_FILE", "/nonexistent", 1);
    blkin_init();
    check_own_rules();
}

TEST(rules_of_the_program)
{
    blkin_init();
    CHECK(blkin_set_slow("*>1s") == 0);
    check_own_rules();
}

/* ---- begins of traces ---- */

static void check_flags(const char *setting, const char *flags)
{
    char text[BLKIN_TRACEPARENT_SIZE];
    struct blkin_span span;

    if (setting)
        setenv("BLKIN_RANDOM_FLAG", setting, 1);
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    blkin_span_begin(&span, "request", BLKIN_SERVER, NULL);
    CHECK(blkin_context_to_traceparent(blkin_span_context(&span), text) > 0);
    CHECK_TEXT(text + 53, flags);
    blkin_span_end(&span);
    agent_stop(&agent);
}

TEST(flags)
{
    check_flags(NULL, "01");
}

TEST(random_flag)
{
    check_flags("1", "03");
}

int main(void)
{
    setenv("BLKIN_LTTNG", "no", 1);
    return scenarios_play();
}

/*
 * Each scenario is a process, which has both the program and its agent. All scenarios run at once,
 * because most of them wait for the program's periodic work.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RING_SCENARIOS_H
#define TESTS_RING_SCENARIOS_H

#include <blkin.h>

#include "check.h"
#include "libblkin-ring/parts/rings.h"
#include "tracepoints/format/provider_table.h"
#include "waits.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCENARIO_EVENTS (1 << 22)

static struct rings memory, other;
static struct rings_agent agent;

static void record(void)
{
    BLKIN_SCOPE(span, "request", BLKIN_SERVER, NULL);

    BLKIN_ANNOTATE(&span, "text");
}

static inline unsigned spans(const struct rings *of)
{
    return rings_count(of, BLKIN_EVENT_SPAN);
}

/* Lets the program record spans until the condition holds. */
#define RECORD_UNTIL(condition) WORK_UNTIL(condition, record())

/* One for each TEST() of the file. */
static struct scenario {
    pid_t pid;
    struct rings_agent agent;
} scenarios[64];

static void begin(struct scenario *scenario, void (*play)(void))
{
    agent_prepare(&agent);
    scenario->agent = agent;
    scenario->pid = fork();
    if (scenario->pid != 0)
        return;
    rings_make(&memory, SCENARIO_EVENTS, RING_BYTES_MIN);
    rings_make(&other, SCENARIO_EVENTS, RING_BYTES_MIN);
    play();
    if (agent.listener >= 0)
        agent_stop(&agent);
    rings_close(&memory);
    rings_close(&other);
    end_process(check_status());
}

/* Plays all scenarios. Returns the status of the test. */
static int scenarios_play(void)
{
    int status = 0;

    for (unsigned i = 0; i < check_test_count; i++)
        begin(&scenarios[i], check_tests[i].run);
    for (unsigned i = 0; i < check_test_count; i++) {
        CHECK(waitpid(scenarios[i].pid, &status, 0) == scenarios[i].pid && status == 0);
        if (status)
            (void)fprintf(stderr, "%s: status %#x\n", check_tests[i].name, (unsigned)status);
        unlink(scenarios[i].agent.path);
        agent_remove(&scenarios[i].agent);
    }
    return check_status();
}

#endif

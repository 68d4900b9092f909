/*
 * An agent for scripts. It gives a memory of rings to each program that connects, until its
 * standard input ends.
 *
 * usage: agent FOLDER
 *
 * Makes FOLDER/socket. For each line of its standard input, prints "answered N": the number of its
 * answers so far. In the end it prints what the rings have: "spans N", "processes N" (the processes
 * that have recorded spans), "lost N".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "libblkin-ring/parts/rings.h"
#include "tracepoints/format/provider_table.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AGENT_PROCESSES 1024

struct agent_found {
    unsigned spans, processes;
    uint32_t pids[AGENT_PROCESSES];
};

static void find(void *context, const struct rings_record *record)
{
    struct agent_found *found = context;

    if (record->entry.event != BLKIN_EVENT_SPAN)
        return;
    found->spans++;
    for (unsigned i = 0; i < found->processes; i++) {
        if (found->pids[i] == record->entry.pid)
            return;
    }
    if (found->processes < AGENT_PROCESSES)
        found->pids[found->processes++] = record->entry.pid;
}

int main(int argc, char **argv)
{
    static struct agent_found found;
    struct rings memory;
    struct rings_agent agent = {.listener = -1};
    char text[64];

    if (argc != 2)
        return 2;
    (void)snprintf(agent.path, sizeof(agent.path), "%s/socket", argv[1]);
    rings_make(&memory, 1 << 24, RING_BYTES_MIN);
    agent_start(&agent, &memory);
    while (read(STDIN_FILENO, text, sizeof(text)) > 0) {
        printf("answered %u\n", __atomic_load_n(&agent.answered, __ATOMIC_ACQUIRE));
        (void)fflush(stdout);
    }
    if (rings_walk_all(&memory, find, &found).bad != 0)
        return 1;
    printf("spans %u\nprocesses %u\nlost %llu\n", found.spans, found.processes,
           (unsigned long long)memory.head->lost);
    agent_stop(&agent);
    return 0;
}

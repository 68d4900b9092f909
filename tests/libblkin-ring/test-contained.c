/*
 * A program in a container with namespaces of its own. Its records have the container's pid
 * namespace, and times of the agent's clock. Without root, the test checks nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "libblkin/ring/ring_find.h"
#include "libblkin/ring/ring_write.h"
#include "libblkin/zipkin_c.h"
#include "libblkin-ring/parts/scenarios.h"
#include "tools/rings/ring_event.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#define AHEAD_S 2000 /* how far the container's clock is ahead */

struct contained {
    uint64_t pid_namespace;
    struct ring_clock clock; /* the agent's */
    unsigned events, wrong;
};

static void check_contained(void *context, const struct rings_record *found)
{
    struct contained *contained = context;
    const struct ring_entry *entry = &found->entry;
    struct event event = {.time_ns = 0};
    struct ring_alarm alarm;

    if (ring_event(entry, &contained->clock, &event) == DECODED_ALARM &&
        ring_alarm(entry, &alarm) == DECODED_ALARM)
        event.time_ns = (int64_t)alarm.event.monotonic;
    contained->events |= 1U << (entry->event & 31);
    contained->wrong += entry->pid != 1 || entry->pid_namespace != contained->pid_namespace ||
                        event.time_ns <= contained->clock.after_ns ||
                        event.time_ns > contained->clock.now_ns;
}

static int record_contained(void)
{
    static const struct blkin_endpoint endpoint = {.ip = "10.0.0.1", .name = "osd"};
    struct blkin_trace trace;

    CHECK(blkin_set_slow("*>0ns") == 0);
    blkin_init();
    RECORD_UNTIL(spans(&memory) > 0 && rings_count(&memory, BLKIN_EVENT_PROCESS) > 0 &&
                 rings_count(&memory, BLKIN_EVENT_SLOW) > 0);
    CHECK(chroot(agent.folder) == 0);
    ring_write_set_identity(ring_map()); /* as for a new memory, but without /proc */
    blkin_init_new_trace(&trace, "op", &endpoint);
    BLKIN_TIMESTAMP(&trace, NULL, "queued");
    return check_status();
}

/* The container's program has the pid 1 and its own clock. The agent may have another clock. */
static void check_namespaces(int64_t agent_ahead_s)
{
    const unsigned all = 1U << BLKIN_EVENT_SPAN | 1U << BLKIN_EVENT_PROCESS |
                         1U << BLKIN_EVENT_SLOW | 1U << ((RING_ORIGINAL + ANNOT_TIMESTAMP) & 31);
    const int64_t ahead_ns = agent_ahead_s * 1000000000;
    struct contained contained = {.clock.after_ns = clock_ns() + ahead_ns};
    int offsets = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC), status = -1;
    struct stat there;
    pid_t pid;

    memory_set_ahead(&memory.memory, ahead_ns);
    agent_start(&agent, &memory);
    if (unshare(CLONE_NEWPID | CLONE_NEWTIME) == 0 &&
        dprintf(offsets, "monotonic %d 500000000", AHEAD_S) > 0) {
        pid = fork();
        if (pid == 0)
            end_process(record_contained());
        CHECK(stat("/proc/self/ns/pid_for_children", &there) == 0);
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        contained.pid_namespace = there.st_ino;
        contained.clock.now_ns = clock_ns() + ahead_ns;
        (void)rings_walk_all(&memory, check_contained, &contained);
        CHECK(contained.events == all && contained.wrong == 0);
    }
    close(offsets);
}

TEST(of_the_host)
{
    check_namespaces(0);
}

TEST(ahead_of_the_agent)
{
    check_namespaces(AHEAD_S / 2);
}

TEST(behind_the_agent)
{
    check_namespaces(AHEAD_S * 2);
}

int main(void)
{
    setenv("BLKIN_LTTNG", "no", 1);
    return scenarios_play();
}

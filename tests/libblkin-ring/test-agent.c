/*
 * A program and its agent. The agent is missing, starts late, does not answer, or ends and starts
 * again with another memory; or the program changes its user. Each case is a process of its own.
 * All cases run at once, without LTTng.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "libblkin/base/provider.h"
#include "libblkin/policy/slow.h"
#include "libblkin/process/process.h"
#include "libblkin/ring/ring_find.h"
#include "libblkin-ring/parts/scenarios.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zipkin_c.h>

#define LOWEST  200 /* the library's descriptor has a number from LOWEST on */
#define HIGHEST 1024
#define LONG_NS UINT64_C(5000000000) /* RING_REFRAIN_NS in ring_find.c */

#define TEST_AS_ROOT(name)            \
    static void name##_as_root(void); \
    TEST(name)                        \
    {                                 \
        if (geteuid() == 0)           \
            name##_as_root();         \
    }                                 \
    static void name##_as_root(void)

/* Returns the library's descriptor; -1: none. */
static int high_descriptor(void)
{
    struct stat status;

    for (int i = LOWEST; i < HIGHEST; i++) {
        if (fstat(i, &status) == 0)
            return i;
    }
    return -1;
}

static void begin_recording(void)
{
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
}

/* The agent leaves a memory, and gives another one. */
static void leave_for(struct rings *from, const struct rings *to)
{
    __atomic_store_n(&to->head->state, RING_ON, __ATOMIC_RELAXED);
    agent_give(&agent, to);
    __atomic_store_n(&from->head->state, RING_LEFT, __ATOMIC_RELAXED);
}

/* ---- no agent ---- */

/* Sets another path. Returns true if the program asks for rings there. */
static bool asks_at(const char *path)
{
    int status = -1;
    const pid_t pid = fork();

    if (pid == 0) {
        setenv(RING_VARIABLE, path, 1);
        record();
        CHECK(blkin_is_on() == (ring_find_state() != RING_NEVER));
        end_process(check_failures ? 2 : ring_find_state() == RING_AWAITED);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

TEST(paths)
{
    char path[120];

    (void)snprintf(path, sizeof(path), "%s/%0*d", agent.folder, 106 - (int)strlen(agent.folder), 0);
    CHECK(strlen(path) == 107 && asks_at(path)); /* the longest path of a socket */
    strcat(path, "0");
    CHECK(!asks_at(path));
    agent_start(&agent, &memory);
    CHECK(!asks_at("none") && !asks_at("socket") && !asks_at("/nowhere/at/all"));
    CHECK(agent_asked(&agent) == 0);
}

/* Until the program has rings, both APIs are active, but do not record. */
TEST(late)
{
    const struct blkin_endpoint endpoint = {"10.0.0.1", 80, "service"};
    const struct blkin_trace trace = {"trace", {1, 1, 0}, &endpoint};
    const struct blkin_annotation annotation = {.type = ANNOT_TIMESTAMP, .val_str = "event"};
    struct blkin_span span;

    record();
    blkin_span_begin(&span, "request", BLKIN_SERVER, NULL);
    CHECK(!blkin_span_is_recorded(&span));
    CHECK(ring_find_state() == RING_AWAITED && *blkin_gate_ == BLKIN_LOOKS_FOR_RINGS);
    CHECK(blkin_record(&trace, &annotation) == 0);
    agent_start(&agent, &memory);
    WORK_UNTIL(ring_map(), blkin_heartbeat());
    CHECK(*blkin_gate_ == 1);
    CHECK(agent_asked(&agent) >= 1 && agent_asked(&agent) <= PATIENCE_MS / 5000); /* each 5 s */
    CHECK(memory.head->lost >= 3 && memory.head->missed_until_ns > memory.head->created_ns);
    agent_stop(&agent);
    /* the periodic work needs no agent */
    RECORD_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) > 2);
    CHECK(ring_find_state() == RING_FOUND);
}

/* A thread that makes spans without a pause does not look for rings at each span, but finds them.
 */
TEST(busy)
{
    for (unsigned i = 0; i < 100000; i++)
        record();
    agent_start(&agent, &memory);
    for (time_t until = time(NULL) + PATIENCE_MS / 1000; time(NULL) < until && !ring_map();)
        record();
    CHECK(ring_map());
    record();
    CHECK(spans(&memory) > 0);
}

static struct sockaddr_un address = {.sun_family = AF_UNIX};

/* Makes the agent's socket, at which nobody accepts. Returns its descriptor. */
static int bind_socket(void)
{
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    strcpy(address.sun_path, agent.path);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
    return listener;
}

static void check_unreachable(void)
{
    alarm(60);
    record();
    CHECK(ring_find_state() == RING_AWAITED && *blkin_gate_ == BLKIN_LOOKS_FOR_RINGS);
    CHECK(!ring_map() && high_descriptor() < 0);
}

/* The socket exists, and nobody listens. */
TEST(refused)
{
    close(bind_socket());
    check_unreachable();
}

/* ---- an agent that does not answer ---- */

/* A busy agent answers after 0.8 s. The program waits on the connection that it has. Then the spans
 * that it has made meanwhile are in the rings. */
TEST(slow)
{
    unsigned made = 0;
    int64_t begun_ns;

    agent.is_busy = true;
    agent_start(&agent, &memory);
    begun_ns = monotonic_ns();
    blkin_init();
    WORK_UNTIL(monotonic_ns() - begun_ns > 800000000, (record(), made++));
    CHECK(!ring_map());
    __atomic_store_n(&agent.is_busy, false, __ATOMIC_RELEASE);
    WORK_UNTIL(ring_map(), (record(), made++));
    /* busy machine: the program has asked again, or has no room for spans that wait */
    const bool is_late = memory.head->lost > 0 && monotonic_ns() - begun_ns > SECOND;
    CHECK(made > 0 && (is_late ? spans(&memory) < made : spans(&memory) == made));
    CHECK(is_late == (memory.head->lost > 0) && is_late == (memory.head->missed_until_ns > 0));
}

/* The agent accepts connections, and never answers. The program closes its descriptor after each
 * attempt. A blocking call would hang. */
TEST(silent)
{
    bool is_closed = false;

    agent_start(&agent, NULL);
    alarm(60);
    blkin_init();
    for (int64_t end_ms = 0;
         (agent_asked(&agent) < 2 || !is_closed) && wait_up_to(PATIENCE_MS, &end_ms);) {
        record();
        is_closed = is_closed || (agent_asked(&agent) > 0 && high_descriptor() < 0);
    }
    CHECK(is_closed && !ring_map());
    agent_stop(&agent);
    RECORD_UNTIL(ring_find_state() == RING_AWAITED);
    CHECK(high_descriptor() < 0);
}

/* The backlog is full: a blocking connect() would hang. */
TEST(backlog)
{
    const int listener = bind_socket();
    int each;

    CHECK(listen(listener, 0) == 0);
    do
        each = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    while (connect(each, (struct sockaddr *)&address, sizeof(address)) == 0);
    check_unreachable();
    close(listener);
}

/* The program replaces the library's descriptor by one of its own. The library leaves it alone. */
TEST(closed)
{
    struct stat status;
    int found;

    agent_start(&agent, NULL);
    record(); /* blkin_init() would wait for the library */
    CHECK(ring_find_state() != RING_NEVER);
    found = high_descriptor();
    CHECK(found >= LOWEST && fcntl(found, F_GETFD) == FD_CLOEXEC);
    CHECK(dup2(STDERR_FILENO, found) == found);
    RECORD_UNTIL(agent_asked(&agent) >= 3);
    CHECK(fstat(found, &status) == 0);
}

/* A child does not keep the descriptor with which its parent waits for an answer. */
TEST(forked)
{
    int status = -1;
    pid_t pid;

    agent_start(&agent, NULL);
    record(); /* blkin_init() would wait for the library */
    CHECK(high_descriptor() >= 0);
    pid = fork();
    if (pid == 0)
        end_process(high_descriptor() >= 0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(high_descriptor() >= 0);
}

/* The agent sends an invalid memory. */
TEST(wrong)
{
    memory.head->mark++;
    agent_start(&agent, &memory);
    RECORD_UNTIL(agent_asked(&agent) >= 2);
    CHECK(!ring_map() && spans(&memory) == 0);
    memory.head->mark--;
    RECORD_UNTIL(spans(&memory) > 0);
}

/* The agent has left the memory before the program gets it. The program asks again soon, and not
 * only with the periodic work a second later. */
TEST(left_at_once)
{
    uint64_t begin_ns;

    memory.head->state = RING_LEFT;
    agent_start(&agent, &memory);
    begin_ns = blkin_now();
    blkin_init();
    /* on a busy machine the program may have asked again, or the answer may be late */
    CHECK(ring_find_state() == RING_SOON || agent_asked(&agent) >= 2 ||
          blkin_now() - begin_ns > 200000000);
    agent_give(&agent, &other);
    RECORD_UNTIL(spans(&other) > 0);
    CHECK(spans(&memory) == 0);
}

/* ---- the agent ends ---- */

static void check_memory_gets_nothing(void)
{
    const unsigned before = spans(&memory);

    record();
    CHECK(spans(&memory) == before);
}

/* A program that cannot reach the agent, as in another root folder, keeps a replaced memory. */
TEST(replaced)
{
    unsigned before;

    begin_recording();
    agent_stop(&agent);
    __atomic_store_n(&memory.head->state, RING_REPLACED, __ATOMIC_RELAXED);
    /* the periodic work looks at the state, and records a process event */
    RECORD_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) > 2);
    before = spans(&memory);
    record();
    CHECK(spans(&memory) > before);
    agent.stays = true;
    agent_start(&agent, &other);
    RECORD_UNTIL(spans(&other) > 0);
    /* a kept connection ends before a seccomp filter may forbid close(2) */
    ring_find_before_chroot();
    CHECK(high_descriptor() >= 0 && blkin_be_quiet_() && high_descriptor() < 0);
}

/* A program that overwrites its oldest records uses the new memory at once: before the periodic
 * work, which is due a second after the last process event. A busy machine may need several
 * attempts.
 */
TEST(replaced_while_fast)
{
    struct rings *from = &memory, *to = &other, *next;
    bool is_early = false;

    agent_start(&agent, from);
    RECORD_UNTIL(spans(from) > 0);
    for (int i = 0; i < 100 && !is_early; i++) {
        const unsigned events = rings_count(from, BLKIN_EVENT_PROCESS);
        const struct ring_map *map = ring_map();
        int64_t begun_ns;

        RECORD_UNTIL(rings_count(from, BLKIN_EVENT_PROCESS) > events);
        begun_ns = monotonic_ns();
        __atomic_store_n(&to->head->state, RING_ON, __ATOMIC_RELAXED);
        agent_give(&agent, to);
        __atomic_store_n(&from->head->state, RING_REPLACED, __ATOMIC_RELAXED);
        while (ring_map() == map && monotonic_ns() - begun_ns < PATIENCE_MS * INT64_C(1000000))
            record();
        CHECK(ring_map() != map);
        is_early = monotonic_ns() - begun_ns < 800000000;
        next = from;
        from = to;
        to = next;
    }
    CHECK(is_early);
}

/* The agent is busy when it leaves the memory: no span is lost. */
TEST(exchanged)
{
    unsigned made;
    int64_t begun_ns = 0;

    begin_recording();
    made = spans(&memory);
    __atomic_store_n(&agent.is_busy, true, __ATOMIC_RELEASE);
    leave_for(&memory, &other);
    WORK_UNTIL(!ring_map(), (begun_ns = monotonic_ns(), record(), made++));
    for (unsigned i = 0; i < 20; i++, made++)
        record();
    __atomic_store_n(&agent.is_busy, false, __ATOMIC_RELEASE);
    WORK_UNTIL(spans(&other) > 0, (record(), made++));
    const bool is_late = other.head->lost > 0 && monotonic_ns() - begun_ns > SECOND; /* see slow */
    const unsigned found = spans(&memory) + spans(&other);
    CHECK(is_late == (other.head->lost > 0) && (is_late ? found < made : found == made));
    check_memory_gets_nothing();
    CHECK(agent_asked(&agent) >= 2 && agent_asked(&agent) <= PATIENCE_MS / 5000);
}

/* A memory that the program has used before is mapped at the same address. So a program that
 * outlives many agents uses no more address space. */
TEST(again)
{
    const struct ring_map *first;
    unsigned before;

    begin_recording();
    first = ring_map();
    leave_for(&memory, &other);
    RECORD_UNTIL(spans(&other) > 0);
    before = spans(&memory);
    leave_for(&other, &memory);
    RECORD_UNTIL(spans(&memory) > before);
    CHECK(ring_map() == first);
}

/* The agent has not read for a long time: the program asks, and gets the same memory, which it
 * uses meanwhile. After a kill of the agent and of the fdserver, it gets another memory. */
TEST(quiet)
{
    const struct ring_map *first;
    bool is_kept = true;

    agent.is_quiet = true;
    begin_recording();
    first = ring_map();
    WORK_UNTIL(agent_asked(&agent) >= 2 && ring_find_state() == RING_FOUND, {
        record();
        is_kept &= ring_map() == first;
    });
    CHECK(is_kept && ring_map() == first);
    agent_give(&agent, &other);
    RECORD_UNTIL(spans(&other) > 0);
}

TEST(left)
{
    begin_recording();
    agent_stop(&agent);
    __atomic_store_n(&memory.head->state, RING_LEFT, __ATOMIC_RELAXED);
    RECORD_UNTIL(!ring_map());
    check_memory_gets_nothing();
}

/* ---- another user ---- */

TEST_AS_ROOT(user)
{
    begin_recording();
    CHECK(agent.user == 0);
    agent_give(&agent, &other);
    CHECK(setresuid(65534, 65534, 65534) == 0);
    RECORD_UNTIL(spans(&other) > 0);
    CHECK(agent.user == 65534);
    check_memory_gets_nothing();
}

/* Records that wait for the agent's answer do not go into another user's memory. */
TEST_AS_ROOT(user_of_a_busy_agent)
{
    unsigned made = 0;

    agent.is_busy = true;
    agent_start(&agent, &memory);
    for (unsigned i = 0; i < 100; i++)
        record();
    CHECK(blkin_is_on() && setresuid(65534, 65534, 65534) == 0);
    __atomic_store_n(&agent.is_busy, false, __ATOMIC_RELEASE);
    WORK_UNTIL(spans(&memory) > 0, (record(), made++));
    CHECK(spans(&memory) <= made && memory.head->lost >= 100);
}

/* A server acts as its client's user for a while, and keeps its memory. It asks for a new memory
 * only under its own user, or after a long time. */
TEST_AS_ROOT(user_for_a_while)
{
    unsigned before, asked;
    uint64_t since_ns;

    begin_recording();
    asked = agent_asked(&agent); /* more than once, if an answer is late */
    since_ns = blkin_now();
    CHECK(setresuid(65534, 65534, 0) == 0);
    before = rings_count(&memory, BLKIN_EVENT_PROCESS);
    RECORD_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) > before + 1); /* periodic work */
    leave_for(&memory, &other);
    RECORD_UNTIL(!ring_map());
    if (blkin_now() - since_ns > LONG_NS) /* the machine stood still: the program may ask */
        return;
    CHECK(agent_asked(&agent) == asked && agent.user == 0);
    CHECK(seteuid(0) == 0);
    RECORD_UNTIL(spans(&other) > 0);
    CHECK(agent.user == 0);
    CHECK(setresuid(0, 65534, 65534) == 0);
    before = spans(&memory);
    leave_for(&other, &memory);
    RECORD_UNTIL(spans(&memory) > before);
    CHECK(agent.user == 65534);
}

/* The new user may not connect: the program does not record, and does not write to the old memory.
 */
TEST_AS_ROOT(user_without)
{
    begin_recording();
    CHECK(chmod(agent.path, 0700) == 0);
    CHECK(setresuid(65534, 65534, 65534) == 0);
    RECORD_UNTIL(!ring_map());
    check_memory_gets_nothing();
}

/* The program has a root folder of its own, without the socket. */
TEST_AS_ROOT(another_root)
{
    agent.stays = true;
    begin_recording();
    ring_find_before_chroot();
    agent_give(&agent, &other);
    CHECK(chdir("/proc/self/fd") == 0 && chroot(".") == 0);
    RECORD_UNTIL(spans(&memory) > 10);
    CHECK(setuid(65534) == 0);
    RECORD_UNTIL(spans(&other) > 0);
    CHECK(agent.user == 65534);
    RECORD_UNTIL(high_descriptor() < 0);
}

/* A child that inherits a memory that the agent has left gets another one when it first looks, if
 * the agent is fast enough. */
TEST(forked_from_left)
{
    unsigned found = 0;
    int status;

    begin_recording();
    leave_for(&memory, &other);
    for (int64_t end_ms = 0; !found && wait_up_to(PATIENCE_MS, &end_ms);) {
        const pid_t child = fork();

        if (child == 0)
            end_process(ring_find() == RING_FOUND);
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        found += WEXITSTATUS(status) == 1;
    }
    CHECK(found > 0); /* a busy agent may take longer than the child waits */
}

/* The agent's first answer arrives after the program has stopped waiting. */
TEST_AS_ROOT(another_root_of_a_busy_agent)
{
    agent.stays = true;
    begin_recording();
    __atomic_store_n(&agent.is_busy, true, __ATOMIC_RELEASE);
    ring_find_before_chroot();
    CHECK(chdir("/proc/self/fd") == 0 && chroot(".") == 0 && setuid(65534) == 0);
    RECORD_UNTIL(!ring_map());
    agent_give(&agent, &other);
    __atomic_store_n(&agent.is_busy, false, __ATOMIC_RELEASE);
    RECORD_UNTIL(spans(&other) > 0);
    CHECK(agent.user == 65534);
    RECORD_UNTIL(high_descriptor() < 0);
}

#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer needs more address space than the limit */
/* A program with little address space does not map rings. */
TEST(narrow)
{
    const struct rlimit little = {3 * memory.bytes, 3 * memory.bytes};

    agent_start(&agent, &memory);
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    RECORD_UNTIL(agent_asked(&agent) >= 2);
    CHECK(!ring_map() && spans(&memory) == 0);
}
#endif

/* ---- slow rules of the host: test-policy.c has programs with rules of their own ---- */

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
    RECORD_UNTIL(rule_is_above_s(5) || host_has_rules());
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
    leave_for(&memory, &other);
    RECORD_UNTIL(rule_is_above_s(11) || host_has_rules());
}

int main(void)
{
    (void)close_range(LOWEST, HIGHEST, 0); /* descriptors of the shell that runs tests */
    setenv("BLKIN_LTTNG", "no", 1);
    return scenarios_play();
}

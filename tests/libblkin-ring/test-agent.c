/*
 * A program and its agent: one that is not there, comes late, says nothing, goes and comes again
 * with another memory; and a program that changes its user. Each in a process of its own, all of
 * them at once. No LTTng.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>

#include "check.h"
#include "libblkin/policy/slow.h"
#include "libblkin/ring/ring_find.h"
#include "libblkin-ring/parts/rings.h"
#include "tracepoints/format/provider_table.h"
#include "waits.h"

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

#define EVENTS  (1 << 22)
#define LOWEST  200 /* number of the library's descriptor */
#define HIGHEST 1024

static struct rings memory, other;
static struct agent agent;

static void record(void)
{
    BLKIN_SCOPE(span, "request", BLKIN_SERVER, NULL);

    BLKIN_ANNOTATE(&span, "text");
}

static unsigned spans(const struct rings *of)
{
    return rings_count(of, BLKIN_EVENT_SPAN);
}

/* A program that works, until the condition holds. */
#define RECORD_UNTIL(condition) WORK_UNTIL(condition, record())

/* The library's, if it has one; or -1. */
static int high_descriptor(void)
{
    struct stat status;

    for (int i = LOWEST; i < HIGHEST; i++) {
        if (fstat(i, &status) == 0)
            return i;
    }
    return -1;
}

/* ---- no agent ---- */

static void no_folder(void)
{
    setenv(RING_VARIABLE, "/nowhere/at/all", 1);
    record();
    CHECK(!blkin_is_on());
    CHECK(ring_find_state() == RING_NEVER);
}

static void none(void)
{
    setenv(RING_VARIABLE, "none", 1);
    agent_start(&agent, &memory);
    record();
    CHECK(!blkin_is_on());
    CHECK(agent_asked(&agent) == 0);
    agent_stop(&agent);
}

/* Until it comes, the gate is open but nothing is recorded. */
static void late(void)
{
    struct blkin_span span;

    record();
    blkin_span_begin(&span, "request", BLKIN_SERVER, NULL);
    CHECK(!blkin_span_is_recorded(&span));
    CHECK(ring_find_state() == RING_AWAITED);
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    CHECK(agent_asked(&agent) == 1);
    agent_stop(&agent);
    RECORD_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) >
                 2); /* the periodic work needs no agent */
    CHECK(ring_find_state() == RING_FOUND);
}

/* A thread that makes spans as fast as it can does not look each time, and finds it all the same.
 */
static void busy(void)
{
    for (unsigned i = 0; i < 100000; i++)
        record();
    agent_start(&agent, &memory);
    for (time_t until = time(NULL) + PATIENCE_MS / 1000; time(NULL) < until && !ring_map();)
        record();
    CHECK(ring_map());
    record();
    CHECK(spans(&memory) > 0);
    agent_stop(&agent);
}

/* The socket is there, nobody listens. */
static void refused(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    strcpy(address.sun_path, agent.path);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
    close(listener);
    record();
    CHECK(ring_find_state() == RING_AWAITED);
    CHECK(!ring_map());
    CHECK(high_descriptor() < 0);
}

/* ---- an agent that does not answer ---- */

/* A call that waited for it would wait for ever. The descriptor is closed in between. */
static void silent(void)
{
    bool is_closed = false;

    agent_start(&agent, NULL);
    alarm(60);
    blkin_init();
    for (int64_t end_ms = 0;
         (agent_asked(&agent) < 3 || !is_closed) && wait_up_to(PATIENCE_MS, &end_ms);) {
        record();
        is_closed = is_closed || (agent_asked(&agent) > 0 && high_descriptor() < 0);
    }
    CHECK(is_closed);
    CHECK(!ring_map());
    agent_stop(&agent);
    RECORD_UNTIL(ring_find_state() == RING_AWAITED);
    CHECK(high_descriptor() < 0);
}

/* Nobody accepts, and no more fit in: to connect and wait would be to wait for ever. */
static void backlog(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int each;

    strcpy(address.sun_path, agent.path);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(listen(listener, 0) == 0);
    do
        each = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    while (connect(each, (struct sockaddr *)&address, sizeof(address)) == 0);
    alarm(60);
    record();
    CHECK(ring_find_state() == RING_AWAITED);
    CHECK(!ring_map());
    CHECK(high_descriptor() < 0);
    close(listener);
}

/* The program closes all descriptors and gets another one with the same number: it is its own. */
static void closed(void)
{
    struct stat status;
    int found;

    agent_start(&agent, NULL);
    record(); /* blkin_init() would wait until nothing is awaited */
    CHECK(ring_find_state() != RING_NEVER);
    found = high_descriptor();
    CHECK(found >= LOWEST && fcntl(found, F_GETFD) == FD_CLOEXEC);
    CHECK(dup2(STDERR_FILENO, found) == found);
    RECORD_UNTIL(agent_asked(&agent) >= 3);
    CHECK(fstat(found, &status) == 0);
    agent_stop(&agent);
}

/* In a child it is the parent's. */
static void forked(void)
{
    int status = -1;
    pid_t pid;

    agent_start(&agent, NULL);
    record(); /* blkin_init() would wait until nothing is awaited */
    CHECK(high_descriptor() >= 0);
    pid = fork();
    if (pid == 0)
        _exit(high_descriptor() >= 0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(high_descriptor() >= 0);
    agent_stop(&agent);
}

/* What it sends is no memory. */
static void wrong(void)
{
    memory.head->mark++;
    agent_start(&agent, &memory);
    RECORD_UNTIL(agent_asked(&agent) >= 2);
    CHECK(!ring_map());
    CHECK(spans(&memory) == 0);
    memory.head->mark--;
    RECORD_UNTIL(spans(&memory) > 0);
    agent_stop(&agent);
}

/* The agent has left what it gave before the program looks, which asks again: not only with the
 * periodic work, a second later. */
static void left_at_once(void)
{
    memory.head->state = RING_LEFT;
    agent_start(&agent, &memory);
    blkin_init();
    CHECK(ring_find_state() == RING_SOON);
    agent_give(&agent, &other);
    RECORD_UNTIL(spans(&other) > 0);
    CHECK(spans(&memory) == 0);
    agent_stop(&agent);
}

/* ---- the agent goes ---- */

static void records_elsewhere(void)
{
    const unsigned before = spans(&memory);

    record();
    CHECK(spans(&memory) == before);
}

static void exchanged(void)
{
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    agent_give(&agent, &other);
    __atomic_store_n(&memory.head->state, RING_LEFT, __ATOMIC_RELAXED);
    RECORD_UNTIL(spans(&other) > 0);
    records_elsewhere();
    CHECK(agent_asked(&agent) >= 2 && agent_asked(&agent) < 6); /* again, if an answer is late */
    agent_stop(&agent);
}

/* A memory that comes again is where it was: nothing piles up in a program that outlives agents. */
static void again(void)
{
    const struct ring_map *first;
    unsigned before;

    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    first = ring_map();
    agent_give(&agent, &other);
    __atomic_store_n(&memory.head->state, RING_LEFT, __ATOMIC_RELAXED);
    RECORD_UNTIL(spans(&other) > 0);
    before = spans(&memory);
    __atomic_store_n(&memory.head->state, RING_ON, __ATOMIC_RELAXED);
    agent_give(&agent, &memory);
    __atomic_store_n(&other.head->state, RING_LEFT, __ATOMIC_RELAXED);
    RECORD_UNTIL(spans(&memory) > before);
    CHECK(ring_map() == first);
    agent_stop(&agent);
}

/* Nobody has read for long: it asks, and gets the memory that it has, which it keeps meanwhile. */
static void quiet(void)
{
    const struct ring_map *first;
    bool is_kept = true;

    agent.is_quiet = true;
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    first = ring_map();
    WORK_UNTIL(agent_asked(&agent) >= 2 && ring_find_state() == RING_FOUND, {
        record();
        is_kept &= ring_map() == first;
    });
    CHECK(is_kept && ring_map() == first);
    agent_stop(&agent);
}

static void left(void)
{
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    agent_stop(&agent);
    __atomic_store_n(&memory.head->state, RING_LEFT, __ATOMIC_RELAXED);
    RECORD_UNTIL(!ring_map());
    records_elsewhere();
}

/* ---- another user ---- */

static void user(void)
{
    if (geteuid() != 0)
        return;
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    CHECK(agent.user == 0);
    agent_give(&agent, &other);
    CHECK(setresuid(65534, 65534, 65534) == 0);
    RECORD_UNTIL(spans(&other) > 0);
    CHECK(agent.user == 65534);
    records_elsewhere();
    agent_stop(&agent);
}

/* A server is the user of its clients for a while, and keeps its memory: it asks for a successor
 * as itself, or when that has lasted too long. */
static void user_for_a_while(void)
{
    unsigned before;

    if (geteuid() != 0)
        return;
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    CHECK(seteuid(65534) == 0);
    before = rings_count(&memory, BLKIN_EVENT_PROCESS);
    RECORD_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) > before + 1); /* periodic work */
    CHECK(agent_asked(&agent) == 1 && agent.user == 0);
    agent_give(&agent, &other);
    __atomic_store_n(&memory.head->state, RING_LEFT, __ATOMIC_RELAXED);
    RECORD_UNTIL(!ring_map());
    CHECK(agent_asked(&agent) == 1);
    CHECK(seteuid(0) == 0);
    RECORD_UNTIL(spans(&other) > 0);
    CHECK(agent.user == 0);
    CHECK(seteuid(65534) == 0);
    agent_give(&agent, &memory);
    __atomic_store_n(&memory.head->state, RING_ON, __ATOMIC_RELAXED);
    before = spans(&memory);
    __atomic_store_n(&other.head->state, RING_LEFT, __ATOMIC_RELAXED);
    RECORD_UNTIL(spans(&memory) > before);
    CHECK(agent.user == 65534);
    agent_stop(&agent);
}

/* In a root folder of its own, where the socket is not. */
static void another_root(void)
{
    if (geteuid() != 0)
        return;
    agent.stays = true;
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    ring_find_before_chroot();
    agent_give(&agent, &other);
    CHECK(chdir("/proc/self/fd") == 0 && chroot(".") == 0);
    RECORD_UNTIL(spans(&memory) > 10);
    CHECK(setuid(65534) == 0);
    RECORD_UNTIL(spans(&other) > 0);
    CHECK(agent.user == 65534);
    RECORD_UNTIL(high_descriptor() < 0);
    agent_stop(&agent);
}

/* A child that inherits a left memory gets another one with its first look, if the agent can. */
static void forked_from_left(void)
{
    unsigned found = 0;
    int status;

    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    agent_give(&agent, &other);
    __atomic_store_n(&memory.head->state, RING_LEFT, __ATOMIC_RELAXED);
    for (int i = 0; i < 50; i++) {
        const pid_t child = fork();

        if (child == 0)
            _exit(ring_find() == RING_FOUND);
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        found += WEXITSTATUS(status) == 1;
    }
    CHECK(found > 0); /* a busy one may take longer than the child waits */
    agent_stop(&agent);
}

/* The agent's first answer comes later than the program waits for it. */
static void another_root_of_a_busy_agent(void)
{
    if (geteuid() != 0)
        return;
    agent.stays = true;
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    __atomic_store_n(&agent.is_busy, true, __ATOMIC_RELEASE);
    ring_find_before_chroot();
    CHECK(chdir("/proc/self/fd") == 0 && chroot(".") == 0 && setuid(65534) == 0);
    RECORD_UNTIL(!ring_map());
    agent_give(&agent, &other);
    __atomic_store_n(&agent.is_busy, false, __ATOMIC_RELEASE);
    RECORD_UNTIL(spans(&other) > 0);
    CHECK(agent.user == 65534);
    RECORD_UNTIL(high_descriptor() < 0);
    agent_stop(&agent);
}

#ifndef __SANITIZE_ADDRESS__
/* Rings are no reason for a program to run out of its address space. */
static void narrow(void)
{
    const struct rlimit little = {3 * memory.bytes, 3 * memory.bytes};

    agent_start(&agent, &memory);
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    RECORD_UNTIL(agent_asked(&agent) >= 2);
    CHECK(!ring_map() && spans(&memory) == 0);
    agent_stop(&agent);
}
#endif

/* ---- the host's rules ---- */

/* Nothing there has rules of this test's. */
static bool rules_are_free(void)
{
    return access("/run/blkin/slow", F_OK) != 0;
}

static bool rule_is_above_s(uint64_t seconds)
{
    return blkin_slow_least_ns == seconds * 1000000000 + 1;
}

/* They come with the rings, and change with the periodic work; what is damaged changes nothing. */
static void rules(void)
{
    struct ring_rules *there = (struct ring_rules *)(void *)(memory.memory.at + RING_RULES_AT);
    unsigned before;

    memory_set_rules(&memory.memory, "*>5s");
    agent_start(&agent, &memory);
    blkin_init();
    CHECK(rule_is_above_s(5) || !rules_are_free());
    memory_set_rules(&memory.memory, "*>7s, max=2/s");
    RECORD_UNTIL(rule_is_above_s(7) || !rules_are_free());
    before = rings_count(&memory, BLKIN_EVENT_PROCESS);
    memset(there->text, 'x', sizeof(there->text));
    there->turn += 2;
    RECORD_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) > before + 1);
    memory_set_rules(&memory.memory, "*>9s");
    there->turn++;
    RECORD_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) > before + 3);
    CHECK(rule_is_above_s(7) || !rules_are_free());
    memory_set_rules(&memory.memory, "*>9s");
    RECORD_UNTIL(rule_is_above_s(9) || !rules_are_free());
    memory_set_rules(&other.memory, "*>11s");
    agent_give(&agent, &other);
    __atomic_store_n(&memory.head->state, RING_LEFT, __ATOMIC_RELAXED);
    RECORD_UNTIL(rule_is_above_s(11) || !rules_are_free());
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

static void rules_of_the_environment(void)
{
    setenv("BLKIN_SLOW", "*>1s", 1);
    blkin_init();
    CHECK(rule_is_above_s(1) || !rules_are_free());
    check_own_rules();
}

static void rules_of_a_file(void)
{
    setenv("BLKIN_SLOW_FILE", "/nonexistent", 1);
    blkin_init();
    check_own_rules();
}

static void rules_of_the_program(void)
{
    blkin_init();
    CHECK(blkin_set_slow("*>1s") == 0);
    check_own_rules();
}

/* ---- what a trace begins with ---- */

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

static void flags(void)
{
    check_flags(NULL, "01");
}

static void random_flag(void)
{
    check_flags("1", "03");
}

/* It may not ask: then nothing is recorded, and nothing goes into the old memory. */
static void user_without(void)
{
    if (geteuid() != 0)
        return;
    agent_start(&agent, &memory);
    RECORD_UNTIL(spans(&memory) > 0);
    CHECK(chmod(agent.path, 0700) == 0);
    CHECK(setresuid(65534, 65534, 65534) == 0);
    RECORD_UNTIL(!ring_map());
    records_elsewhere();
    agent_stop(&agent);
}

/* ---- */

/* At once, as most of them wait for what a program does once a second. */
static struct {
    const char *name;
    pid_t pid;
    struct agent agent;
} scenarios[64];

static unsigned count;

static void run(const char *name, void (*scenario)(void))
{
    agent_prepare(&agent);
    scenarios[count].name = name;
    scenarios[count].agent = agent;
    scenarios[count].pid = fork();
    if (scenarios[count++].pid != 0)
        return;
    rings_make(&memory, EVENTS, RING_BYTES_MIN);
    rings_make(&other, EVENTS, RING_BYTES_MIN);
    scenario();
    rings_close(&memory);
    rings_close(&other);
    (void)fflush(stderr); /* not by exit(): LeakSanitizer cannot inspect a process that has changed
                             its user */
    _exit(check_status());
}

#define RUN(scenario) run(#scenario, scenario)

int main(void)
{
    int status = 0;

    (void)close_range(LOWEST, HIGHEST, 0); /* of the shell that runs tests */
    setenv("BLKIN_LTTNG", "no", 1);
    RUN(no_folder);
    RUN(none);
    RUN(late);
    RUN(busy);
    RUN(refused);
    RUN(silent);
    RUN(backlog);
    RUN(closed);
    RUN(forked);
    RUN(forked_from_left);
    RUN(wrong);
    RUN(left_at_once);
    RUN(exchanged);
    RUN(again);
    RUN(quiet);
    RUN(left);
    RUN(user);
    RUN(user_for_a_while);
    RUN(user_without);
    RUN(another_root);
    RUN(another_root_of_a_busy_agent);
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer itself needs more address space than that */
    RUN(narrow);
#endif
    RUN(rules);
    RUN(rules_of_the_environment);
    RUN(rules_of_a_file);
    RUN(rules_of_the_program);
    RUN(flags);
    RUN(random_flag);
    for (unsigned i = 0; i < count; i++) {
        CHECK(waitpid(scenarios[i].pid, &status, 0) == scenarios[i].pid && status == 0);
        if (status)
            (void)fprintf(stderr, "%s: status %#x\n", scenarios[i].name, (unsigned)status);
        unlink(scenarios[i].agent.path);
        agent_remove(&scenarios[i].agent);
    }
    return check_status();
}

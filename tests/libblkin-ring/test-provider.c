/*
 * A program's events in the rings, without LTTng: both APIs, finished spans, alarms, process
 * events, metrics, children of fork(2), and signal handlers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>
#include <zipkin_c.h>

#include "check.h"
#include "libblkin/metric/metric.h"
#include "libblkin-ring/parts/rings.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/provider_table.h"
#include "waits.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rings memory;
static struct rings_agent agent;

static unsigned spans(void)
{
    return rings_count(&memory, BLKIN_EVENT_SPAN);
}

static void record_span_called(const char *name)
{
    BLKIN_SCOPE(span, name, BLKIN_SERVER, NULL);

    BLKIN_ANNOTATE(&span, "queued");
}

/* The newest record of an event. */
struct newest {
    unsigned event;
    bool is_found;
    uint32_t pid, ring;
    size_t length;
    char payload[RING_RECORD_MAX];
};

static void take_newest(void *context, const struct rings_record *record)
{
    struct newest *newest = context;

    if (record->entry.event != newest->event)
        return;
    newest->is_found = true;
    newest->pid = record->entry.pid;
    newest->ring = record->ring;
    newest->length = record->entry.length;
    memcpy(newest->payload, record->entry.payload, record->entry.length);
}

static struct newest find_newest(unsigned event)
{
    struct newest newest = {.event = event};

    (void)rings_walk_all(&memory, take_newest, &newest);
    CHECK(newest.is_found);
    CHECK(newest.pid == (uint32_t)getpid());
    return newest;
}

/* All tests stay on one CPU, so that the last record of its ring is the newest record. */
TEST(stay_on_one_cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
}

/* ---- each kind of event ---- */

/* The agent answers while the library loads, or soon after. */
TEST(test_first)
{
    blkin_init();
    WORK_UNTIL(spans() > 0, record_span_called("first"));
    CHECK(agent_asked(&agent) < 6); /* the program asks again if an answer is late */
    CHECK(rings_count(&memory, BLKIN_EVENT_PROCESS) <= 1);
}

TEST(test_span)
{
    const unsigned before = spans();
    struct blkin_span span, child;
    struct newest newest;

    blkin_span_begin(&span, "parent", BLKIN_SERVER, NULL);
    blkin_step_begin(&span, "journal", BLKIN_INTERNAL);
    blkin_step_end(&span);
    blkin_span_begin(&child, "child", BLKIN_INTERNAL, &span);
    blkin_span_end(&child);
    blkin_span_end(&span);
    CHECK(spans() == before + 2);
    newest = find_newest(BLKIN_EVENT_SPAN);
    CHECK_TEXT(newest.payload + sizeof(struct blkin_span_event), "parent");
    CHECK(newest.payload[newest.length - 1] == '\0');
}

TEST(test_finished_span)
{
    const unsigned before = spans();
    const uint64_t now = blkin_now();
    struct {
        uint8_t version, kind;
        uint16_t name_length;
        uint32_t flags;
        uint64_t trace_id_high, trace_id, span_id, parent_span_id, start_ns, end_ns;
        char name[8];
    } buffer = {1, BLKIN_SERVER, 8, 0, 1, 2, 3, 0, now - 1000, now, {0}};

    memcpy(buffer.name, "finished", sizeof(buffer.name));
    CHECK(blkin_record_span(&buffer, sizeof(buffer)) == 0);
    CHECK(spans() == before + 1);
}

/* A name and an address of a service that are too long are cut. */
TEST(test_longest_service)
{
    char name[101], ip[101];
    struct blkin_span span;
    struct newest newest;
    const char *service;

    memset(name, 'n', sizeof(name) - 1);
    memset(ip, '1', sizeof(ip) - 1);
    name[sizeof(name) - 1] = ip[sizeof(ip) - 1] = '\0';
    blkin_span_begin(&span, "of its own", BLKIN_SERVER, NULL);
    blkin_span_set_service(&span, name, ip, 6789);
    blkin_span_end(&span);
    newest = find_newest(BLKIN_EVENT_SPAN);
    service = newest.payload + newest.length - 73;
    CHECK(memcmp(service, name, 72) == 0 && service[72] == '\0' && service[-1] == '\0');
}

/* Copies the head of the newest record of this type to *head. Returns the texts, whose length must
 * be the given one. */
static const char *find_original(int type, struct ring_original *head, size_t texts)
{
    static struct newest newest;

    newest = find_newest(RING_ORIGINAL + (unsigned)type);
    memcpy(head, newest.payload, sizeof(*head));
    CHECK(newest.length == sizeof(*head) + texts);
    return newest.payload + sizeof(*head);
}

#define OF_OSD "op\0osd.12\0" /* split, because 10 would be a part of \\0 */ "10.0.0.1\0"
#define IS_ORIGINAL(type, texts)                                            \
    (memcmp(find_original(type, &head, sizeof(OF_OSD texts)), OF_OSD texts, \
            sizeof(OF_OSD texts)) == 0)

TEST(test_original)
{
    const struct blkin_endpoint endpoint = {
        .ip = "10.0.0.1", .port = (int16_t)50000, .name = "osd.12"};
    static const char of_key[] = "...[240 of 4999 bytes]", of_value[] = "...[2400 of 4999 bytes]";
    struct blkin_trace trace;
    const uint64_t before_ns = blkin_now();
    struct ring_original head;
    char long_text[5000];
    const char *key, *value;

    blkin_init_new_trace(&trace, "op", &endpoint);
    BLKIN_TIMESTAMP(&trace, NULL, "queued");
    CHECK(IS_ORIGINAL(ANNOT_TIMESTAMP, "queued"));
    CHECK(head.monotonic >= before_ns && head.monotonic <= blkin_now());
    CHECK(head.trace_id == (uint64_t)trace.info.trace_id && head.port == 50000);
    BLKIN_KEYVAL_STRING(&trace, NULL, "object", "rbd");
    CHECK(IS_ORIGINAL(ANNOT_STRING, "object\0rbd"));
    BLKIN_KEYVAL_INTEGER(&trace, NULL, "offset", -7);
    CHECK(IS_ORIGINAL(ANNOT_INTEGER, "offset") && head.integer == -7);
    memset(long_text, 'x', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    BLKIN_KEYVAL_STRING(&trace, NULL, long_text, long_text);
    /* both are cut, and marked as cut */
    key = find_original(ANNOT_STRING, &head,
                        sizeof(OF_OSD) - 1 + 240 + sizeof(of_key) + 2400 + sizeof(of_value)) +
          sizeof(OF_OSD) - 1;
    value = key + 240 + sizeof(of_key);
    CHECK(memcmp(key, long_text, 240) == 0 && memcmp(value, long_text, 2400) == 0);
    CHECK_TEXT(key + 240, of_key);
    CHECK_TEXT(value + 2400, of_value);
    /* the longest length that is not cut */
    long_text[2400] = '\0';
    BLKIN_KEYVAL_STRING(&trace, NULL, long_text + 2400 - 240, long_text);
    (void)find_original(ANNOT_STRING, &head, sizeof(OF_OSD) - 1 + 241 + 2401);
}

TEST(test_alarm)
{
    struct newest newest;
    struct blkin_slow_event event;

    CHECK(blkin_set_slow("*>1ns") == 0);
    record_span_called("slow");
    newest = find_newest(BLKIN_EVENT_SLOW);
    memcpy(&event, newest.payload, sizeof(event));
    CHECK(event.mark == BLKIN_SLOW_MARK);
    CHECK(newest.ring >= memory.cpus);
    CHECK(find_newest(BLKIN_EVENT_SPAN).ring < memory.cpus);
    CHECK(blkin_set_slow("") == 0);
}

TEST(test_metric)
{
    const uint64_t values[] = {1, 2};

    CHECK(blkin_metric_is_on());
    blkin_metric_record(&(struct blkin_metric){
        .group = "cpu",
        .instance = "",
        .names = "",
        .period_ms = 1000,
        .values = values,
        .count = 2,
    });
    CHECK_TEXT(find_newest(BLKIN_EVENT_METRIC).payload + sizeof(struct blkin_metric_event), "cpu");
}

TEST(test_process)
{
    WORK_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) >= 2, record_span_called("later"));
    CHECK(find_newest(BLKIN_EVENT_PROCESS).length > sizeof(struct blkin_process_event));
}

/* The agent needs no streaming events, because it has whole spans. */
TEST(test_no_streaming)
{
    CHECK(rings_count(&memory, BLKIN_EVENT_BEGIN) == 0);
    CHECK(rings_count(&memory, BLKIN_EVENT_TAG) == 0);
    CHECK(rings_count(&memory, BLKIN_EVENT_END) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(rings_count(&memory, BLKIN_EVENT_ANNOTATION + i) == 0);
}

/* ---- children ---- */

struct of_child {
    uint32_t pid;
    unsigned spans;
};

static void count_of_child(void *context, const struct rings_record *record)
{
    struct of_child *child = context;

    child->spans += record->entry.pid == child->pid && record->entry.event == BLKIN_EVENT_SPAN;
}

static void check_child(pid_t pid, unsigned expected)
{
    struct of_child child = {.pid = (uint32_t)pid};
    int status = -1;

    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    (void)rings_walk_all(&memory, count_of_child, &child);
    CHECK(child.spans == expected);
}

TEST(test_forks)
{
    struct blkin_span span;
    int status = 1;
    pid_t pid;

    blkin_span_begin(&span, "open", BLKIN_SERVER, NULL);
    pid = fork();
    if (pid == 0) {
        blkin_span_end(&span);
        record_span_called("of child");
        _exit(0);
    }
    check_child(pid, 2);
    pid = _Fork();
    if (pid == 0) {
        record_span_called("of a bare child");
        _exit(0);
    }
    check_child(pid, 1);
    pid = fork();
    if (pid == 0) {
        record_span_called("of child");
        pid = fork();
        if (pid == 0) {
            record_span_called("of grandchild");
            _exit(0);
        }
        _exit(waitpid(pid, &status, 0) != pid || status);
    }
    check_child(pid, 1);
}

/* The child has the parent's memory, so its records have the parent's pid. */
TEST(test_vfork)
{
    const unsigned before = spans();
    const pid_t pid = vfork();

    if (pid == 0) {
        record_span_called("of a child in this memory");
        _exit(0);
    }
    check_child(pid, 0);
    CHECK(spans() == before + 1);
}

/* ---- signal handlers ---- */

static atomic_uint handled; /* atomic: the agent's thread may handle a signal, too */

static void handle(int signal)
{
    (void)signal;
    record_span_called("of the handler");
    handled++;
}

/* Signals interrupt all code, also the restartable sequence. Each span is in a ring, or
 * overwritten. */
TEST(test_signals)
{
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    timer_t timer;
    const struct itimerspec each = {{0, 50000}, {0, 50000}}, none = {{0, 0}, {0, 0}};
    unsigned written = 0;
    const unsigned before = spans();
    struct rings_walker walk;

    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(timer_create(CLOCK_MONOTONIC,
                       &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM},
                       &timer) == 0);
    CHECK(timer_settime(timer, 0, &each, NULL) == 0);
    while (handled < 1000)
        for (unsigned i = 0; i < 10; i++, written++)
            record_span_called("of the program");
    CHECK(timer_settime(timer, 0, &none, NULL) == 0);
    timer_delete(timer);
    walk = rings_walk_all(&memory, NULL, NULL);
    CHECK(walk.bad == 0);
    if (walk.overwritten == 0) /* the agent's thread may still be in the handler */
        WAIT_UNTIL(spans() == before + written + handled);
    CHECK(memory.head->lost == 0);
}

int main(void)
{
    setenv("BLKIN_LTTNG", "no", 1);
    rings_make(&memory, 1 << 26, 1 << 16);
    agent_prepare(&agent);
    agent_start(&agent, &memory);
    check_run();
    CHECK(agent_asked(&agent) < 6);
    agent_stop(&agent);
    agent_remove(&agent);
    rings_close(&memory);
    return check_status();
}

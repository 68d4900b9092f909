/*
 * A program's events in the rings, without LTTng: the original API, process events, metrics,
 * children of fork(2), and signal handlers. test-spans.c has spans and alarms.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>
#include <zipkin_c.h>

#include "libblkin/metric/metric.h"
#include "libblkin-ring/parts/newest.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void record_span_called(const char *name)
{
    BLKIN_SCOPE(span, name, BLKIN_SERVER, NULL);

    BLKIN_ANNOTATE(&span, "queued");
}

/* ---- each kind of event ---- */

/* Checks the newest record of this type, whose texts must have the given length. integer: of an
 * ANNOT_INTEGER. Returns the texts. */
static const char *find_original(int type, const struct blkin_trace *trace, int64_t integer,
                                 size_t texts)
{
    const struct newest *newest = find_newest(RING_ORIGINAL + (unsigned)type);
    struct ring_original head;

    memcpy(&head, newest->payload, sizeof(head));
    CHECK(newest->entry.length == sizeof(head) + texts);
    CHECK(head.monotonic <= blkin_now() &&
          head.monotonic + PATIENCE_MS * UINT64_C(1000000) > blkin_now());
    CHECK(memcmp(&head.trace_id, &trace->info, sizeof(trace->info)) == 0);
    CHECK(head.integer == integer && head.port == 50000);
    return newest->payload + sizeof(head);
}

#define OF_OSD "op\0osd.12\0" /* split, because 10 would be a part of \\0 */ "10.0.0.1\0"
#define IS_ORIGINAL(type, integer, texts)                                             \
    (memcmp(find_original(type, &trace, integer, sizeof(OF_OSD texts)), OF_OSD texts, \
            sizeof(OF_OSD texts)) == 0)

TEST(test_original)
{
    struct blkin_endpoint endpoint = {.ip = "10.0.0.1", .port = (int16_t)50000, .name = "osd.12"};
    static const char of_key[] = "...[240 of 4999 bytes]", of_value[] = "...[2400 of 4999 bytes]";
    struct blkin_trace root, trace;
    char long_text[5000];
    const char *key, *value;

    blkin_init_new_trace(&root, "root", NULL);
    blkin_init_child(&trace, &root, &endpoint, "op");
    BLKIN_TIMESTAMP(&trace, NULL, "queued");
    CHECK(IS_ORIGINAL(ANNOT_TIMESTAMP, 0, "queued"));
    BLKIN_KEYVAL_STRING(&trace, NULL, "object", "rbd");
    CHECK(IS_ORIGINAL(ANNOT_STRING, 0, "object\0rbd"));
    BLKIN_KEYVAL_INTEGER(&trace, NULL, "offset", -7);
    CHECK(IS_ORIGINAL(ANNOT_INTEGER, -7, "offset"));
    /* the annotation's own endpoint counts; a trace with the id 0 is not recorded */
    trace.endpoint = NULL;
    BLKIN_TIMESTAMP(&trace, &endpoint, "own");
    CHECK(IS_ORIGINAL(ANNOT_TIMESTAMP, 0, "own"));
    trace.endpoint = &endpoint;
    root = trace;
    root.info.trace_id = 0;
    BLKIN_TIMESTAMP(&root, NULL, "of no trace");
    CHECK(IS_ORIGINAL(ANNOT_TIMESTAMP, 0, "own"));
    memset(long_text, 'x', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    BLKIN_KEYVAL_STRING(&trace, NULL, long_text, long_text);
    /* both are cut, and marked as cut */
    key = find_original(ANNOT_STRING, &trace, 0,
                        sizeof(OF_OSD) - 1 + 240 + sizeof(of_key) + 2400 + sizeof(of_value)) +
          sizeof(OF_OSD) - 1;
    value = key + 240 + sizeof(of_key);
    CHECK(memcmp(key, long_text, 240) == 0 && memcmp(value, long_text, 2400) == 0);
    CHECK_TEXT(key + 240, of_key);
    CHECK_TEXT(value + 2400, of_value);
    /* the longest length that is not cut */
    long_text[2400] = '\0';
    BLKIN_KEYVAL_STRING(&trace, NULL, long_text + 2400 - 240, long_text);
    (void)find_original(ANNOT_STRING, &trace, 0, sizeof(OF_OSD) - 1 + 241 + 2401);
}

/* Records a metric. Compares its event; values: as text. */
static void check_metric(const struct blkin_metric *metric, const char *group, const char *instance,
                         const char *names, const char *values)
{
    static uint32_t sequence;
    static uint64_t thread;
    const struct newest *newest;
    struct blkin_metric_event event;
    char texts[4000];
    const int length =
        snprintf(texts, sizeof(texts), "%s%c%s%c%s%c%s", group, 0, instance, 0, names, 0, values);

    blkin_metric_record(metric);
    newest = find_newest(BLKIN_EVENT_METRIC);
    memcpy(&event, newest->payload, sizeof(event));
    CHECK(event.monotonic == metric->monotonic && event.period_ms == metric->period_ms);
    CHECK(event.thread && (sequence == 0 || event.thread == thread));
    thread = event.thread;
    CHECK(event.sequence == ++sequence);
    CHECK(newest->entry.length == sizeof(event) + (size_t)length + 1);
    CHECK(memcmp(newest->payload + sizeof(event), texts, (size_t)length + 1) == 0);
}

/* No text is empty. Texts and values that are too long or too many are left out. */
TEST(test_metric)
{
    char group[33] = "", instance[193] = "", names[2602] = "", all[400] = "";
    uint64_t values[33] = {UINT64_MAX, 7};
    struct blkin_metric metric = {"cpu", "", "", 5, 1000, values, 2};

    CHECK(blkin_metric_is_on());
    check_metric(&metric, "cpu", "-", "-", "18446744073709551615 7");
    memset(group, 'g', 32);
    memset(instance, 'i', 192);
    memset(names, 'n', 2601);
    for (unsigned i = 0; i < 33; i++) {
        values[i] = i * 10;
        if (i < 32)
            (void)sprintf(all + strlen(all), "%s%u", i ? " " : "", i * 10);
    }
    metric = (struct blkin_metric){group + 1, instance + 1, names + 1, 6, 500, values, 33};
    check_metric(&metric, group + 1, instance + 1, names + 1, all);
    metric = (struct blkin_metric){group, instance, names, 7, 250, values, 32};
    check_metric(&metric, group + 1, instance + 1, names + 1, all);
}

static void *be_cancelled(void *unused)
{
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) == 0);
    CHECK(pthread_cancel(pthread_self()) == 0);
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL) == 0);
    blkin_heartbeat(); /* ends the thread at a cancellation point, if there is one */
    return unused;
}

/* Roots that are not recorded notice that the sampling file changes; so do heartbeats of threads
 * that are cancelled, which keep no lock. */
TEST(test_sampling_file)
{
    struct blkin_span span = BLKIN_SPAN_INIT;
    pthread_t thread;

    CHECK(blkin_set_sampling("never") == 0);
    for (int is_on = 1; is_on >= 0; is_on--) {
        FILE *file = fopen(sampling_file, "w");

        CHECK(file && fputs(is_on ? "always" : "never", file) >= 0 && fclose(file) == 0);
        WORK_UNTIL(blkin_span_is_recorded(&span) == is_on, {
            if (!is_on && pthread_create(&thread, NULL, be_cancelled, NULL) == 0)
                CHECK(pthread_join(thread, NULL) == 0);
            blkin_span_begin(&span, "root", BLKIN_SERVER, NULL);
        });
    }
    (void)alarm(PATIENCE_MS / 1000); /* ends a test that hangs */
    CHECK(blkin_set_sampling("always") == 0 && remove(sampling_file) == 0);
    (void)alarm(0);
}

TEST(test_process)
{
    static const char texts[] = "test-provider\0v1\0always";
    const unsigned before = rings_count(&memory, BLKIN_EVENT_PROCESS);
    const uint64_t from_ns = blkin_now();
    struct blkin_process_event event;
    const struct newest *newest;

    blkin_set_version("v1");
    WORK_UNTIL(rings_count(&memory, BLKIN_EVENT_PROCESS) >= before + 2, record_span_called("on"));
    newest = find_newest(BLKIN_EVENT_PROCESS);
    memcpy(&event, newest->payload, sizeof(event));
    CHECK(newest->count <= before + 2 + (blkin_now() - from_ns) / SECOND); /* once a second */
    CHECK(event.monotonic > from_ns && event.pid == (uint32_t)getpid() && event.sequence > before);
    CHECK(newest->entry.length == sizeof(event) + sizeof(texts));
    CHECK(memcmp(newest->payload + sizeof(event), texts, sizeof(texts)) == 0);
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

struct of_process {
    uint32_t pid;
    unsigned spans;
    uint64_t thread; /* of its newest span */
};

static void add_span(void *context, const struct rings_record *record)
{
    struct of_process *process = context;
    struct event event = {.time_ns = 0};

    if (record->entry.pid != process->pid || record->entry.event != BLKIN_EVENT_SPAN)
        return;
    CHECK(ring_event(&record->entry, &(struct ring_clock){0, monotonic_ns(), 0}, &event) ==
          DECODED);
    process->spans++;
    process->thread = event.thread;
}

static struct of_process spans_of(pid_t pid)
{
    struct of_process process = {.pid = (uint32_t)pid};

    (void)rings_walk_all(&memory, add_span, &process);
    return process;
}

static void check_child(pid_t pid, unsigned expected)
{
    int status = -1;

    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(spans_of(pid).spans == expected);
    CHECK(spans_of(pid).thread != spans_of(getpid()).thread);
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
        end_process(0);
    }
    check_child(pid, 2);
    pid = fork();
    if (pid == 0) {
        record_span_called("of child");
        pid = fork();
        if (pid == 0) {
            record_span_called("of grandchild");
            end_process(0);
        }
        end_process(waitpid(pid, &status, 0) != pid || status);
    }
    check_child(pid, 1);
}

/* Children have ids of their own, and their children, and those without the handlers of fork(2). */
static void check_ids(unsigned depth)
{
    volatile uint64_t *const of_child =
        mmap(NULL, sizeof(*of_child), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct blkin_span parent, span;

    CHECK(of_child != MAP_FAILED);
    blkin_span_begin(&parent, "parent", BLKIN_SERVER, NULL);
    for (int i = 0; i < 3; i++) {
        const pid_t pid = i == 0   ? fork()
                          : i == 1 ? _Fork()
                                   : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

        blkin_span_begin(&span, "below", BLKIN_INTERNAL, &parent);
        blkin_span_end(&span);
        if (pid == 0) {
            *of_child = span.context.span_id;
            if (depth > 0)
                check_ids(depth - 1);
            _exit(check_status());
        }
        check_child(pid, 1 + 3 * depth);
        CHECK(*of_child && *of_child != span.context.span_id);
    }
}

TEST(test_ids_of_children)
{
    check_ids(1);
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
    errno = 4711;
    record_span_called("of the handler");
    CHECK(errno == 4711);
    handled++;
}

static void *record_until_handled(void *written)
{
    while (handled < 1000)
        for (unsigned i = 0; i < 10; i++, ++*(unsigned *)written)
            record_span_called("of the program");
    return NULL;
}

static void add_sequence(void *sum, const struct rings_record *record)
{
    struct blkin_slow_event event;

    if (record->entry.event == BLKIN_EVENT_SLOW) {
        memcpy(&event, record->entry.payload, sizeof(event));
        *(uint64_t *)sum += event.sequence;
    }
}

/* Signals interrupt all code, also the restartable sequence, of two threads. Each span and each
 * alarm is in a ring, or overwritten. Each alarm has a number of its own. */
TEST(test_signals)
{
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    timer_t timer;
    const struct itimerspec each = {{0, 50000}, {0, 50000}}, none = {{0, 0}, {0, 0}};
    unsigned written[2] = {0, 0};
    const unsigned before = spans();
    struct rings_walker walk;
    pthread_t thread;
    uint64_t alarms, sum = 0;

    CHECK(rings_count(&memory, BLKIN_EVENT_SLOW) == 0);
    CHECK(blkin_set_slow("*>0ns, max=1000000/s") == 0);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(timer_create(CLOCK_MONOTONIC,
                       &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM},
                       &timer) == 0);
    CHECK(timer_settime(timer, 0, &each, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, record_until_handled, &written[1]) == 0);
    (void)record_until_handled(&written[0]);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(timer_settime(timer, 0, &none, NULL) == 0);
    timer_delete(timer);
    walk = rings_walk_all(&memory, NULL, NULL);
    CHECK(walk.bad == 0);
    if (walk.overwritten == 0) { /* the agent's thread may still be in the handler */
        WAIT_UNTIL(spans() == before + written[0] + written[1] + handled);
        alarms = written[0] + written[1] + handled;
        WAIT_UNTIL(rings_count(&memory, BLKIN_EVENT_SLOW) == alarms);
        (void)rings_walk_all(&memory, add_sequence, &sum);
        CHECK(sum == alarms * (alarms + 1) / 2);
    }
    CHECK(memory.head->lost == 0);
}

int main(void)
{
    return newest_play();
}

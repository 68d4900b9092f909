/*
 * Sampling decisions, for test-sampling.sh: needs a session that has blkin:span enabled.
 *
 *     sampling                  checks the results of calls
 *     sampling first            prints whether the first root span is "recorded" or "not recorded"
 *     sampling until STATE      makes root spans until one has this state: "recorded", for example
 *     sampling back             checks a rate while CLOCK_MONOTONIC steps back
 *     sampling cancelled FILE   a thread is cancelled while it reads the policy's FILE
 *     sampling shares           records one trace per policy, and one with the debug flag
 *     sampling severities       records a span with an annotation of each severity
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "check.h"
#include "waits.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROOTS 1000000

static bool is_sampled(const char *name, const struct blkin_context *context)
{
    struct blkin_span span, child;
    bool recorded;

    blkin_span_begin_remote(&span, name, BLKIN_SERVER, context);
    blkin_span_begin(&child, "child", BLKIN_INTERNAL, &span);
    recorded = blkin_span_is_recorded(&span);
    /* the whole trace or none of it, here and in the next process */
    CHECK(blkin_span_is_recorded(&child) == recorded);
    CHECK(blkin_span_context(&span)->flags & BLKIN_CONTEXT_DECIDED);
    CHECK(!(blkin_span_context(&span)->flags & BLKIN_CONTEXT_SAMPLED) == !recorded);
    CHECK(blkin_span_context(&child)->trace_id == blkin_span_context(&span)->trace_id);
    return recorded;
}

static bool is_root_sampled(const char *name)
{
    return is_sampled(name, NULL);
}

static int sampled_of(int roots)
{
    struct blkin_span span;
    int sampled = 0;

    for (int i = 0; i < roots; i++) {
        blkin_span_begin(&span, "root", BLKIN_SERVER, NULL);
        sampled += blkin_span_is_recorded(&span);
    }
    return sampled;
}

static void set(const char *policy)
{
    if (blkin_set_sampling(policy) != 0) {
        fprintf(stderr, "refused: %s\n", policy);
        check_failures++;
    }
}

/* Allows five standard deviations: a right share fails once in two million runs. */
static void test_ratio(const char *policy, double ratio)
{
    const double variance = ROOTS * ratio * (1 - ratio);
    double sampled, off;

    set(policy);
    sampled = sampled_of(ROOTS);
    off = sampled - ROOTS * ratio;
    if (off * off > 5 * 5 * variance) {
        fprintf(stderr, "%s: %.0f of %d\n", policy, sampled, ROOTS);
        check_failures++;
    }
}

static time_t clock_offset;

/* Replaces the C library's function, for libblkin too. */
BLKIN_PUBLIC int clock_gettime(clockid_t clock, struct timespec *time)
{
    const long result = syscall(SYS_clock_gettime, clock, time);

    time->tv_sec += clock_offset;
    return (int)result;
}

/* Ends no span, so that LTTng does not see the wrong times. */
TEST(back)
{
    int64_t begin_ns;

    clock_offset = 1000;
    set("rate=10");
    CHECK(sampled_of(100) > 0);
    clock_offset = 0;
    begin_ns = monotonic_ns();
    CHECK(sampled_of(100) > 0);
    CHECK(sampled_of(1000) <=
          (monotonic_ns() - begin_ns) / 50000000); /* none, unless the machine pauses */
}

/* The rule matches the whole name, even if the span has no room for it. */
static void test_rule_and_small_span(void)
{
    BLKIN_SPAN_ROOM(BLKIN_SPAN_SIZE_MIN) room;

    set("never,a name of sixty bytes that no span of this size has room for:always");
    CHECK(blkin_span_is_recorded(blkin_span_begin_in(
        &room, sizeof(room), "a name of sixty bytes that no span of this size has room for",
        BLKIN_SERVER, NULL)));
}

static struct blkin_context remote(uint32_t flags, uint64_t trace_id)
{
    return (struct blkin_context){
        .trace_id = trace_id, .span_id = trace_id, .flags = flags | BLKIN_CONTEXT_REMOTE};
}

static void test_parents(void)
{
    const uint32_t decided = BLKIN_CONTEXT_DECIDED;
    const uint32_t sampled = BLKIN_CONTEXT_DECIDED | BLKIN_CONTEXT_SAMPLED;
    struct blkin_context context;

    set("never");
    context = remote(sampled, 7);
    CHECK(is_sampled("x", &context));
    context = remote(sampled | BLKIN_CONTEXT_DEBUG, 7);
    CHECK(is_sampled("x", &context));
    context = remote(0, 7); /* without a decision: this process decides */
    CHECK(!is_sampled("x", &context));
    context = remote(sampled, 0); /* a decision without ids: a new trace */
    CHECK(is_sampled("x", &context));
    set("always");
    context = remote(decided, 7);
    CHECK(!is_sampled("x", &context));
    context = remote(decided, 0);
    CHECK(!is_sampled("x", &context));
    context = remote(0, 7);
    CHECK(is_sampled("x", &context));
    /* the context of B3's "d" */
    set("never");
    CHECK(blkin_context_from_b3(&context, "d", 1) == 0);
    CHECK(is_sampled("x", &context));
}

static void record(const char *name, const struct blkin_context *context)
{
    struct blkin_span span;

    do
        blkin_span_begin_remote(&span, name, BLKIN_SERVER, context);
    while (!blkin_span_is_recorded(&span));
    {
        BLKIN_SCOPE(child, "child", BLKIN_INTERNAL, &span);
    }
    blkin_span_end(&span);
}

TEST(shares)
{
    const struct blkin_context debug = remote(BLKIN_CONTEXT_DEBUG, 7);

    set("ratio=0.25,rated:rate=100,all:always");
    record("quarter", NULL);
    record("rated", NULL);
    record("all", NULL);
    record("debug", &debug);
}

TEST(severities)
{
    static const char *const names[] = {"emerg",   "alert",  "crit", "err",
                                        "warning", "notice", "info", "debug"};
    struct blkin_span span;

    blkin_span_begin(&span, "severities", BLKIN_SERVER, NULL);
    for (int i = BLKIN_EMERG; i <= BLKIN_DEBUG; i++) {
        blkin_span_log(&span, (enum blkin_severity)i, names[i]);
        blkin_span_log_at(&span, (enum blkin_severity)i, names[i], 1);
    }
    blkin_span_annotate(&span, "literal");
    blkin_span_log(&span, BLKIN_EMERG, "literal emerg");
    blkin_span_end(&span);
}

/* Prints "waits" after the first span. Fails if the first span has the state already, or after
 * PATIENCE_MS. */
static int make_until(const char *wanted)
{
    const bool recorded = strcmp(wanted, "recorded") == 0;
    int64_t end_ms = 0;
    bool has_said = false;

    do {
        struct blkin_span span;
        bool reached;

        blkin_span_begin(&span, "root", BLKIN_SERVER, NULL);
        reached = blkin_span_is_recorded(&span) == recorded;
        blkin_span_end(&span);
        if (reached)
            return has_said ? 0 : 1;
        if (!has_said && puts("waits") >= 0)
            has_said = fflush(stdout) == 0;
    } while (wait_up_to(PATIENCE_MS, &end_ms));
    return 1;
}

/* ---- cancellation ---- */

static bool has_read; /* a thread has read the changed policy */

/* The thread is cancelled at the first cancellation point in the library, or not at all. */
static void *look(void *unused)
{
    int state;

    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state) == 0);
    CHECK(pthread_cancel(pthread_self()) == 0);
    CHECK(pthread_setcancelstate(state, NULL) == 0);
    blkin_heartbeat();
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state) == 0);
    has_read = is_root_sampled("changed by the file");
    return unused;
}

static void look_in_thread(void)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, look, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void test_cancelled(const char *path)
{
    FILE *file;

    CHECK(!is_root_sampled("before"));
    file = fopen(path, "w");
    CHECK(file && fputs("always\n", file) >= 0 && fclose(file) == 0);
    WORK_UNTIL(has_read, look_in_thread());
    alarm(5); /* ends the test if the cancelled thread has kept the lock */
    CHECK(blkin_set_sampling("never") == 0);
    CHECK(!is_root_sampled("changed by the program"));
}

TEST(first)
{
    puts(is_root_sampled("first") ? "recorded" : "not recorded");
}

TEST(calls)
{
    CHECK(is_root_sampled("default"));
    test_ratio("ratio=0.1", 0.1);
    test_ratio("ratio=0.001", 0.001);
    test_rule_and_small_span();
    test_parents();
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "cancelled") == 0) {
        test_cancelled(argv[2]);
        return check_status();
    }
    return argc == 3 ? make_until(argv[2]) : check_run_mode(argc > 1 ? argv[1] : "calls");
}

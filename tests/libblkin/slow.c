/*
 * Slow spans, for test-slow.sh. Most of them have an early start from blkin_span_set_start().
 *
 *     slow span SERVICE NAME MS [error] [keep=WHY] [tags=N]   a root span
 *     slow steps          spans whose steps are slow
 *     slow cap            more alarms than the cap lets through
 *     slow forks          alarms of a process and of its child
 *     slow threads        alarms of four threads at once
 *     slow signals        alarms of a signal handler and of the interrupted code
 *     slow set            blkin_set_slow()
 *
 * The mode span prints the ids of its span, and the mode steps those of its slow steps, as
 * "TRACE-ID-HIGH TRACE-ID SPAN-ID NAME".
 * The mode signals prints how many spans the interrupted code and the handler made.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "check.h"
#include "waits.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void print_ids(const struct blkin_context *context, const char *name)
{
    printf("0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 " %s\n", context->trace_id_high,
           context->trace_id, context->span_id, name);
}

static void begin(struct blkin_span *span, const char *name, double ms)
{
    blkin_span_begin(span, name, BLKIN_SERVER, NULL);
    blkin_span_set_start(span, blkin_now() - (uint64_t)(ms * 1e6));
}

static void slow(const char *name, double ms)
{
    struct blkin_span span;

    begin(&span, name, ms);
    blkin_span_end(&span);
}

static int one_span(char **words)
{
    struct blkin_context context;
    struct blkin_span span;

    begin(&span, words[1], atof(words[2]));
    blkin_span_set_service(&span, words[0], NULL, 0);
    for (char **word = words + 3; *word; word++) {
        if (strcmp(*word, "error") == 0) {
            blkin_span_error(&span, "EIO");
        } else if (strncmp(*word, "keep=", 5) == 0) {
            blkin_span_keep(&span, *word + 5);
        } else if (strncmp(*word, "tags=", 5) == 0) {
            for (int tags = atoi(*word + 5); tags > 0; tags--)
                blkin_span_tag_string(&span, "key", "value");
        }
    }
    context = *blkin_span_context(&span);
    if (strcmp(words[1], "dropped") == 0)
        blkin_span_drop(&span);
    if (strcmp(words[1], "ended at") == 0)
        blkin_span_end_at(&span, blkin_now() - 1000000);
    blkin_span_end(&span);
    print_ids(&context, words[1]); /* after the end, because printing may take long */
    return 0;
}

/* ---- steps ---- */

#define SLOW_STEP_MS 3000 /* a fast step may take 2 s on a machine that stands still */

static void step(struct blkin_span *span, const char *name, long ms)
{
    struct blkin_context context;

    blkin_step_begin(span, name, BLKIN_INTERNAL);
    blkin_step_context(span, &context);
    if (ms)
        print_ids(&context, name);
    pause_us(ms * 1000);
    blkin_step_end(span);
}

/* The script's rules fit the steps, and not the spans. */
TEST(steps)
{
    struct blkin_context context;
    struct blkin_span span;

    blkin_init(); /* a program with libblkin.a loads its provider here */
    blkin_span_begin(&span, "in the log", BLKIN_SERVER, NULL);
    blkin_span_annotate(&span, "text");
    blkin_span_tag_string(&span, "string", "value");
    blkin_span_tag_int64(&span, "integer", 1);
    blkin_span_link(&span, blkin_span_context(&span));
    blkin_span_set_remote(&span, "peer", "10.0.0.2", 0);
    blkin_step_begin(&span, "fast", BLKIN_INTERNAL);
    step(&span, "inner fast", 0);
    blkin_step_end(&span);
    blkin_step_begin(&span, "around", BLKIN_INTERNAL); /* fits, too, but ends later */
    step(&span, "fsync", SLOW_STEP_MS);
    blkin_step_end(&span);
    blkin_span_set_start(&span, blkin_now() - 5000000000); /* before the steps */
    blkin_span_end(&span);

    blkin_span_begin(&span, "open at the end", BLKIN_SERVER, NULL);
    blkin_step_begin(&span, "hung", BLKIN_INTERNAL);
    blkin_step_context(&span, &context);
    print_ids(&context, "hung");
    pause_us(SLOW_STEP_MS * 1000);
    blkin_span_end(&span);

    blkin_span_begin(&span, "full log", BLKIN_SERVER, NULL);
    for (int i = 0; i < 60; i++)
        step(&span, "fast", 0);
    step(&span, "of its own event", SLOW_STEP_MS);
    blkin_span_end(&span);

    blkin_span_begin(&span, "all fast", BLKIN_SERVER, NULL);
    for (int i = 0; i < 5; i++)
        step(&span, "fast", 0);
    pause_us(SLOW_STEP_MS * 1000);
    blkin_span_end(&span);
}

/* ---- the cap ---- */

TEST(cap)
{
    struct blkin_span span;

    CHECK(blkin_set_slow("slow>1ms, error, max=10/s") == 0);
    for (int i = 0; i < 1000; i++) {
        slow("slow", 2);
        begin(&span, "failed", 0);
        blkin_span_error(&span, "EIO");
        blkin_span_end(&span);
        begin(&span, "kept", 0);
        blkin_span_keep(&span, "because");
        blkin_span_end(&span);
    }
    /* the suppressed alarms of the old rules are still reported */
    CHECK(blkin_set_slow("*>1s") == 0);
    for (int i = 0; i < 30; i++) {
        pause_us(50000);
        blkin_heartbeat();
    }
}

/* ---- at once ---- */

#define OF_THREAD 5000

static void *work(void *unused)
{
    for (int i = 0; i < OF_THREAD; i++)
        slow("slow", 2);
    return unused;
}

TEST(threads)
{
    pthread_t made[4];

    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&made[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(made[i], NULL) == 0);
}

TEST(forks)
{
    int status = -1;

    slow("parent", 2);
    slow("parent", 2);
    fflush(stdout);
    if (fork() == 0) {
        slow("child", 2);
        _exit(0);
    }
    CHECK(wait(&status) > 0 && status == 0);
    slow("parent", 2);
}

static volatile sig_atomic_t in_handler;

static void handle(int number)
{
    const int saved_errno = errno;
    struct blkin_span span;

    (void)number;
    errno = 4711;
    begin(&span, "handler", 2);
    blkin_span_keep(&span, "handled");
    blkin_span_end(&span);
    in_handler++;
    CHECK(errno == 4711);
    errno = saved_errno;
}

/* Sets rules that take long to read. */
static void set_many_rules(uint64_t until_ns)
{
    char rules[1024] = "*>1ms, max=1000000/s";

    for (int i = 0; i < 30; i++)
        strcat(rules, ", a rule of some name:error");
    while (blkin_now() < until_ns)
        CHECK(blkin_set_slow(rules) == 0);
}

/* At the end the lock of the rules is nearly always taken, also when periodic work needs it. */
TEST(signals)
{
    const struct itimerval timer = {{0, 200}, {0, 200}};
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    long under = 0;

    blkin_init();
    slow("first", 0);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    while (in_handler < 2000) {
        for (int i = 0; i < 10; i++, under++)
            slow("under", 2);
        CHECK(blkin_set_slow("*>1ms, max=1000000/s") == 0);
        blkin_heartbeat();
        pause_us(1000);
    }
    set_many_rules(blkin_now() + 3500000000);
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL) == 0);
    printf("%ld %d\n", under, (int)in_handler);
}

/* ---- rules by call ---- */

TEST(set)
{
    CHECK(blkin_set_slow(NULL) == -EINVAL);
    CHECK(blkin_set_slow("*>1ms") == 0);
    CHECK(blkin_set_slow("*>1") == -EINVAL);
    slow("in force", 2);
    for (int i = 0; i < 100; i++) /* more often than the library has slots for rules */
        CHECK(blkin_set_slow(i % 2 ? "*>1ms" : "*>3ms") == 0);
    slow("still in force", 2);
    CHECK(blkin_set_slow("") == 0);
    slow("in force no more", 2000);
}

int main(int argc, char **argv)
{
    return argc >= 5 && strcmp(argv[1], "span") == 0 ? one_span(argv + 2) : check_run_mode(argv[1]);
}

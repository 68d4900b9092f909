/*
 * A signal handler that records while the interrupted thread records, too, for test-signals.sh.
 *
 *     usage: signals DELIVERIES|loading
 *
 * Ends after DELIVERIES signals, or after 15 s and LEAST: on a busy machine, each waits for two
 * threads. Prints how many spans the thread and the handler have ended. The program makes its first
 * span before it installs the handler, as doc/library.md requires. loading: a handler that runs
 * before the first span loses its events, and does no other harm.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>
#include <blkin/zipkin_c.h>

#include "check.h"
#include "waits.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define PER_SPAN 10 /* annotations of one of the handler's spans */
#define END_NS   INT64_C(15000000000)
#define LEAST    1000 /* deliveries */

static struct blkin_span handler_span;
static volatile sig_atomic_t delivered;
static volatile sig_atomic_t ended;
static volatile sig_atomic_t wanted;
static pthread_t recorder;

static void handle(int signal)
{
    (void)signal;
    errno = 4711;
    if (delivered % PER_SPAN == 0)
        blkin_span_begin(&handler_span, "handler", BLKIN_INTERNAL, NULL);
    blkin_span_annotate(&handler_span, "signal");
    blkin_step_begin(&handler_span, "step of the handler", BLKIN_INTERNAL);
    BLKIN_TAG_INT64(&handler_span, "n", delivered);
    blkin_step_end(&handler_span);
    delivered++;
    if (delivered % PER_SPAN == 0) {
        blkin_span_end(&handler_span);
        ended++;
    }
    CHECK(errno == 4711);
}

static void *interrupt(void *unused)
{
    const int64_t end_ns = monotonic_ns() + END_NS;

    (void)unused;
    while (delivered < wanted) {
        const sig_atomic_t before = delivered;

        if (monotonic_ns() >= end_ns && before >= LEAST && before + PER_SPAN < wanted)
            wanted = (before / PER_SPAN + 1) * PER_SPAN; /* the handler's last span is whole */
        pthread_kill(recorder, SIGUSR1);
        while (delivered == before)
            sched_yield();
    }
    return NULL;
}

static struct blkin_endpoint endpoint;
static struct blkin_trace trace;

static volatile sig_atomic_t handled;

static void record_original(int signal)
{
    (void)signal;
    handled = 1;
    BLKIN_TIMESTAMP(&trace, &endpoint, "handler");
}

static int record_while_loading(void)
{
    struct sigaction action = {.sa_handler = record_original, .sa_flags = SA_RESTART};
    const struct itimerval timer = {.it_interval.tv_usec = 5000, .it_value.tv_usec = 300};

    blkin_init_endpoint(&endpoint, "10.0.0.1", 1, "signals");
    blkin_init_new_trace(&trace, "handler", &endpoint);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    (void)blkin_init();
    while (!handled)
        BLKIN_TIMESTAMP(&trace, &endpoint, "program");
    return check_status();
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct blkin_span span;
    pthread_t interrupter;
    long spans = 0;

    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "loading") == 0)
        return record_while_loading();
    wanted = atoi(argv[1]);
    blkin_init();
    blkin_span_begin(&span, "first", BLKIN_INTERNAL, NULL);
    blkin_span_end(&span);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    recorder = pthread_self();
    CHECK(pthread_create(&interrupter, NULL, interrupt, NULL) == 0);
    while (delivered < wanted) {
        blkin_span_begin(&span, "under", BLKIN_INTERNAL, NULL);
        blkin_span_annotate(&span, "text");
        blkin_step_begin(&span, "step under", BLKIN_INTERNAL);
        blkin_span_tag_string(&span, "key", "value");
        blkin_step_end(&span);
        blkin_span_end(&span);
        spans++;
        while (spans > delivered + 100L) /* the ring buffer has room for no more */
            sched_yield();
    }
    CHECK(pthread_join(interrupter, NULL) == 0);
    printf("%ld %d\n", spans, (int)ended);
    return check_status();
}

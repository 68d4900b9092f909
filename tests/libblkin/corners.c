/*
 * Unusual first calls of libblkin, for test-corners.sh, test-absent.sh and test-setuid.sh.
 *
 *     corners init          only blkin_init()
 *     corners span [FILE]   only a span, after the program has opened FILE
 *     corners chroot DIR    after blkin_init(), the program's root becomes DIR
 *     corners stack SIZE    makes the first span on a thread with a stack of SIZE bytes
 *     corners coroutine     makes the first span on a stack that the C library does not know
 *
 * The last two fail unless the span is recorded.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

static int recorded;

static void make_span(void)
{
    struct blkin_span span;

    blkin_span_begin(&span, "first", BLKIN_INTERNAL, NULL);
    blkin_span_annotate(&span, "text");
    recorded = blkin_span_is_recorded(&span);
    blkin_span_end(&span);
}

static void *run(void *unused)
{
    make_span();
    return unused;
}

static void on_thread(size_t size)
{
    pthread_attr_t attributes;
    pthread_t thread;

    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, size) == 0);
    CHECK(pthread_create(&thread, &attributes, run, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    (void)pthread_attr_destroy(&attributes);
}

static void on_coroutine(void)
{
    static char stack[16384];
    static ucontext_t here, there;

    CHECK(getcontext(&there) == 0);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof(stack);
    there.uc_link = &here;
    makecontext(&there, make_span, 0);
    CHECK(swapcontext(&here, &there) == 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "init") == 0)
        return blkin_init();
    if (strcmp(what, "span") == 0) {
        CHECK(argc < 3 || open(argv[2], O_WRONLY | O_CREAT, 0600) >= 0);
        make_span();
        return check_status();
    }
    if (strcmp(what, "chroot") == 0 && argc == 3) {
        CHECK(blkin_init() == 0);
        CHECK(chroot(argv[2]) == 0 && chdir("/") == 0);
        return check_status();
    }
    if (strcmp(what, "stack") == 0 && argc == 3)
        on_thread((size_t)atol(argv[2]));
    else if (strcmp(what, "coroutine") == 0)
        on_coroutine();
    else
        return 2;
    CHECK(recorded);
    return check_status();
}

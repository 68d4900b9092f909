/*
 * Each kind of misuse of spans, at least twice by one instruction, for test-misuse.sh. With the
 * argument "right", only right use.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "check.h"

#include <pthread.h>
#include <string.h>

/* Public, so that they are not inlined: the messages have the addresses of their calls. */
BLKIN_PUBLIC void right_use(void);
BLKIN_PUBLIC void end_twice(void);
BLKIN_PUBLIC void use_after_end(void);
BLKIN_PUBLIC void end_garbage(void);
BLKIN_PUBLIC void *end_step(void *span);

void right_use(void)
{
    BLKIN_SPAN_ROOM(256) room;
    struct blkin_span *span;
    struct blkin_span never = BLKIN_SPAN_INIT;

    blkin_span_end(&never);
    for (int i = 0; i < 3; i++) {
        span = blkin_span_begin_in(&room, sizeof(room), "right", BLKIN_INTERNAL, NULL);
        CHECK(blkin_span_is_recorded(span));
        blkin_span_tag_int64(span, "number", i);
        blkin_step_begin(span, "step", BLKIN_INTERNAL);
        blkin_span_annotate(span, "text");
        blkin_step_end(span);
        blkin_span_set_start(span, 1);
        blkin_span_end(span);
        CHECK(!blkin_span_is_recorded(span));
    }
}

void end_twice(void)
{
    struct blkin_span span;

    blkin_span_begin(&span, "twice", BLKIN_INTERNAL, NULL);
    for (volatile int i = 0; i < 3; i++)
        blkin_span_end(&span);
}

void use_after_end(void)
{
    struct blkin_span span;

    blkin_span_begin(&span, "used", BLKIN_INTERNAL, NULL);
    blkin_span_end(&span);
    for (volatile int i = 0; i < 2; i++)
        blkin_span_tag_string(&span, "key", "value");
}

void end_garbage(void)
{
    static struct blkin_span span;

    memset(&span, 0xee, sizeof(span));
    for (volatile int i = 0; i < 2; i++)
        blkin_span_end(&span);
}

void *end_step(void *span)
{
    blkin_step_end(span);
    return span;
}

static void step_across_threads(void)
{
    struct blkin_span span;
    pthread_t thread;

    blkin_span_begin(&span, "across", BLKIN_INTERNAL, NULL);
    for (volatile int i = 0; i < 2; i++) {
        blkin_step_begin(&span, "step", BLKIN_INTERNAL);
        CHECK(pthread_create(&thread, NULL, end_step, &span) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    blkin_span_end(&span);
}

int main(int argc, char **argv)
{
    blkin_init();
    right_use();
    if (argc > 1 && strcmp(argv[1], "right") == 0)
        return check_status();
    end_twice();
    use_after_end();
    end_garbage();
    step_across_threads();
    return check_status();
}

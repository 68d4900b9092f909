/*
 * hello: one request of a service, and its two steps.
 *
 *     cc -o hello hello.c $(pkg-config --cflags --libs blkin)
 *     ./hello                      # while blkin-agent runs
 *     blkin agent --dump=rings     # as root: writes the spans in memory into a folder
 *     blkin show rings
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>
#include <time.h>

static void work_for_ms(long ms)
{
    const struct timespec time = {0, ms * 1000000};

    (void)nanosleep(&time, NULL);
}

int main(void)
{
    struct blkin_span span; /* memory of the caller: there is nothing to free */

    blkin_init(); /* once, before the first request */
    blkin_set_service("hello", NULL, 0);

    blkin_span_begin(&span, "write", BLKIN_SERVER, NULL); /* NULL: a new trace */
    blkin_span_tag_uint64(&span, "offset", 4096);

    blkin_step_begin(&span, "journal", BLKIN_INTERNAL);
    work_for_ms(20);
    blkin_step_end(&span);

    blkin_step_begin(&span, "apply", BLKIN_INTERNAL);
    work_for_ms(1);
    blkin_step_end(&span);

    blkin_span_end(&span);
    return 0;
}

/*
 * A thread that moves between CPUs, and ends every second span in the past, for agent/test-all.sh.
 *
 * usage: wanders SPANS
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* Moves the thread to one of the CPUs that it may use. Each next number means the next CPU. */
static void move(int to)
{
    static cpu_set_t all;
    cpu_set_t one;
    int cpu = 0;

    if (CPU_COUNT(&all) == 0)
        (void)sched_getaffinity(0, sizeof(all), &all);
    for (int left = to % CPU_COUNT(&all); !CPU_ISSET(cpu, &all) || left-- > 0;)
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    blkin_init();
    for (int i = 0; i < atoi(argv[1]); i++) {
        struct blkin_span span;

        move(i);
        blkin_span_begin(&span, "wandered", BLKIN_INTERNAL, NULL);
        if (i % 2)
            blkin_span_end_at(&span, blkin_now() - 50000000);
        else
            blkin_span_end(&span);
    }
    return 0;
}

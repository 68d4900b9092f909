/*
 * Spans with services of their own, and with steps that begin before and after the service is set,
 * for test-spans.sh. With an argument, the program first opens that file, for test-absent.sh.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include <fcntl.h>

int main(int argc, char **argv)
{
    if (argc > 1 && open(argv[1], O_WRONLY | O_CREAT, 0600) < 0)
        return 1;
    blkin_init();
    for (int i = 0; i < 20; i++) {
        struct blkin_span span;

        blkin_span_begin(&span, "request", BLKIN_SERVER, NULL);
        blkin_step_begin(&span, "outer", BLKIN_INTERNAL);
        blkin_step_begin(&span, "before", BLKIN_INTERNAL);
        blkin_span_set_service(&span, "own", "10.0.0.1", 7);
        blkin_step_end(&span);
        blkin_step_begin(&span, "after", BLKIN_CLIENT);
        blkin_step_end(&span);
        blkin_step_end(&span);
        blkin_span_end(&span);
    }
    return 0;
}

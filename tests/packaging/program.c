/*
 * A program of a user of libblkin-dev: program SERVICE [SPANS]. Records one span, or SPANS spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char *argv[])
{
    struct blkin_span span;

    blkin_init();
    blkin_set_service(argv[1], "127.0.0.1", 1);
    for (int i = argc > 2 ? atoi(argv[2]) : 1; i > 0; i--) {
        blkin_span_begin(&span, "packaged", BLKIN_SERVER, 0);
        blkin_span_end(&span);
        usleep(1000); /* the pace */
    }
    return 0;
}

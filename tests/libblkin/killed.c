/*
 * A process that is killed while it works, for test-killed.sh: it has ended COUNT spans, one is
 * open with an annotation, and SIGKILL takes it.
 *
 * usage: killed COUNT
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct blkin_span open;

    if (argc != 2)
        return 2;
    blkin_span_begin(&open, "open", BLKIN_SERVER, NULL);
    blkin_span_annotate(&open, "last sign of life");
    for (int i = 0; i < atoi(argv[1]); i++) {
        BLKIN_SCOPE(span, "ended", BLKIN_INTERNAL, &open);

        blkin_span_tag_int64(&span, "i", i);
    }
    kill(getpid(), SIGKILL);
    return 1;
}

/*
 * Keeps a trace again and again as the recorder does, and says so: keeping STATE-FOLDER
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "copying.h"
#include "tools/base/child.h"

int main(int argc, char **argv)
{
    static struct copying copying;
    struct writer writer;

    if (argc != 2)
        return 2;
    copying_begin(&copying);
    copying_add(&copying, 1, clock_ns());
    copying_want(&copying, (const uint64_t[]){5, 0});
    writer = copying_writer(&copying, 0, 0);
    copying_put(&writer, 5, 1, clock_ns());
    for (uint64_t number = 1;; number++) {
        const struct fetch_result result = copying_keep(&copying, argv[1], number);

        if (!result.is_kept) {
            fprintf(stderr, "not kept: %s\n", result.error.text);
            return 1;
        }
        printf("safe %llu\n", (unsigned long long)number);
        if (fflush(stdout) != 0)
            return 2;
    }
}

/*
 * Saves the root's state again and again, with a line each time: saving FILE
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/base/folders.h"
#include "tools/work/root_deltas.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    static struct root_deltas deltas = {.url.shown = "kafka://a/b"};
    struct error error;
    char *text;

    deltas.merged = merged_new();
    for (size_t i = 0; i < TOPIC_PARTITIONS_MAX; i++)
        deltas.offsets[i] = -1;
    for (deltas.offsets[0] = 1; argc == 2 && deltas.merged; deltas.offsets[0]++) {
        deltas.merged->messages = (uint64_t)deltas.offsets[0];
        text = root_deltas_state(&deltas, 1);
        if (!text || !file_write(argv[1], text, strlen(text), true, &error)) {
            fprintf(stderr, "%s\n", text ? error.text : "out of memory");
            return 1;
        }
        free(text);
        printf("safe %" PRId64 "\n", deltas.offsets[0]);
        if (fflush(stdout) != 0)
            break;
    }
    return 2;
}

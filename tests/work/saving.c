/*
 * Saves the root's state again and again, and says so: saving FILE
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/base/folders.h"
#include "tools/work/root_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct merged *merged = merged_new();
    int64_t offsets[TOPIC_PARTITIONS_MAX];
    struct error error;
    char *text;

    for (size_t i = 0; i < TOPIC_PARTITIONS_MAX; i++)
        offsets[i] = -1;
    for (offsets[0] = 1; argc == 2 && merged; offsets[0]++) {
        merged->messages = (uint64_t)offsets[0];
        text = root_state_text("kafka://a/b", merged, offsets, 1);
        if (!text || !file_write(argv[1], text, strlen(text), &error)) {
            fprintf(stderr, "%s\n", text ? error.text : "out of memory");
            return 1;
        }
        free(text);
        printf("safe %" PRId64 "\n", offsets[0]);
        if (fflush(stdout) != 0)
            break;
    }
    return 2;
}

/*
 * blkin work: a worker, or the root.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

#include <stdio.h>
#include <string.h>

static int command_has(int argc, char *argv[], const char *flag)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], flag) == 0)
            return 1;
    }
    return 0;
}

int work_command(int argc, char *argv[])
{
    if (command_has(argc, argv, "--root"))
        return root_command(argc, argv);
#ifdef HAS_KAFKA
    return worker_command(argc, argv);
#else
    fprintf(stderr, "%s: this build has no Kafka: build it with librdkafka\n", argv[0]);
    return 1;
#endif
}

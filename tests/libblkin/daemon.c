/*
 * A daemon for test-daemon.sh: it becomes one as daemons do, then waits to be told to record.
 *
 * usage: daemon PID-FILE GO-FIFO COUNT
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <zipkin_c.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int write_pid(const char *path)
{
    FILE *file = fopen(path, "w");

    if (!file)
        return -1;
    fprintf(file, "%d\n", (int)getpid());
    return fclose(file);
}

int main(int argc, char **argv)
{
    struct blkin_endpoint endpoint;
    struct blkin_trace trace;
    char go;
    int fifo;

    if (argc != 4)
        return 2;
    blkin_init();
    blkin_init_endpoint(&endpoint, "127.0.0.1", 1, "daemon");
    if (daemon(1, 1) < 0 || write_pid(argv[1]) < 0)
        return 1;

    /* opens when the script writes */
    fifo = open(argv[2], O_RDONLY);
    if (fifo < 0 || read(fifo, &go, 1) != 1)
        return 1;
    for (int i = 0; i < atoi(argv[3]); i++) {
        blkin_init_new_trace(&trace, "request", &endpoint);
        BLKIN_KEYVAL_INTEGER(&trace, NULL, "i", i);
    }
    return 0;
}

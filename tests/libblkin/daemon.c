/*
 * A daemon for test-daemon.sh.
 *
 *     daemon PID-FILE GO-FIFO COUNT   becomes a daemon, reads a byte from the FIFO, records COUNT
 *                                     events
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

static int become_daemon(char **argv)
{
    struct blkin_endpoint endpoint;
    struct blkin_trace trace;
    char go;
    int fifo;

    blkin_init_endpoint(&endpoint, "127.0.0.1", 1, "daemon");
    if (daemon(1, 1) < 0 || write_pid(argv[1]) < 0)
        return 1;

    /* waits until the script opens the FIFO, too */
    fifo = open(argv[2], O_RDONLY);
    if (fifo < 0 || read(fifo, &go, 1) != 1)
        return 1;
    for (int i = 0; i < atoi(argv[3]); i++) {
        blkin_init_new_trace(&trace, "request", &endpoint);
        BLKIN_KEYVAL_INTEGER(&trace, NULL, "i", i);
    }
    return 0;
}

int main(int argc, char **argv)
{
    blkin_init();
    return argc == 4 ? become_daemon(argv) : 2;
}

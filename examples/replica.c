/*
 * A replica of the example storage stack: keeps blocks in a file.
 *
 * Tracing in C, server side: serve() joins the trace that came with a request, file_io()
 * is a step inside the process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "net.h"
#include "wire.h"

#include <blkin/zipkin_c.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct replica {
    const char *name;
    int file;
    struct blkin_endpoint endpoint; /* borrowed by every span: lives as long as the server */
};

static int write_file(int file, const char *data, size_t size, off_t offset)
{
    while (size > 0) {
        ssize_t done = pwrite(file, data, size, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        data += done;
        size -= (size_t)done;
        offset += done;
    }
    return fdatasync(file) < 0 ? errno : 0;
}

/* What was never written reads as zeros, as on a disk. */
static int read_file(int file, char *data, size_t size, off_t offset)
{
    while (size > 0) {
        ssize_t done = pread(file, data, size, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        if (done == 0) {
            memset(data, 0, size);
            return 0;
        }
        data += done;
        size -= (size_t)done;
        offset += done;
    }
    return 0;
}

/* A step inside the process: a child span from the first "start" to the last "end". */
static int file_io(const struct replica *replica, const struct wire_message *request, char *data,
                   const struct blkin_trace *parent)
{
    const int writing = request->op == WIRE_WRITE;
    struct blkin_trace span;
    int status;

    blkin_init_child(&span, parent, NULL, writing ? "pwrite+fdatasync" : "pread");
    BLKIN_TIMESTAMP(&span, NULL, "start");
    status = writing ? write_file(replica->file, data, request->length, (off_t)request->offset)
                     : read_file(replica->file, data, request->length, (off_t)request->offset);
    if (status != 0)
        BLKIN_KEYVAL_STRING(&span, NULL, "error", strerror(status));
    BLKIN_TIMESTAMP(&span, NULL, "end");
    return status;
}

static void serve(int fd, void *arg)
{
    const struct replica *replica = arg;
    char *data = malloc(WIRE_MAX_LENGTH);
    struct wire_message request;
    int rc;

    if (!data)
        fprintf(stderr, "%s: no memory for a connection\n", replica->name);
    while (data && (rc = wire_receive_request(fd, &request, data)) != 0) {
        struct blkin_trace span;
        int status = rc < 0 ? -rc : 0;

        /* The sender's span is the parent. Its trace id 0 means not traced: nothing is recorded. */
        blkin_init_child_info(&span, &request.trace, &replica->endpoint, wire_op_name(request.op));
        BLKIN_TIMESTAMP(&span, NULL, SERVER_RECV);
        BLKIN_KEYVAL_INTEGER(&span, NULL, "offset", (int64_t)request.offset);
        BLKIN_KEYVAL_INTEGER(&span, NULL, "length", (int64_t)request.length);
        if (status == 0)
            status = file_io(replica, &request, data, &span);
        if (status != 0)
            BLKIN_KEYVAL_STRING(&span, NULL, "error", strerror(status));
        /* Before the reply leaves: after it, the sender could end its span earlier than we ours. */
        BLKIN_TIMESTAMP(&span, NULL, SERVER_SEND);
        if (wire_send_reply(fd, &request, status, data) < 0 || rc < 0)
            break;
    }
    free(data);
}

static int usage(void)
{
    fprintf(stderr, "usage: replica --name NAME --file PATH [--listen HOST:PORT]\n"
                    "  --listen  default 127.0.0.1:0; port 0: any free port, printed when ready\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'},
        {"name", required_argument, NULL, 'n'},
        {"file", required_argument, NULL, 'f'},
        {NULL, 0, NULL, 0},
    };
    const char *listen_on = "127.0.0.1:0";
    const char *path = NULL;
    struct replica replica = {.name = NULL};
    struct net_address address;
    int listener;
    int rc;

    while ((rc = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (rc == 'l')
            listen_on = optarg;
        else if (rc == 'n')
            replica.name = optarg;
        else if (rc == 'f')
            path = optarg;
        else
            return usage();
    }
    if (!replica.name || !path || optind != argc)
        return usage();

    blkin_init(); /* once, before there are threads */

    if (net_resolve(listen_on, &address) < 0)
        return 1;
    replica.file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (replica.file < 0) {
        fprintf(stderr, "%s: cannot open '%s': %s\n", replica.name, path, strerror(errno));
        return 1;
    }
    listener = net_listen(&address);
    if (listener < 0) {
        fprintf(stderr, "%s: cannot listen on %s: %s\n", replica.name, listen_on,
                strerror(-listener));
        return 1;
    }
    /* The port is known only now; the cast keeps its 16 bits, as the library expects. */
    blkin_init_endpoint(&replica.endpoint, address.ip, (int16_t)address.port, replica.name);
    rc = net_serve(listener, replica.name, &address, serve, &replica);
    if (rc < 0)
        fprintf(stderr, "%s: cannot serve: %s\n", replica.name, strerror(-rc));
    close(replica.file);
    return rc < 0 ? 1 : 0;
}

/*
 * A server of one thread, not instrumented. A request is a line of calls on the server's file, such
 * as "pread 4096 0; fdatasync", and the answer is "done". Requests "commit" of several clients get
 * their answers after one group commit. After "gather N", the server reads again only when N
 * clients have sent a request.
 *
 *     usage: files PORT FILE CLIENTS: ends after CLIENTS clients have connected and disconnected
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "waits.h"
#include "wire.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#define FILES_CLIENTS_MAX 64

static int file, other;
static char bytes[1 << 16];
static int waiting[FILES_CLIENTS_MAX], waiting_count; /* clients that wait for the commit */
static int clients[FILES_CLIENTS_MAX], client_count;
static int gathered; /* the number of requests for which gather() waits */
static const char *file_name;

static void must(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

/* Closes and opens the file by stdio(3). The descriptor keeps its number. */
static void reopen(const char *path)
{
    FILE *stream = fdopen(file, "r+");
    const int before = file;

    must(stream != NULL, "fdopen");
    fclose(stream);
    stream = fopen(path, "r+");
    must(stream != NULL, "fopen");
    file = fileno(stream);
    must(file == before, "the same descriptor");
}

static void call(int client, const char *line)
{
    char name[32] = "", path[256] = "";
    long size = 0, offset = 0;
    struct iovec parts[2] = {{bytes, 10}, {bytes, 20}};
    ssize_t result = 0;

    sscanf(line, "%31s %ld %ld", name, &size, &offset);
    if (strcmp(name, "pread") == 0)
        result = pread(file, bytes, (size_t)size, offset);
    else if (strcmp(name, "pwrite") == 0)
        result = pwrite(file, bytes, (size_t)size, offset);
    else if (strcmp(name, "read") == 0)
        result = read(file, bytes, (size_t)size);
    else if (strcmp(name, "write") == 0)
        result = write(file, bytes, (size_t)size);
    else if (strcmp(name, "readv") == 0)
        result = readv(file, parts, 2);
    else if (strcmp(name, "writev") == 0)
        result = writev(file, parts, 2);
    else if (strcmp(name, "preadv") == 0)
        result = preadv(file, parts, 2, offset);
    else if (strcmp(name, "pwritev") == 0)
        result = pwritev(file, parts, 2, offset);
    else if (strcmp(name, "fsync") == 0)
        result = fsync(file);
    else if (strcmp(name, "fdatasync") == 0)
        result = fdatasync(file);
    else if (strcmp(name, "sync_file_range") == 0)
        result = sync_file_range(file, offset, size, SYNC_FILE_RANGE_WRITE);
    else if (strcmp(name, "fallocate") == 0)
        result = fallocate(file, 0, offset, size);
    else if (strcmp(name, "ftruncate") == 0)
        result = ftruncate(file, size);
    else if (strcmp(name, "sendfile") == 0)
        result = sendfile(client, file, &offset, (size_t)size);
    else if (strcmp(name, "bad") == 0)
        result = pwrite(other, bytes, 1, 0) < 0 && errno == EBADF ? 0 : -1;
    else if (strcmp(name, "reopen") == 0 && sscanf(line, "%*s %255s", path) == 1)
        reopen(path);
    else if (strcmp(name, "replace") == 0 && sscanf(line, "%*s %255s", path) == 1)
        must(syscall(SYS_close, file) == 0 && syscall(SYS_openat, AT_FDCWD, path, O_RDWR) == file,
             path);
    else if (strcmp(name, "close") == 0)
        must(close(file) == 0 && (file = open(file_name, O_RDWR)) >= 0, file_name);
    else if (strcmp(name, "none") != 0)
        must(0, line);
    must(result >= 0, name);
}

static void answer(int client)
{
    must(write(client, "done\n", 5) == 5, "answer");
}

static void serve(int client, char *line)
{
    char *rest = line, *part;

    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "commit") == 0) {
        waiting[waiting_count++] = client;
        return;
    }
    if (sscanf(line, "gather %d", &gathered) != 1) {
        while ((part = strsep(&rest, ";")))
            call(client, part);
    }
    answer(client);
}

static void commit(void)
{
    if (waiting_count == 0)
        return;
    must(pwrite(file, bytes, 100, 0) == 100 && fdatasync(file) == 0, "commit");
    while (waiting_count > 0)
        answer(waiting[--waiting_count]);
}

/* Waits until enough clients have sent requests. A call that waits for events would begin another
 * round of the preload. */
static void gather(void)
{
    int ready = 0, bytes_there;

    for (int64_t end_ms = 0; ready < gathered && wait_up_to(PATIENCE_MS, &end_ms);) {
        ready = 0;
        for (int i = 0; i < client_count; i++)
            ready += ioctl(clients[i], FIONREAD, &bytes_there) == 0 && bytes_there > 0;
    }
    gathered = 0;
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

int main(int argc, char *argv[])
{
    struct epoll_event events[FILES_CLIENTS_MAX];
    char line[1000];
    int left, server;
    const int epoll = epoll_create1(EPOLL_CLOEXEC);

    must(argc == 4, "usage: files PORT FILE CLIENTS");
    file_name = argv[2];
    left = atoi(argv[3]);
    file = open(file_name, O_RDWR | O_CREAT, 0600);
    other = open(file_name, O_RDONLY);
    must(file >= 0 && other >= 0, file_name);
    must(pwrite(file, bytes, sizeof(bytes), 0) == sizeof(bytes), "outside of requests");
    server = listen_at(argv[1]);
    watch(epoll, server);
    puts("listens");
    fflush(stdout);
    while (left > 0) {
        const int count = epoll_wait(epoll, events, FILES_CLIENTS_MAX, -1);

        for (int i = 0; i < count; i++) {
            const int fd = events[i].data.fd;
            ssize_t length;

            if (fd == server) {
                clients[client_count] = accept(server, NULL, NULL);
                watch(epoll, clients[client_count++]);
                continue;
            }
            length = read(fd, line, sizeof(line) - 1);
            if (length > 0) {
                line[length] = '\0';
                serve(fd, line);
            } else {
                close(fd);
                left--;
            }
        }
        commit();
        gather();
    }
    return 0;
}

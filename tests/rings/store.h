/*
 * systemd's store of descriptors, for a service that is a child of the test.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RINGS_STORE_H
#define TESTS_RINGS_STORE_H

#include "babeltrace-plugin/base/unix_socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STORE_MAX 256

struct store {
    int socket;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct {
        int fd;
        char name[100];
    } kept[STORE_MAX];
    int count;
};

static inline void store_open(struct store *store, const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    store->count = 0;
    (void)snprintf(store->path, sizeof(store->path), "%s/notify", folder);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", store->path);
    store->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(store->socket, (struct sockaddr *)&address, sizeof(address)) != 0)
        perror("store"), exit(1);
}

static inline void store_remove(struct store *store, const char *name)
{
    for (int i = 0; i < store->count; i++) {
        if (strcmp(store->kept[i].name, name) != 0)
            continue;
        (void)close(store->kept[i].fd);
        store->kept[i--] = store->kept[--store->count];
    }
}

/* Takes the messages that were sent so far. */
static inline void store_drain(struct store *store)
{
    char text[400];

    for (;;) {
        const char *name;
        int fd;
        const ssize_t length = unix_socket_receive(store->socket, text, sizeof(text) - 1, &fd, 0);

        if (length < 0)
            return;
        text[length] = '\0';
        name = strstr(text, "FDNAME=");
        if (strncmp(text, "FDSTOREREMOVE=1\n", 16) == 0 && name) {
            store_remove(store, name + 7);
        } else if (fd >= 0 && name && store->count < STORE_MAX) {
            store->kept[store->count].fd = fd;
            (void)snprintf(store->kept[store->count++].name, 100, "%s", name + 7);
        }
    }
}

/* Called in the service, before the service begins. */
static inline void store_hand_over(const struct store *store)
{
    char names[STORE_MAX * 100] = "", text[32];
    int high[STORE_MAX];

    for (int i = 0; i < store->count; i++) {
        (void)strcat(strcat(names, i ? ":" : ""), store->kept[i].name);
        high[i] = fcntl(store->kept[i].fd, F_DUPFD_CLOEXEC, 200);
    }
    for (int i = 0; i < store->count; i++)
        (void)dup2(high[i], 3 + i);
    (void)setenv("NOTIFY_SOCKET", store->path, 1);
    (void)snprintf(text, sizeof(text), "%d", (int)getpid());
    (void)setenv("LISTEN_PID", text, 1);
    (void)snprintf(text, sizeof(text), "%d", store->count);
    (void)setenv("LISTEN_FDS", text, 1);
    (void)setenv("LISTEN_FDNAMES", names, 1);
}

static inline void store_close(struct store *store)
{
    while (store->count)
        (void)close(store->kept[--store->count].fd);
    (void)close(store->socket);
    (void)unlink(store->path);
}

#endif

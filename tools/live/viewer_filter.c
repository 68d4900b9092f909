/*
 * The filter before the relay daemon.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "viewer_filter.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the protocol: numbers are in network order ---------------------------------------------- */

enum {
    COMMAND_CONNECT = 1,
    COMMAND_LIST_SESSIONS,
    COMMAND_ATTACH_SESSION,
    COMMAND_GET_NEXT_INDEX,
    COMMAND_GET_PACKET,
    COMMAND_GET_METADATA,
    COMMAND_GET_NEW_STREAMS,
    COMMAND_CREATE_SESSION,
    COMMAND_DETACH_SESSION,
};

struct request_head {
    uint64_t data_size;
    uint32_t command;
    uint32_t version;
};

#define REQUEST_MAX 4096 /* none has more than 20 bytes */
#define STREAMS_MAX 65536

struct index_answer {
    uint64_t offset, packet_bits, content_bits, begin, end, discarded, stream_id;
    uint32_t status;
    uint32_t flags;
};

#define INDEX_OK        1
#define INDEX_INACTIVE  5
#define FLAG_NEW_STREAM 2

/* An answer has a fixed part and items, or bytes, as many as a number in it says. */
static const struct answer_form {
    uint16_t fixed;     /* bytes */
    uint16_t item;      /* bytes of an item; 0: there are none */
    uint8_t count_at;   /* where their number is */
    uint8_t count_size; /* bytes of that */
} forms[] = {
    [COMMAND_CONNECT] = {20, 0, 0, 0},
    [COMMAND_LIST_SESSIONS] = {4, 8 + 3 * 4 + 64 + 255, 0, 4},
    [COMMAND_ATTACH_SESSION] = {8, 2 * 8 + 4 + 4096 + 255, 4, 4},
    [COMMAND_GET_NEXT_INDEX] = {sizeof(struct index_answer), 0, 0, 0},
    [COMMAND_GET_PACKET] = {12, 1, 4, 4},
    [COMMAND_GET_METADATA] = {12, 1, 0, 8},
    [COMMAND_GET_NEW_STREAMS] = {8, 2 * 8 + 4 + 4096 + 255, 4, 4},
    [COMMAND_CREATE_SESSION] = {4, 0, 0, 0},
    [COMMAND_DETACH_SESSION] = {4, 0, 0, 0},
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool take(int fd, void *buffer, size_t size)
{
    return size == 0 || recv(fd, buffer, size, MSG_WAITALL) == (ssize_t)size;
}

static bool give(int fd, const void *buffer, size_t size)
{
    const char *at = buffer;

    while (size) {
        const ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool pass_on(int from, int to, uint64_t bytes)
{
    static char piece[1 << 16];

    while (bytes) {
        const ssize_t got = recv(from, piece, bytes < sizeof(piece) ? bytes : sizeof(piece), 0);

        if (got <= 0 || !give(to, piece, (size_t)got))
            return false;
        bytes -= (uint64_t)got;
    }
    return true;
}

/* ---- one request and its answer -------------------------------------------------------------- */

static uint64_t count_in(const struct answer_form *form, const char *answer)
{
    uint64_t wide;
    uint32_t narrow;

    if (form->count_size == sizeof(wide)) {
        memcpy(&wide, answer + form->count_at, sizeof(wide));
        return be64toh(wide);
    }
    memcpy(&narrow, answer + form->count_at, sizeof(narrow));
    return ntohl(narrow);
}

/* ---- new streams ----------------------------------------------------------------------------- */

static struct {
    uint64_t session; /* that the viewer is attached to, as it came */
    char *answer;     /* with new streams, which the viewer has not asked for yet; NULL: none */
    size_t size;
} fresh;

static void forget_fresh(void)
{
    free(fresh.answer);
    fresh.answer = NULL;
}

/* Returns false if the relay daemon is gone, or tells nonsense. */
static bool ask_for_streams(int relay)
{
    const struct answer_form *form = &forms[COMMAND_GET_NEW_STREAMS];
    const struct request_head head = {htobe64(sizeof(fresh.session)),
                                      htonl(COMMAND_GET_NEW_STREAMS), 0};
    char fixed[8];
    uint64_t count;

    if (!give(relay, &head, sizeof(head)) || !give(relay, &fresh.session, sizeof(fresh.session)) ||
        !take(relay, fixed, sizeof(fixed)))
        return false;
    count = count_in(form, fixed);
    if (count == 0)
        return true;
    fresh.size = sizeof(fixed) + count * form->item;
    fresh.answer = count <= STREAMS_MAX ? malloc(fresh.size) : NULL;
    if (!fresh.answer)
        return false;
    memcpy(fresh.answer, fixed, sizeof(fixed));
    return take(relay, fresh.answer + sizeof(fixed), fresh.size - sizeof(fixed));
}

/* Of an empty packet: babeltrace2 fetches the new streams, and asks for the next index once more.
 */
static bool mend_index(int relay, struct index_answer *answer)
{
    if (answer->status != htonl(INDEX_INACTIVE))
        return true;
    if (!fresh.answer && !ask_for_streams(relay))
        return false;
    if (fresh.answer) {
        answer->status = htonl(INDEX_OK);
        answer->flags |= htonl(FLAG_NEW_STREAM);
        answer->packet_bits = answer->content_bits = 0;
    }
    return true;
}

static bool answer_request(int viewer, int relay, uint32_t command)
{
    const struct answer_form *form = &forms[command];
    union {
        char bytes[sizeof(struct index_answer)];
        struct index_answer index;
    } answer;

    if (!take(relay, answer.bytes, form->fixed))
        return false;
    if (command == COMMAND_GET_NEXT_INDEX && !mend_index(relay, &answer.index))
        return false;
    return give(viewer, answer.bytes, form->fixed) &&
           (!form->item || pass_on(relay, viewer, count_in(form, answer.bytes) * form->item));
}

static bool serve_request(int viewer, int relay)
{
    struct request_head head;
    char data[REQUEST_MAX];
    uint32_t command;

    if (!take(viewer, &head, sizeof(head)))
        return false;
    command = ntohl(head.command);
    if (be64toh(head.data_size) > sizeof(data) || command == 0 || command >= FORMS ||
        !take(viewer, data, be64toh(head.data_size)))
        return false;
    if (command == COMMAND_GET_NEW_STREAMS && fresh.answer) {
        const bool is_given = give(viewer, fresh.answer, fresh.size);

        forget_fresh();
        return is_given;
    }
    if (command == COMMAND_ATTACH_SESSION)
        memcpy(&fresh.session, data, sizeof(fresh.session));
    return give(relay, &head, sizeof(head)) && give(relay, data, be64toh(head.data_size)) &&
           answer_request(viewer, relay, command);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static struct {
    char host[256], port[16];
    int listener;
} filter;

static int connect_relay(void)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int one = 1;
    int fd;

    if (getaddrinfo(filter.host, filter.port, &hints, &found) != 0)
        return -1;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        (void)close(fd);
        fd = -1;
    }
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    freeaddrinfo(found);
    return fd;
}

static void *serve(void *unused)
{
    const int one = 1;
    int viewer, relay;

    (void)unused;
    while ((viewer = accept4(filter.listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 || errno == EINTR) {
        relay = viewer < 0 ? -1 : connect_relay();
        if (relay >= 0) {
            (void)setsockopt(viewer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
            while (serve_request(viewer, relay)) {
            }
            forget_fresh();
            (void)close(relay);
        }
        if (viewer >= 0)
            (void)close(viewer);
    }
    return NULL;
}

static bool listen_on_loopback(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);

    filter.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (filter.listener < 0 ||
        bind(filter.listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(filter.listener, 1) != 0 ||
        getsockname(filter.listener, (struct sockaddr *)&address, &length) != 0)
        return false;
    *port = ntohs(address.sin_port);
    return true;
}

bool viewer_filter_start(const char *host, const char *port, unsigned *own_port)
{
    sigset_t all, before;
    pthread_t thread;
    int failure;

    (void)snprintf(filter.host, sizeof(filter.host), "%s", host);
    (void)snprintf(filter.port, sizeof(filter.port), "%s", port);
    if (!listen_on_loopback(own_port))
        return false;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the graph */
    failure = pthread_create(&thread, NULL, serve, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure) {
        errno = failure;
        return false;
    }
    (void)pthread_detach(thread);
    return true;
}

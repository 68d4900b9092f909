/*
 * A client's connection: each of its requests goes to a back end, and the answer comes back.
 *
 * It knows no protocol. A request is what a client sends until an answer comes, the next one begins
 * with what it sends after that. So this is right for clients that wait for the whole answer
 * before they send the next request, and for requests that need none that were before.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "relay.h"

#include "choice.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK_BYTES 65536
#define CONNECT_S   2     /* and for each send */
#define ANSWER_MS   60000 /* a back end that takes longer is given up */

struct connection {
    struct choice *choice;
    int client;
    int fd[BACK_ENDS_MAX]; /* of the connection to each back end; -1: none yet */
    int current;           /* where the last request went; -1: none yet */
    bool is_answered;      /* it is, or its answer has begun */
    char chunk[CHUNK_BYTES];
};

static bool send_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        const ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        data += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* A back end may have closed an idle connection: there is an end to be read then. */
static bool is_usable(int fd)
{
    char byte;

    return fd >= 0 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

static void hang_up(struct connection *connection, size_t number)
{
    if (connection->fd[number] >= 0)
        close(connection->fd[number]);
    connection->fd[number] = -1;
}

static bool connect_to(struct connection *connection, size_t number)
{
    struct back_end *back = &connection->choice->back[number];

    if (is_usable(connection->fd[number]))
        return true;
    hang_up(connection, number);
    connection->fd[number] = net_connect(&back->address, CONNECT_S, NULL);
    if (connection->fd[number] >= 0)
        return true;
    fprintf(stderr, "dispatcher: cannot connect to %s: %s\n", back->name,
            strerror(-connection->fd[number]));
    connection->fd[number] = -1;
    return false;
}

/* Finds a back end for a request. Returns false if none can be reached. */
static bool begin_request(struct connection *connection)
{
    for (size_t i = 0; i < connection->choice->count; i++) {
        const size_t number = choice_next(connection->choice);

        if (connect_to(connection, number)) {
            connection->current = (int)number;
            connection->is_answered = false;
            return true;
        }
        choice_failed(connection->choice, number);
    }
    return false;
}

static void end_request(struct connection *connection)
{
    if (connection->current >= 0 && !connection->is_answered)
        choice_done(connection->choice, (size_t)connection->current);
    connection->is_answered = true;
}

/* Each returns false when the connection is at its end. */
static bool pass_request(struct connection *connection)
{
    const ssize_t got = recv(connection->client, connection->chunk, CHUNK_BYTES, 0);

    if (got <= 0)
        return got < 0 && errno == EINTR;
    if (connection->is_answered && !begin_request(connection))
        return false;
    return send_all(connection->fd[connection->current], connection->chunk, (size_t)got);
}

static bool pass_answer(struct connection *connection)
{
    const ssize_t got =
        recv(connection->fd[connection->current], connection->chunk, CHUNK_BYTES, 0);

    if (got < 0 && errno == EINTR)
        return true;
    if (got <= 0) { /* the client is told in the same way: it may be the answer's end */
        if (!connection->is_answered)
            fprintf(stderr, "dispatcher: %s has not answered\n",
                    connection->choice->back[connection->current].name);
        return false;
    }
    end_request(connection);
    return send_all(connection->client, connection->chunk, (size_t)got);
}

static bool pass(struct connection *connection)
{
    struct pollfd wait[2] = {
        {.fd = connection->client, .events = POLLIN},
        {.fd = connection->current < 0 ? -1 : connection->fd[connection->current],
         .events = POLLIN},
    };
    const int ready = poll(wait, 2, connection->is_answered ? -1 : ANSWER_MS);

    if (ready < 0)
        return errno == EINTR;
    if (ready == 0) {
        fprintf(stderr, "dispatcher: %s takes more than %d s to answer\n",
                connection->choice->back[connection->current].name, ANSWER_MS / 1000);
        return false;
    }
    /* the answer first: what the client sends after it is another request */
    if (wait[1].revents)
        return pass_answer(connection);
    return pass_request(connection);
}

void relay(int client, void *choice)
{
    struct connection connection = {
        .choice = choice, .client = client, .current = -1, .is_answered = true};

    memset(connection.fd, -1, sizeof(connection.fd));
    while (pass(&connection)) {
    }
    end_request(&connection);
    for (size_t i = 0; i < connection.choice->count; i++)
        hang_up(&connection, i);
}

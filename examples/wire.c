/*
 * The protocol of the example storage stack: encodes, sends, receives and checks messages.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "wire.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define WIRE_MAGIC     0x424c4b58U /* "BLKX" */
#define WIRE_REPLY     0x80U       /* in op */
#define WIRE_MAX_ERRNO 4095

/* On the wire, all big-endian: 56 bytes without padding. */
struct wire_header {
    uint32_t magic;
    uint32_t op;
    uint64_t object;
    uint64_t offset;
    uint32_t length;
    uint32_t status;
    struct blkin_trace_info_packed trace;
};

_Static_assert(sizeof(struct wire_header) == 56, "the header has no padding");

const char *wire_op_name(uint32_t op)
{
    switch (op) {
    case WIRE_WRITE:
        return "write";
    case WIRE_READ:
        return "read";
    case WIRE_SNAPSHOT:
        return "snapshot";
    case WIRE_REPLICATE:
        return "replicate";
    default:
        return "unknown";
    }
}

/* A socket's time-out shows as EAGAIN, which tells a user nothing. */
static int socket_error(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK ? -ETIMEDOUT : -errno;
}

static int send_message(int fd, const struct wire_message *message, const void *data, size_t size)
{
    struct wire_header header = {
        .magic = htobe32(WIRE_MAGIC),
        .op = htobe32(message->op),
        .object = htobe64(message->object),
        .offset = htobe64(message->offset),
        .length = htobe32(message->length),
        .status = htobe32(message->status),
        .trace = message->trace, /* is big-endian already */
    };
    struct iovec part[2] = {{&header, sizeof(header)}, {(void *)data, size}};
    struct msghdr all = {.msg_iov = part, .msg_iovlen = size > 0 ? 2 : 1};

    while (all.msg_iovlen > 0) {
        ssize_t sent = sendmsg(fd, &all, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return socket_error();
        while (all.msg_iovlen > 0 && (size_t)sent >= all.msg_iov->iov_len) {
            sent -= (ssize_t)all.msg_iov->iov_len;
            all.msg_iov++;
            all.msg_iovlen--;
        }
        if (all.msg_iovlen > 0) {
            all.msg_iov->iov_base = (char *)all.msg_iov->iov_base + sent;
            all.msg_iov->iov_len -= (size_t)sent;
        }
    }
    return 0;
}

/* Returns 1, or 0 if the peer has closed before the first byte, or -errno. */
static int receive_all(int fd, void *buffer, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = recv(fd, (char *)buffer + done, size - done, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return socket_error();
        if (got == 0)
            return done == 0 ? 0 : -ECONNRESET;
        done += (size_t)got;
    }
    return 1;
}

/* Returns the same as receive_all(). Checks only the magic. */
static int receive_header(int fd, struct wire_message *message)
{
    struct wire_header header;
    int rc;

    memset(message, 0, sizeof(*message));
    rc = receive_all(fd, &header, sizeof(header));
    if (rc <= 0)
        return rc;
    if (be32toh(header.magic) != WIRE_MAGIC) {
        fprintf(stderr, "%s: bad message: starts with 0x%08" PRIx32 ", expected 0x%08x: closing\n",
                program_invocation_short_name, be32toh(header.magic), WIRE_MAGIC);
        return -EPROTO;
    }
    message->op = be32toh(header.op);
    message->object = be64toh(header.object);
    message->offset = be64toh(header.offset);
    message->length = be32toh(header.length);
    message->status = be32toh(header.status);
    message->trace = header.trace;
    return 1;
}

static bool has_data(uint32_t op)
{
    return op == WIRE_WRITE || op == WIRE_REPLICATE;
}

static int check_request(const struct wire_message *request)
{
    const bool snapshot = request->op == WIRE_SNAPSHOT;

    if (request->op < WIRE_WRITE || request->op > WIRE_REPLICATE) {
        fprintf(stderr, "%s: bad request: op %" PRIu32 ", expected %d to %d: closing\n",
                program_invocation_short_name, request->op, WIRE_WRITE, WIRE_REPLICATE);
        return -EOPNOTSUPP;
    }
    if (request->length > WIRE_MAX_LENGTH || (request->length == 0) != snapshot) {
        fprintf(stderr, "%s: bad request: length %" PRIu32 " of a %s, expected %s: closing\n",
                program_invocation_short_name, request->length, wire_op_name(request->op),
                snapshot ? "0" : "1 to 1048576");
        return request->length > WIRE_MAX_LENGTH ? -EMSGSIZE : -EINVAL;
    }
    if (request->offset > WIRE_MAX_OFFSET) {
        fprintf(stderr, "%s: bad request: offset %" PRIu64 ", expected 0 to %" PRIu64 ": closing\n",
                program_invocation_short_name, request->offset, WIRE_MAX_OFFSET);
        return -EFBIG;
    }
    return 1;
}

int wire_send_request(int fd, const struct wire_message *request, const void *data)
{
    return send_message(fd, request, data, has_data(request->op) ? request->length : 0);
}

int wire_send_reply(int fd, const struct wire_message *request, int status, const void *data)
{
    struct wire_message reply = *request;
    const bool found = request->op == WIRE_READ && status == 0;

    reply.op = request->op | WIRE_REPLY;
    reply.status = (uint32_t)status;
    return send_message(fd, &reply, data, found ? request->length : 0);
}

int wire_receive_request(int fd, struct wire_message *request, void *data)
{
    int rc = receive_header(fd, request);

    if (rc <= 0)
        return rc;
    rc = check_request(request);
    if (rc > 0 && has_data(request->op))
        rc = receive_all(fd, data, request->length);
    return rc == 0 ? -ECONNRESET : rc;
}

int wire_receive_reply(int fd, const struct wire_message *request, void *data, int *status)
{
    struct wire_message reply;
    int rc = receive_header(fd, &reply);

    if (rc > 0 && (reply.op != (request->op | WIRE_REPLY) || reply.object != request->object ||
                   reply.offset != request->offset || reply.length != request->length ||
                   reply.status > WIRE_MAX_ERRNO)) {
        fprintf(stderr,
                "%s: bad reply: op %" PRIu32 " offset %" PRIu64 " length %" PRIu32
                " status %" PRIu32 " to a %s of offset %" PRIu64 " length %" PRIu32 ": closing\n",
                program_invocation_short_name, reply.op, reply.offset, reply.length, reply.status,
                wire_op_name(request->op), request->offset, request->length);
        return -EPROTO;
    }
    if (rc > 0 && request->op == WIRE_READ && reply.status == 0)
        rc = receive_all(fd, data, reply.length);
    if (rc <= 0)
        return rc == 0 ? -ECONNRESET : rc;
    *status = (int)reply.status;
    return 0;
}

/* ---- a connection to another daemon */

int peer_resolve(struct peer_address *address, const char *text)
{
    address->text = text;
    return net_resolve(text, &address->net);
}

void peer_init(struct peer *peer, const struct peer_address *address, int timeout_s)
{
    *peer = (struct peer){.address = address, .timeout_s = timeout_s, .fd = -1};
}

void peer_close(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
}

/* Closes the connection: a late reply would be taken for the reply to the next request. */
int peer_fail(struct peer *peer, int error)
{
    if (!peer->was_reported)
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, peer->address->text,
                strerror(error));
    peer->was_reported = 1;
    peer_close(peer);
    return error;
}

int peer_send(struct peer *peer, const struct wire_message *request, const void *data)
{
    int rc = 0;

    if (peer->fd < 0)
        rc = peer->fd = net_connect(&peer->address->net, peer->timeout_s, NULL);
    if (rc >= 0)
        rc = wire_send_request(peer->fd, request, data);
    return rc < 0 ? peer_fail(peer, -rc) : 0;
}

int peer_receive(struct peer *peer, const struct wire_message *request, void *data)
{
    int status = 0;
    int rc = wire_receive_reply(peer->fd, request, data, &status);

    if (rc < 0)
        return peer_fail(peer, -rc);
    peer->was_reported = 0;
    return status;
}

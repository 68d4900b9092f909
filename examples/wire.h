/*
 * The protocol of the example storage stack: a fixed header that carries the trace, then data.
 *
 * These functions record no spans: the trace is passed on like any other field, in BlkKin's own 24
 * bytes. Both APIs can write and read them: blkin_pack_trace_info() and blkin_context_to_packed().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXAMPLES_WIRE_H_
#define EXAMPLES_WIRE_H_

#include "net.h"

#include <blkin/zipkin_c.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WIRE_MAX_LENGTH (1U << 20)          /* of one read or write */
#define WIRE_MAX_OFFSET (UINT64_C(1) << 40) /* far from overflowing off_t */

enum wire_op {
    WIRE_WRITE = 1, /* length bytes of data follow the header */
    WIRE_READ,      /* the reply has length bytes of data, if its status is 0 */
    WIRE_SNAPSHOT,  /* no data, length 0 */
    WIRE_REPLICATE, /* a write of an object, from its primary store to a secondary one */
};

struct wire_message {
    uint32_t op; /* enum wire_op */
    uint32_t length;
    uint64_t object; /* to the gateway and the mapper: 0, and offset is in the volume */
    uint64_t offset;
    uint32_t status;                      /* of a reply: 0, or a Linux errno */
    struct blkin_trace_info_packed trace; /* the sender's span; all zeros: not traced */
};

/* Returns the name of a span: "write", "read" and so on, or "unknown". */
const char *wire_op_name(uint32_t op);

/*
 * Sends a request. data: of a write or replicate. Returns 0 or -errno. After an error of this or
 * any function below, close the connection: its next bytes may be the middle of a message.
 */
int wire_send_request(int fd, const struct wire_message *request, const void *data);

/* Sends the reply to the request. data: of a successful read. Returns 0 or -errno. */
int wire_send_reply(int fd, const struct wire_message *request, int status, const void *data);

/*
 * Receives a request, and its data into data (WIRE_MAX_LENGTH bytes). Returns 1, or 0 if the peer
 * has closed the connection, or -errno. After -errno, *request has the fields that were received,
 * so that the caller can trace and answer the request. They are all zero (not traced) if the bytes
 * are no request. Reports errors of the protocol to stderr.
 */
int wire_receive_request(int fd, struct wire_message *request, void *data);

/*
 * Receives the reply to request, with the data of a read into data (request->length bytes).
 * Returns 0 and sets *status to 0 or the errno that the peer answered, or returns -errno.
 */
int wire_receive_reply(int fd, const struct wire_message *request, void *data, int *status);

/*
 * A connection to another daemon. peer_send() makes it when there is none. One thread at a time may
 * use it. These functions record no spans: the caller does.
 */
struct peer_address {
    const char *text; /* HOST:PORT as given */
    struct net_address net;
};

struct peer {
    const struct peer_address *address;
    int timeout_s;
    int fd;           /* negative: not connected */
    int was_reported; /* on stderr, since the peer last answered */
};

/* Reads HOST:PORT. Returns 0, or -EINVAL after a message to stderr. */
int peer_resolve(struct peer_address *address, const char *text);

void peer_init(struct peer *peer, const struct peer_address *address, int timeout_s);
void peer_close(struct peer *peer);

/*
 * Send a request, and receive its reply. Return 0, or the errno that the peer answered, or the
 * errno of a failed connection, which is then closed.
 */
int peer_send(struct peer *peer, const struct wire_message *request, const void *data);
int peer_receive(struct peer *peer, const struct wire_message *request, void *data);

/* Reports the error and closes the connection. Returns the error. */
int peer_fail(struct peer *peer, int error);

#ifdef __cplusplus
}
#endif

#endif /* EXAMPLES_WIRE_H_ */

/*
 * A connection to another daemon of the example storage stack, made when it is needed.
 *
 * For one thread at a time. Nothing here records anything: whoever calls has the span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXAMPLES_PEER_H_
#define EXAMPLES_PEER_H_

#include "net.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

struct peer_address {
    const char *text; /* HOST:PORT as given */
    struct net_address net;
};

struct peer {
    const struct peer_address *address;
    int timeout_s;
    int fd;           /* negative: not connected */
    int was_reported; /* on stderr, since it last answered */
};

/* From HOST:PORT. Returns 0, or -EINVAL after a message to stderr. */
int peer_resolve(struct peer_address *address, const char *text);

void peer_init(struct peer *peer, const struct peer_address *address, int timeout_s);
void peer_close(struct peer *peer);

/*
 * Send a request, and receive the reply to it: see wire.h. They return 0, or an errno: that of the
 * connection, which is then closed, or the one that the peer answered.
 */
int peer_send(struct peer *peer, const struct wire_message *request, const void *data);
int peer_receive(struct peer *peer, const struct wire_message *request, void *data);

/* Reports the error and closes the connection, as they do. Returns the error. */
int peer_fail(struct peer *peer, int error);

#ifdef __cplusplus
}
#endif

#endif /* EXAMPLES_PEER_H_ */

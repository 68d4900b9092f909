/*
 * TCP for the example storage stack: addresses, connections and a server with a thread each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXAMPLES_NET_H_
#define EXAMPLES_NET_H_

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

struct net_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } sock;
    socklen_t sock_length;
    char ip[INET6_ADDRSTRLEN]; /* as a blkin endpoint wants it */
    uint16_t port;
};

/* From "HOST:PORT" or "[IPV6]:PORT". Returns 0, or -EINVAL after a message to stderr. */
int net_resolve(const char *host_port, struct net_address *address);

/*
 * A socket that listens on host_port; address becomes what that is: port 0 becomes the real one.
 * Returns it, or -errno after a message to stderr.
 */
int net_open(const char *host_port, struct net_address *address);

/*
 * A connection to peer; local, if not NULL, becomes its own address. Or -errno. From then on no
 * single wait on it takes longer than timeout_s.
 */
int net_connect(const struct net_address *peer, int timeout_s, struct net_address *local);

/*
 * Prints "NAME listening on IP:PORT", then calls serve() in a thread of its own for each
 * connection, until SIGTERM or SIGINT. Requests that are being served are finished first. Closes
 * the connections and listener. Returns 0 or -errno.
 */
int net_serve(int listener, const char *name, const struct net_address *address,
              void (*serve)(int fd, void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif /* EXAMPLES_NET_H_ */

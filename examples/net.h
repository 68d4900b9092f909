/*
 * TCP for the example storage stack: addresses, connections, and a server with a thread for each
 * connection.
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
    char ip[INET6_ADDRSTRLEN]; /* for a blkin endpoint */
    uint16_t port;
};

/* Reads "HOST:PORT" or "[IPV6]:PORT". Returns 0, or -EINVAL after a message to stderr. */
int net_resolve(const char *host_port, struct net_address *address);

/*
 * Returns a socket that listens on host_port, or -errno after a message to stderr. Sets address;
 * for port 0, to the port that the kernel chose.
 */
int net_open(const char *host_port, struct net_address *address);

/*
 * Returns a connection to peer, or -errno. Connecting, and each send and receive, waits for at most
 * timeout_s. If local is not NULL, *local becomes the address of this side.
 */
int net_connect(const struct net_address *peer, int timeout_s, struct net_address *local);

/*
 * Prints "NAME listening on IP:PORT". Calls serve() in a new thread for each connection, until
 * SIGTERM or SIGINT. Then finishes the current requests, and closes the connections and the
 * listener. Returns 0 or -errno.
 */
int net_serve(int listener, const char *name, const struct net_address *address,
              void (*serve)(int fd, void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif /* EXAMPLES_NET_H_ */

/*
 * The remote side of a span, of a socket's address.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "blkin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* An address as text, and its port; "" and 0 if it is of another family, or cut off. */
static uint16_t address_to_text(const struct sockaddr *address, size_t length,
                                char text[INET6_ADDRSTRLEN])
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;
    sa_family_t family;

    text[0] = '\0';
    if (!address || length < sizeof(family))
        return 0;
    memcpy(&family, address, sizeof(family));
    if (family == AF_INET && length >= sizeof(four)) {
        memcpy(&four, address, sizeof(four));
        (void)inet_ntop(AF_INET, &four.sin_addr, text, INET6_ADDRSTRLEN);
        return ntohs(four.sin_port);
    }
    if (family != AF_INET6 || length < sizeof(six))
        return 0;
    memcpy(&six, address, sizeof(six));
    if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
        (void)inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text, INET6_ADDRSTRLEN);
    else
        (void)inet_ntop(AF_INET6, &six.sin6_addr, text, INET6_ADDRSTRLEN);
    return ntohs(six.sin6_port);
}

void blkin_span_set_remote_sockaddr(struct blkin_span *span, const char *name,
                                    const struct sockaddr *address, size_t length)
{
    const int saved_errno = errno;
    char text[INET6_ADDRSTRLEN];
    uint16_t port;

    if (!blkin_span_is_recorded(span))
        return;
    port = address_to_text(address, length, text);
    blkin_span_set_remote_(span, name, text, port);
    errno = saved_errno;
}

/*
 * Addresses of the internet as text.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ADDRESS_H
#define BLKIN_ADDRESS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/*
 * Writes the text of an IPv4 or IPv6 address and returns its port. An IPv4 address in IPv6 is
 * written as IPv4. For another family, or an address that is cut off, the text is "" and the port
 * is 0.
 */
static inline uint16_t blkin_address_text(const void *address, size_t length,
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

#endif

/*
 * Sets the remote side of a span from a socket's address.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "blkin.h"

#include "libblkin/base/address.h"

#include <errno.h>

void blkin_span_set_remote_sockaddr(struct blkin_span *span, const char *name,
                                    const struct sockaddr *address, size_t length)
{
    const int saved_errno = errno;
    char text[INET6_ADDRSTRLEN];
    uint16_t port;

    if (!blkin_span_is_recorded(span))
        return;
    port = blkin_address_text(address, length, text);
    blkin_span_set_remote_(span, name, text, port);
    errno = saved_errno;
}

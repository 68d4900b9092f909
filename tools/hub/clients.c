/*
 * Connections: until one has shown who it is, it shares a small room with all other strangers, and
 * those of its address have a part of that; then it is one of the few of its host. Where there are
 * too many, the oldest is closed: a recorder says who it is at once, and connects again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define STRANGERS_MAX 1024 /* with TLS, 30 KiB each */
#define ADDRESS_MAX   256  /* of them, of one address */
#define IDLE_S        300  /* a known one may say nothing for so long */
#define HOST_MAX      4    /* a recorder has two; one that is started anew, two more */

static void list_in(struct clients *list, struct client *client)
{
    client->of = list;
    client->newer = NULL;
    client->older = list->newest;
    if (client->older)
        client->older->newer = client;
    list->newest = client;
    list->count++;
}

static void list_out(struct client *client)
{
    if (!client->of)
        return;
    if (client->newer)
        client->newer->older = client->older;
    else
        client->of->newest = client->older;
    if (client->older)
        client->older->newer = client->newer;
    client->of->count--;
    client->of = NULL;
}

/* libmicrohttpd sees that the connection has ended, and frees it. */
static void hang_up(struct server *server, struct client *client)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    list_out(client);
    server->counts.hung_up++;
    if (info)
        (void)shutdown(info->connect_fd, SHUT_RDWR);
}

/* Of IPv4 as IPv6 maps it. */
static struct in6_addr address_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct in6_addr address = IN6ADDR_ANY_INIT;
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } from;

    if (!info || !info->client_addr)
        return address;
    if (info->client_addr->sa_family == AF_INET6) {
        memcpy(&from.six, info->client_addr, sizeof(from.six));
        return from.six.sin6_addr;
    }
    memcpy(&from.four, info->client_addr, sizeof(from.four));
    memset(&address.s6_addr[10], 0xff, 2);
    memcpy(&address.s6_addr[12], &from.four.sin_addr, sizeof(from.four.sin_addr));
    return address;
}

/* The oldest one, of that address (NULL: of any), if there are more than that; one that waits for
 * messages is in use. */
static struct client *beyond(const struct clients *list, const struct in6_addr *address,
                             unsigned most, const struct request *waiting)
{
    struct client *oldest = NULL;
    unsigned count = 0;

    for (struct client *client = list->newest; client; client = client->older) {
        if (address && memcmp(&client->address, address, sizeof(*address)) != 0)
            continue;
        if (!waiting || waiting->connection != client->connection)
            oldest = client;
        count++;
    }
    return count > most ? oldest : NULL;
}

static void come(struct server *server, struct MHD_Connection *connection, void **place)
{
    struct client *client = calloc(1, sizeof(*client)), *old;

    *place = client;
    if (!client)
        return;
    client->connection = connection;
    client->address = address_of(connection);
    list_in(&server->strangers, client);
    old = beyond(&server->strangers, &client->address, ADDRESS_MAX, NULL);
    if (!old && server->strangers.count > STRANGERS_MAX)
        old = beyond(&server->strangers, NULL, STRANGERS_MAX, NULL);
    if (old)
        hang_up(server, old);
}

void clients_notify(void *context, struct MHD_Connection *connection, void **place,
                    enum MHD_ConnectionNotificationCode code)
{
    struct client *client = *place;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        come(context, connection, place);
    } else if (client) {
        list_out(client);
        free(client);
        *place = NULL;
    }
}

void clients_know(struct server *server, struct MHD_Connection *connection, struct host *host)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct client *client = info ? info->socket_context : NULL, *old;

    if (!client || client->of != &server->strangers)
        return; /* it is known */
    list_out(client);
    list_in(&host->clients, client);
    (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)IDLE_S);
    old = beyond(&host->clients, NULL, HOST_MAX, host->waiting);
    if (old)
        hang_up(server, old);
}

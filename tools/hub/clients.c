/*
 * Connections: until one has shown who it is, it shares a small room with all other strangers, and
 * those of its address have a part of that; then it is one of the few of its host. Where there are
 * too many, the oldest is closed: a recorder says who it is at once, and connects again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server_parts.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDRESS_MAX 256 /* strangers of one address */
#define IDLE_S      300 /* a known one may say nothing for so long */
#define HOST_MAX    4 /* a recorder has two; a recorder that is restarted has two more for a while */

static void list_in(struct clients *list, struct client *client)
{
    client->of = list;
    cds_list_add(&client->in_clients, &list->list);
    list->count++;
}

static void list_out(struct client *client)
{
    if (!client->of)
        return;
    cds_list_del(&client->in_clients);
    client->of->count--;
    client->of = NULL;
}

/* Of IPv4 as IPv6 maps it. */
static struct in6_addr address_of(const union peer_address *from)
{
    struct in6_addr address = IN6ADDR_ANY_INIT;

    if (from->any.sa_family == AF_INET6) {
        address = from->six.sin6_addr;
        if (!IN6_IS_ADDR_V4MAPPED(&address))
            memset(&address.s6_addr[8], 0, 8);
        return address;
    }
    memset(&address.s6_addr[10], 0xff, 2);
    memcpy(&address.s6_addr[12], &from->four.sin_addr, sizeof(from->four.sin_addr));
    return address;
}

void clients_free(struct server *server, struct client *client)
{
    gate_leave(server, client);
    list_out(client);
    free(client);
}

void clients_hang_up(struct server *server, struct client *client)
{
    server->counts.hung_up++;
    if (client->connection) {
        gate_leave(server, client);
        list_out(client);
        (void)shutdown(client->fd, SHUT_RDWR);
        return;
    }
    server->gate.at_gate--;
    close(client->fd);
    clients_free(server, client);
}

/* The oldest one, of that address (NULL: of any), if there are more than that; one that waits for
 * messages is in use. */
static struct client *beyond(const struct clients *list, const struct in6_addr *address,
                             unsigned most, const struct request *waiting)
{
    struct client *client, *oldest = NULL;
    unsigned count = 0;

    cds_list_for_each_entry(client, &list->list, in_clients)
    {
        if (address && memcmp(&client->address, address, sizeof(*address)) != 0)
            continue;
        if (!waiting || waiting->connection != client->connection)
            oldest = client;
        count++;
    }
    return count > most ? oldest : NULL;
}

struct client *clients_new(struct server *server, int fd, const union peer_address *from,
                           socklen_t length)
{
    struct client *client = calloc(1, sizeof(*client)), *old;

    if (!client)
        return NULL;
    client->fd = fd;
    client->from = *from;
    client->from_length = length;
    client->address = address_of(from);
    client->since_ms = clock_ms();
    list_in(&server->strangers, client);
    old = beyond(&server->strangers, &client->address, ADDRESS_MAX, NULL);
    if (!old && server->strangers.count > STRANGERS_MAX)
        old = beyond(&server->strangers, NULL, STRANGERS_MAX, NULL);
    if (old)
        clients_hang_up(server, old);
    return client;
}

void clients_notify(void *context, struct MHD_Connection *connection, void **place,
                    enum MHD_ConnectionNotificationCode code)
{
    struct server *server = context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *place = server->gate.admitted;
        if (!server->gate.admitted)
            return;
        server->gate.admitted->connection = connection;
        gate_watch_handshake(server->gate.admitted);
        server->gate.admitted = NULL;
    } else if (*place) {
        clients_free(server, *place);
        *place = NULL;
    }
}

static struct client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

void clients_go_on(struct MHD_Connection *connection)
{
    struct client *client = client_of(connection);

    if (client)
        client->since_ms = clock_ms();
}

void clients_look_for_slow(struct server *server)
{
    const int64_t late_ms = clock_ms() - STRANGER_S * 1000;
    struct client *client, *older;

    cds_list_for_each_entry_safe(client, older, &server->strangers.list, in_clients)
    {
        if (client->since_ms < late_ms)
            clients_hang_up(server, client);
    }
}

void clients_know(struct server *server, struct MHD_Connection *connection, struct host *host)
{
    struct client *client = client_of(connection), *old;

    if (!client || client->of != &server->strangers)
        return; /* it is known */
    gate_leave(server, client);
    list_out(client);
    list_in(&host->clients, client);
    (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)IDLE_S);
    old = beyond(&host->clients, NULL, HOST_MAX, host->waiting);
    if (old)
        clients_hang_up(server, old);
}

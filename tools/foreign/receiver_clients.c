/*
 * Connections: where there are too many, the one that is idle for longest is closed. An SDK
 * connects again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "receiver_parts.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MS 30000 /* a request may take so long */

/* It is the newest one. */
static void receiver_touch(struct receiver *receiver, struct foreign_client *client)
{
    client->since_ms = clock_ms();
    cds_list_del(&client->in_list);
    cds_list_add_tail(&client->in_list, &receiver->clients);
}

static void receiver_forget(struct receiver *receiver, struct foreign_client *client)
{
    receiver->client_count -= !client->is_leaving;
    cds_list_del(&client->in_list);
    free(client);
}

static void receiver_hang_up(struct receiver *receiver, struct foreign_client *client)
{
    client->is_leaving = true;
    receiver->client_count--;
    receiver->counts->hung_up++;
    (void)shutdown(client->fd, SHUT_RDWR);
    http_run_soon(&receiver->http);
}

/* Returns false if all that there are have a request under way. */
static bool receiver_make_place(struct receiver *receiver)
{
    struct foreign_client *client;

    if (receiver->client_count < receiver->most_clients)
        return true;
    cds_list_for_each_entry(client, &receiver->clients, in_list)
    {
        if (!client->is_busy && !client->is_leaving) {
            receiver_hang_up(receiver, client);
            return true;
        }
    }
    return false;
}

void receiver_admit(void *context, int fd, const union http_address *from, socklen_t length)
{
    struct receiver *receiver = context;
    struct foreign_client *client =
        receiver_make_place(receiver) ? calloc(1, sizeof(*client)) : NULL;

    receiver->counts->connections++;
    if (!client) {
        receiver->counts->hung_up++;
        close(fd);
        return;
    }
    client->fd = fd;
    client->since_ms = clock_ms();
    cds_list_add_tail(&client->in_list, &receiver->clients);
    receiver->client_count++;
    receiver->admitted = client;
    (void)MHD_add_connection(receiver->http.daemon, fd, &from->any, length);
    if (receiver->admitted) { /* libmicrohttpd has closed it without a call of receiver_notify() */
        receiver->counts->hung_up++;
        receiver_forget(receiver, client);
    }
    receiver->admitted = NULL;
}

void receiver_notify(void *context, struct MHD_Connection *connection, void **place,
                     enum MHD_ConnectionNotificationCode code)
{
    struct receiver *receiver = context;

    (void)connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *place = receiver->admitted;
        receiver->admitted = NULL;
    } else if (*place) {
        receiver_forget(receiver, *place);
        *place = NULL;
    }
}

void receiver_set_busy(struct receiver *receiver, struct MHD_Connection *connection, bool is_busy)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct foreign_client *client = info ? info->socket_context : NULL;

    if (!client)
        return;
    client->is_busy = is_busy;
    receiver_touch(receiver, client);
}

void receiver_end_late(struct receiver *receiver)
{
    const int64_t late_ms = clock_ms() - REQUEST_MS;
    struct foreign_client *client;

    cds_list_for_each_entry(client, &receiver->clients, in_list)
    {
        if (client->since_ms > late_ms)
            return;
        if (client->is_busy && !client->is_leaving)
            receiver_hang_up(receiver, client);
    }
}

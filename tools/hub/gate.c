/*
 * The gate: the hub accepts connections here, and gives them to libmicrohttpd few at a time.
 *
 * A TLS handshake costs the hub about half a millisecond and the other end nothing. If 1000 ends
 * send their ClientHello at once, libmicrohttpd would answer all of them before it looks at a real
 * host again. So a TLS connection waits here until its ClientHello has come as a whole. Then each
 * turn of the loop admits some, of addresses with no handshake under way first. The number of
 * handshakes under way has a limit too, as later steps of a handshake can also be sent at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server_parts.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/monotonic.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADMITTED_MAX  4    /* handshakes that begin in each turn */
#define HANDSHAKE_MAX 32   /* under way */
#define HANDSHAKE_MS  1000 /* a handshake may take so long while others wait at the gate */
#define LOOK_MS       20   /* if all places are taken: so long until the next look */
#define CROWD         128  /* addresses that are ready: more than an attacker has, it is hoped */
#define RECORD_HEAD   5    /* of a TLS record: type, version, length */
#define HELLO_HEAD    4    /* of a handshake message: type, length */

/* ---- queues ---------------------------------------------------------------------------------- */

static void queue_in(struct client_queue *queue, struct client *client)
{
    client->queue = queue;
    cds_list_add_tail(&client->in_queue, &queue->clients);
    queue->count++;
}

static void queue_out(struct client *client)
{
    if (!client->queue)
        return;
    cds_list_del(&client->in_queue);
    client->queue->count--;
    client->queue = NULL;
}

/* Where the client's address is counted. Addresses that share a place are taken for one; the seed
 * keeps an attacker from choosing such an address. */
static size_t place_of(const struct server *server, const struct client *client)
{
    uint64_t halves[2];

    memcpy(halves, &client->address, sizeof(halves));
    return hash_mix(hash_mix(server->gate.seed ^ halves[0]) ^ halves[1]) % GATE_PLACES;
}

/* How many handshakes of the client's address are under way. */
static unsigned gate_count_of(const struct server *server, const struct client *client)
{
    return server->gate.of_address[place_of(server, client)];
}

static void be_ready(struct server *server, struct client *client)
{
    queue_in(&server->gate.ready, client);
    if (server->gate.ready_of[place_of(server, client)]++ == 0)
        server->gate.ready_places++;
}

static void be_under_way(struct server *server, struct client *client)
{
    queue_in(&server->gate.under_way, client);
    server->gate.of_address[place_of(server, client)]++;
}

void gate_leave(struct server *server, struct client *client)
{
    struct gate *gate = &server->gate;

    if (client->queue == &gate->under_way)
        gate->of_address[place_of(server, client)]--;
    else if (client->queue == &gate->ready && --gate->ready_of[place_of(server, client)] == 0)
        gate->ready_places--;
    queue_out(client);
}

/* All hosts come at once, as after a restart of the hub: to accept more of them would be to hang up
 * on those that wait, and all would try again. They wait in the queue of the socket. */
static bool is_crowded(void *context)
{
    const struct server *server = context;

    return server->strangers.count >= STRANGERS_MAX / 2 && server->gate.ready_places >= CROWD;
}

/* ---- TLS ------------------------------------------------------------------------------------- */

enum hello { HELLO_IS_PART, HELLO_IS_WHOLE, HELLO_IS_WRONG };

/* What is no TLS counts as whole: libmicrohttpd refuses it, at no cost. */
static enum hello look_at_hello(int fd)
{
    uint8_t head[RECORD_HEAD + HELLO_HEAD];
    const ssize_t got = recv(fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
    int there = 0;
    int record, hello;

    if (got <= 0)
        return got < 0 && errno == EAGAIN ? HELLO_IS_PART : HELLO_IS_WRONG;
    if (head[0] != 22)
        return HELLO_IS_WHOLE;
    if ((size_t)got < sizeof(head) || ioctl(fd, FIONREAD, &there) != 0)
        return HELLO_IS_PART;
    record = head[3] << 8 | head[4];
    hello = head[6] << 16 | head[7] << 8 | head[8];
    /* one that is spread over several records could end in libmicrohttpd, with 1000 others */
    if (hello + HELLO_HEAD > record)
        return HELLO_IS_WRONG;
    return there >= RECORD_HEAD + record ? HELLO_IS_WHOLE : HELLO_IS_PART;
}

/* A gnutls_handshake_hook_func: after the client's Finished a connection costs little. */
static int has_finished(gnutls_session_t tls, unsigned type, unsigned when, unsigned incoming,
                        const gnutls_datum_t *message)
{
    struct client *client = gnutls_session_get_ptr(tls);

    (void)type;
    (void)when;
    (void)message;
    if (incoming)
        client->has_shaken_hands = true;
    return 0;
}

void gate_watch_handshake(struct client *client)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    if (!info || !info->tls_session)
        return;
    gnutls_session_set_ptr((gnutls_session_t)info->tls_session, client);
    gnutls_handshake_set_hook_function((gnutls_session_t)info->tls_session,
                                       GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST, has_finished);
}

/* ---- admitting ------------------------------------------------------------------------------- */

static void admit(struct server *server, struct client *client)
{
    gate_leave(server, client);
    if (server->access->is_tls)
        be_under_way(server, client);
    client->since_ms = clock_ms();
    server->gate.at_gate--;
    server->gate.admitted = client;
    (void)MHD_add_connection(server->http.daemon, client->fd, &client->from.any,
                             client->from_length);
    /* libmicrohttpd has closed the socket without a call of clients_notify() */
    if (server->gate.admitted)
        clients_free(server, client);
    server->gate.admitted = NULL;
}

/* The one that waits longest, of an address without handshakes if there is one. */
static struct client *next_ready(struct server *server)
{
    struct client_queue *ready = &server->gate.ready;
    struct client *client;

    cds_list_for_each_entry(client, &ready->clients, in_queue)
    {
        if (!gate_count_of(server, client))
            return client;
    }
    return ready->count ? cds_list_first_entry(&ready->clients, struct client, in_queue) : NULL;
}

/* Is there a place for it? If not, the oldest handshake ends that has taken too long, or is one of
 * several of an address while the new one is the first of its address. */
static bool make_place(struct server *server, const struct client *new)
{
    struct client_queue *under_way = &server->gate.under_way;
    const bool is_first = gate_count_of(server, new) == 0;
    const int64_t now_ms = clock_ms();
    struct client *client, *next;

    if (under_way->count < HANDSHAKE_MAX)
        return true;
    cds_list_for_each_entry_safe(client, next, &under_way->clients, in_queue)
    {
        if (client->has_shaken_hands)
            gate_leave(server, client);
    }
    if (under_way->count < HANDSHAKE_MAX)
        return true;
    cds_list_for_each_entry(client, &under_way->clients, in_queue)
    {
        if (now_ms - client->since_ms >= HANDSHAKE_MS ||
            (is_first && gate_count_of(server, client) > 1)) {
            clients_hang_up(server, client);
            break;
        }
    }
    return under_way->count < HANDSHAKE_MAX;
}

static void admit_some(void *context)
{
    struct server *server = context;
    bool has_place = true;
    struct client *client;

    timer_clear(server->loop, &server->gate.again);
    for (unsigned i = 0; i < ADMITTED_MAX && has_place && (client = next_ready(server)); i++) {
        has_place = make_place(server, client);
        if (has_place)
            admit(server, client);
    }
    if (server->gate.ready.count)
        timer_set(server->loop, &server->gate.again, has_place ? 0 : LOOK_MS);
    if (!is_crowded(server))
        accepting_wake(&server->gate.door);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void said_something(void *context, short events)
{
    struct server *server = context;
    struct epoll_event ready[64];
    const int count = epoll_wait(server->gate.epoll.fd, ready, sizeof(ready) / sizeof(ready[0]), 0);

    (void)events;
    for (int i = 0; i < count; i++) {
        struct client *client = ready[i].data.ptr;
        const enum hello hello = look_at_hello(client->fd);

        if (hello == HELLO_IS_WRONG) {
            clients_hang_up(server, client);
        } else if (hello == HELLO_IS_WHOLE) {
            (void)epoll_ctl(server->gate.epoll.fd, EPOLL_CTL_DEL, client->fd, NULL);
            be_ready(server, client);
        }
    }
    if (server->gate.ready.count)
        timer_set(server->loop, &server->gate.again, 0);
}

static bool wait_for_hello(struct server *server, struct client *client)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = client};

    return epoll_ctl(server->gate.epoll.fd, EPOLL_CTL_ADD, client->fd, &event) == 0;
}

/* Takes one that has been accepted. */
static void come_in(void *context, int fd, const union peer_address *from, socklen_t length)
{
    struct server *server = context;
    struct client *client = NULL;

    if (server_connections(server) + server->gate.at_gate < server->gate.most)
        client = clients_new(server, fd, from, length);
    if (!client) {
        server->counts.hung_up++;
        close(fd);
        return;
    }
    server->gate.at_gate++;
    if (!server->access->is_tls)
        admit(server, client);
    else if (!wait_for_hello(server, client))
        clients_hang_up(server, client);
}

void gate_tick(struct server *server)
{
    accepting_wake(&server->gate.door);
}

bool gate_open(struct server *server, int fd, unsigned most)
{
    struct gate *gate = &server->gate;

    gate->most = most;
    gate->door =
        (struct accepting){.come_in = come_in, .is_crowded = is_crowded, .context = server};
    gate->epoll =
        (struct watched){epoll_create1(EPOLL_CLOEXEC), POLLIN, said_something, server, NULL};
    gate->again = (struct timer){.due = admit_some, .context = server};
    if (gate->epoll.fd < 0)
        return false;
    gate->seed = hash_seed(gate);
    CDS_INIT_LIST_HEAD(&gate->ready.clients);
    CDS_INIT_LIST_HEAD(&gate->under_way.clients);
    accepting_begin(&gate->door, server->loop, fd);
    loop_watch(server->loop, &gate->epoll);
    return true;
}

void gate_close(struct server *server)
{
    struct gate *gate = &server->gate;
    struct client *client, *older;

    cds_list_for_each_entry_safe(client, older, &server->strangers.list, in_clients)
    {
        if (!client->connection)
            clients_hang_up(server, client);
    }
    accepting_end(&gate->door);
    close(gate->door.listener.fd);
    loop_unwatch(server->loop, &gate->epoll);
    timer_clear(server->loop, &gate->again);
    close(gate->epoll.fd);
}

/*
 * Connects with the broker by libmosquitto. A thread opens the connection, because looking up a
 * name and connecting can take long. From then on, the loop handles the connection.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "broker.h"

#ifdef HAS_MOSQUITTO

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/thread.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define KEEPALIVE_S    10
#define PAUSE_MIN_MS   100
#define PAUSE_MAX_MS   10000
#define PAUSE_LONG_MS  30000 /* so that another client with the same id is not disconnected soon */
#define BROKER_TICK_MS 1000
#define THREAD_END_MS  1000 /* broker_close() waits at most this long for a connecting thread */
#define IN_FLIGHT      100  /* the most messages in each direction without a PUBACK */
#define READS          64   /* the most calls of mosquitto_loop_read() in one broker_serve() */

/* Each connection has its own client, so no messages of an earlier connection are in it. */
struct broker_connection {
    struct broker *broker;
    struct mosquitto *client;
    pthread_t thread; /* opens the connection */
    int end_fd;       /* an eventfd that the thread writes at its end */
    /* Set when the thread ends, or when broker_close() gives up the connection. Whichever of the
     * two finds the flag already set frees the connection. */
    atomic_flag is_left_by_one;
    char host[256];
    int port;
    int result, cause; /* result of the thread's connect, and its errno */
    bool is_open;      /* the thread has connected */
    bool is_ready;     /* the broker has accepted the client and its subscription */
    /* MQTT's reason why the broker refused the client or its subscription, or ended the connection;
     * 0: none known */
    int reason;
    char log[256]; /* the last error of libmosquitto */
};

struct broker {
    struct broker_setup setup;
    struct loop *loop;
    struct broker_connection *connection; /* NULL: in a pause */
    struct watched watched;               /* end_fd, then the socket */
    struct timer timer;  /* the end of the pause; in a connection, each BROKER_TICK_MS */
    int64_t pause_ms;    /* the length of the next pause */
    bool has_long_pause; /* the next pause takes PAUSE_LONG_MS instead */
};

/* ---- callbacks of libmosquitto --------------------------------------------------------------- */

static void broker_report(const struct broker_connection *connection,
                          const struct broker_event *event)
{
    const struct broker_setup *setup = &connection->broker->setup;

    setup->event(setup->context, event);
}

static void broker_on_connect(struct mosquitto *client, void *context, int reason, int flags,
                              const mosquitto_property *properties)
{
    struct broker_connection *connection = context;
    char *const *topics = (char *const *)(uintptr_t)connection->broker->setup.topics;
    int count = 0;

    (void)flags;
    (void)properties;
    connection->reason = reason;
    while (count < BROKER_TOPICS && topics[count])
        count++;
    if (!reason)
        (void)mosquitto_subscribe_multiple(client, NULL, count, topics, 1, 0, NULL);
}

static void broker_on_subscribe(struct mosquitto *client, void *context, int id, int count,
                                const int *granted, const mosquitto_property *properties)
{
    struct broker_connection *connection = context;

    (void)id;
    (void)properties;
    for (int i = 0; i < count; i++) {
        if (granted[i] > 2) {
            connection->reason = granted[i];
            (void)mosquitto_disconnect_v5(client, 0, NULL);
            return;
        }
    }
    connection->is_ready = true;
    broker_report(connection, &(struct broker_event){.kind = BROKER_CONNECTED});
}

static void broker_on_disconnect(struct mosquitto *client, void *context, int reason,
                                 const mosquitto_property *properties)
{
    struct broker_connection *connection = context;

    (void)client;
    (void)properties;
    if (reason >= MQTT_RC_UNSPECIFIED)
        connection->reason = reason;
}

static void broker_on_publish(struct mosquitto *client, void *context, int id, int reason,
                              const mosquitto_property *properties)
{
    const bool is_refused = reason >= MQTT_RC_UNSPECIFIED;

    (void)client;
    (void)properties;
    broker_report(
        context, &(struct broker_event){.kind = is_refused ? BROKER_REFUSED : BROKER_ACCEPTED,
                                        .id = id,
                                        .text = is_refused ? mosquitto_reason_string(reason) : ""});
}

static void broker_on_message(struct mosquitto *client, void *context,
                              const struct mosquitto_message *message,
                              const mosquitto_property *properties)
{
    uint32_t left_s = BROKER_EXPIRY_S;

    (void)client;
    (void)mosquitto_property_read_int32(properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, &left_s,
                                        false);
    /* libmosquitto puts a NUL behind the payload; an empty payload is NULL */
    broker_report(
        context,
        &(struct broker_event){
            .kind = BROKER_MESSAGE,
            .held_ms = left_s < BROKER_EXPIRY_S ? (int64_t)(BROKER_EXPIRY_S - left_s) * 1000 : 0,
            .topic = message->topic,
            .text = message->payloadlen > 0 ? message->payload : "",
            .length = message->payloadlen > 0 ? (size_t)message->payloadlen : 0,
        });
}

static void broker_on_log(struct mosquitto *client, void *context, int level, const char *text)
{
    struct broker_connection *connection = context;

    (void)client;
    if (level == MOSQ_LOG_ERR)
        (void)snprintf(connection->log, sizeof(connection->log), "%s", text);
}

/* ---- the start of a connection --------------------------------------------------------------- */

static int broker_set_will(const struct broker_setup *setup, struct mosquitto *client)
{
    mosquitto_property *properties = NULL;
    int result = mosquitto_property_add_int32(&properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL,
                                              setup->will_expiry_s);

    if (!result) /* mosquitto_will_set_v5() frees the properties if it succeeds */
        result = mosquitto_will_set_v5(client, setup->will_topic, (int)strlen(setup->will),
                                       setup->will, 1, true, properties);
    if (result)
        mosquitto_property_free_all(&properties);
    return result;
}

static int broker_set_options(struct mosquitto *client)
{
    static const int options[][2] = {{MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5},
                                     {MOSQ_OPT_TCP_NODELAY, 1},
                                     {MOSQ_OPT_RECEIVE_MAXIMUM, IN_FLIGHT},
                                     {MOSQ_OPT_SEND_MAXIMUM, IN_FLIGHT}};
    int result = 0;

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]) && !result; i++)
        result = mosquitto_int_option(client, (enum mosq_opt_t)options[i][0], options[i][1]);
    return result;
}

static int broker_set_up(const struct broker_setup *setup, struct mosquitto *client)
{
    int result = broker_set_options(client);

    if (!result && setup->user)
        result = mosquitto_username_pw_set(client, setup->user, setup->password);
    if (!result && setup->is_tls)
        result = mosquitto_tls_set(client, setup->ca_file, setup->ca_file ? NULL : "/etc/ssl/certs",
                                   setup->cert_file, setup->key_file, NULL);
    if (!result)
        result = broker_set_will(setup, client);
    mosquitto_connect_v5_callback_set(client, broker_on_connect);
    mosquitto_disconnect_v5_callback_set(client, broker_on_disconnect);
    mosquitto_subscribe_v5_callback_set(client, broker_on_subscribe);
    mosquitto_publish_v5_callback_set(client, broker_on_publish);
    mosquitto_message_v5_callback_set(client, broker_on_message);
    mosquitto_log_callback_set(client, broker_on_log);
    return result;
}

static void connection_free(struct broker_connection *connection)
{
    if (connection->client)
        mosquitto_destroy(connection->client);
    if (connection->end_fd >= 0)
        close(connection->end_fd);
    free(connection);
}

static void *connection_begin(void *context)
{
    struct broker_connection *connection = context;
    mosquitto_property *properties = NULL;

    connection->result = mosquitto_property_add_int32(
        &properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, BROKER_SESSION_S);
    if (!connection->result)
        connection->result = mosquitto_connect_bind_v5(
            connection->client, connection->host, connection->port, KEEPALIVE_S, NULL, properties);
    connection->cause = errno;
    mosquitto_property_free_all(&properties);
    if (atomic_flag_test_and_set(&connection->is_left_by_one))
        connection_free(connection);
    else
        (void)eventfd_write(connection->end_fd, 1);
    return NULL;
}

/* Returns NULL when out of memory. */
static struct broker_connection *connection_new(struct broker *broker)
{
    struct broker_connection *connection = calloc(1, sizeof(*connection));

    if (!connection)
        return NULL;
    connection->broker = broker;
    connection->port = broker->setup.port;
    memcpy(connection->host, broker->setup.host, sizeof(connection->host));
    atomic_flag_clear(&connection->is_left_by_one);
    connection->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    connection->client = mosquitto_new(broker->setup.client, false, connection);
    if (connection->end_fd >= 0 && connection->client)
        return connection;
    connection_free(connection);
    return NULL;
}

/* ---- the end of a connection ----------------------------------------------------------------- */

static void connection_describe(const struct broker_connection *connection, int result, int cause,
                                struct error *error)
{
    const char *user = connection->broker->setup.user;
    const int reason = connection->reason;

    if (reason == MQTT_RC_BAD_USERNAME_OR_PASSWORD || reason == MQTT_RC_NOT_AUTHORIZED)
        error_set(error, "the broker refuses user \"%s\": %s", user ? user : "(none)",
                  mosquitto_reason_string(reason));
    else if (reason)
        error_set(error, "the broker refuses: %s", mosquitto_reason_string(reason));
    else if (result == MOSQ_ERR_ERRNO) /* EBADF: libmosquitto 2.1 does not tell why */
        error_set(error, "%s", cause == EBADF ? "no connection" : strerror(cause));
    else if (result == MOSQ_ERR_EAI)
        error_set(error, "the name of the broker's host is not known");
    else
        error_set(error, "%s%s%s", mosquitto_strerror(result), *connection->log ? " " : "",
                  connection->log);
}

static void broker_connect(void *context);

static void broker_lose(struct broker *broker, int result, int cause)
{
    struct broker_connection *connection = broker->connection;
    struct error error = {"out of memory"};
    int64_t pause_ms;

    if (connection) {
        connection_describe(connection, result, cause, &error);
        broker->pause_ms = connection->is_ready ? PAUSE_MIN_MS : broker->pause_ms;
        loop_unwatch(broker->loop, &broker->watched);
        connection_free(connection);
        broker->connection = NULL;
    }
    /* a random pause: hosts that lost the broker together do not connect together */
    pause_ms = broker->has_long_pause ? PAUSE_LONG_MS
                                      : broker->pause_ms / 2 + clock_ns() % broker->pause_ms;
    broker->has_long_pause = false;
    broker->pause_ms = broker->pause_ms < PAUSE_MAX_MS / 2 ? broker->pause_ms * 2 : PAUSE_MAX_MS;
    broker->timer.due = broker_connect;
    timer_set(broker->loop, &broker->timer, pause_ms);
    broker->setup.event(broker->setup.context,
                        &(struct broker_event){.kind = BROKER_AWAY, .text = error.text});
}

/* ---- an open connection ---------------------------------------------------------------------- */

static void broker_watch_writes(struct broker *broker)
{
    broker->watched.events =
        (short)(POLLIN | (mosquitto_want_write(broker->connection->client) ? POLLOUT : 0));
}

static void broker_serve(void *context)
{
    struct broker *broker = context;
    struct mosquitto *client = broker->connection->client;
    int result = 0, cause = 0;

    for (int i = 0; i < READS && !result && cause != EAGAIN && (broker->watched.found & ~POLLOUT);
         i++) {
        errno = 0;
        result = mosquitto_loop_read(client, 1);
        cause = errno;
    }
    if (!result && mosquitto_want_write(client)) {
        result = mosquitto_loop_write(client, 1);
        cause = errno;
    }
    if (result)
        broker_lose(broker, result, cause);
    else
        broker_watch_writes(broker);
}

static void broker_tick(void *context)
{
    struct broker *broker = context;
    const int result = mosquitto_loop_misc(broker->connection->client); /* sends PINGREQ */

    if (result) {
        broker_lose(broker, result, errno);
        return;
    }
    broker_watch_writes(broker);
    timer_set(broker->loop, &broker->timer, BROKER_TICK_MS);
}

static void broker_on_thread_end(void *context)
{
    struct broker *broker = context;
    struct broker_connection *connection = broker->connection;
    eventfd_t count;

    if (eventfd_read(connection->end_fd, &count) != 0)
        return;
    (void)pthread_join(connection->thread, NULL);
    if (connection->result) {
        broker_lose(broker, connection->result, connection->cause);
        return;
    }
    connection->is_open = true;
    broker->watched.fd = mosquitto_socket(connection->client);
    broker->watched.ready = broker_serve;
    broker_watch_writes(broker);
    broker->timer.due = broker_tick;
    timer_set(broker->loop, &broker->timer, BROKER_TICK_MS);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void broker_connect(void *context)
{
    struct broker *broker = context;
    struct broker_connection *connection = connection_new(broker);
    int result;

    broker->connection = connection;
    if (!connection) {
        broker_lose(broker, MOSQ_ERR_NOMEM, ENOMEM);
        return;
    }
    broker->watched = (struct watched){.fd = connection->end_fd,
                                       .events = POLLIN,
                                       .ready = broker_on_thread_end,
                                       .context = broker};
    loop_watch(broker->loop, &broker->watched);
    result = broker_set_up(&broker->setup, connection->client);
    if (!result && !thread_start(&connection->thread, connection_begin, connection, "blkin-broker"))
        result = MOSQ_ERR_ERRNO;
    if (result)
        broker_lose(broker, result, errno);
}

struct broker *broker_open(struct loop *loop, const struct broker_setup *setup, struct error *error)
{
    struct broker *broker = calloc(1, sizeof(*broker));

    if (!broker || mosquitto_lib_init() != MOSQ_ERR_SUCCESS) {
        free(broker);
        return error_null(error, "out of memory");
    }
    (void)signal(SIGPIPE, SIG_IGN); /* with TLS, libmosquitto may write to a closed connection */
    broker->setup = *setup;
    broker->loop = loop;
    broker->pause_ms = PAUSE_MIN_MS;
    broker->timer = (struct timer){.due = broker_connect, .context = broker};
    timer_set(loop, &broker->timer, 0);
    return broker;
}

void broker_close(struct broker *broker)
{
    struct broker_connection *connection = broker ? broker->connection : NULL;

    if (!broker)
        return;
    timer_clear(broker->loop, &broker->timer);
    if (connection)
        loop_unwatch(broker->loop, &broker->watched);
    free(broker);
    if (connection && !connection->is_open) {
        /* the process may end soon, and then OpenSSL must not be in use: its exit handler frees
         * what the thread needs for a handshake */
        struct pollfd end = {.fd = connection->end_fd, .events = POLLIN};

        (void)poll(&end, 1, THREAD_END_MS);
        if (!atomic_flag_test_and_set(&connection->is_left_by_one)) {
            (void)pthread_detach(connection->thread); /* the thread frees the connection */
            return;
        }
        (void)pthread_join(connection->thread, NULL);
    }
    if (connection) {
        (void)mosquitto_disconnect_v5(connection->client, MQTT_RC_DISCONNECT_WITH_WILL_MSG, NULL);
        connection_free(connection);
    }
    mosquitto_lib_cleanup();
}

int broker_publish(struct broker *broker, const char *topic, const char *text, size_t length,
                   bool is_retained)
{
    mosquitto_property *properties = NULL;
    int id = 0;

    if (!broker->connection || !broker->connection->is_open)
        return 0;
    if ((!is_retained && mosquitto_property_add_int32(
                             &properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, BROKER_EXPIRY_S)) ||
        mosquitto_publish_v5(broker->connection->client, &id, topic, (int)length, text, 1,
                             is_retained, properties) != MOSQ_ERR_SUCCESS)
        id = 0;
    mosquitto_property_free_all(&properties);
    broker_watch_writes(broker);
    return id;
}

void broker_pause_long(struct broker *broker)
{
    broker->has_long_pause = true;
}

#else

struct broker *broker_open(struct loop *loop, const struct broker_setup *setup, struct error *error)
{
    (void)loop;
    (void)setup;
    return error_null(error, "cluster: this BlkKin was built without libmosquitto: build it where "
                             "Debian's libmosquitto-dev is installed");
}

void broker_close(struct broker *broker)
{
    (void)broker;
}

int broker_publish(struct broker *broker, const char *topic, const char *text, size_t length,
                   bool is_retained)
{
    (void)broker;
    (void)topic;
    (void)text;
    (void)length;
    (void)is_retained;
    return 0;
}

void broker_pause_long(struct broker *broker)
{
    (void)broker;
}

#endif

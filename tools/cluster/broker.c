/*
 * The connection with the broker, on libmosquitto.
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
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define KEEPALIVE_S   10
#define PAUSE_MIN_MS  100
#define PAUSE_MAX_MS  10000
#define PAUSE_LONG_MS 30000 /* another client has our name: do not cut it off at once */
#define END_S         2

struct broker_item {
    struct broker_item *next;
    struct broker_event event;
    char bytes[]; /* the topic and the text */
};

struct broker {
    struct broker_setup setup;
    struct loop *loop;
    struct watched wake; /* an eventfd: there are events */
    pthread_t thread;

    pthread_mutex_t client_lock; /* of the next three; never taken by a callback of libmosquitto */
    pthread_cond_t ends;
    struct mosquitto *client; /* NULL: there is no connection */
    bool is_ending;
    bool rests; /* the next pause is long */

    pthread_mutex_t items_lock; /* of the next ones */
    struct broker_item *first, **last;
    size_t bytes;
    uint64_t dropped;

    /* the thread's */
    bool is_ready; /* connected and subscribed */
    int reason;    /* of MQTT: why the broker ended the connection; 0: not known */
    char log[256]; /* the last error of libmosquitto */
};

/* ---- events, from the thread to the loop ----------------------------------------------------- */

static void broker_put(struct broker *broker, const struct broker_event *event)
{
    const size_t topic = event->topic ? strlen(event->topic) + 1 : 0;
    const size_t bytes = sizeof(struct broker_item) + topic + event->length + 1;
    struct broker_item *item = malloc(bytes);

    pthread_mutex_lock(&broker->items_lock);
    /* events without a text are few, and the state depends on them */
    if (!item || (event->kind == BROKER_MESSAGE && broker->bytes + bytes > BROKER_ROOM)) {
        broker->dropped++;
        free(item);
    } else {
        item->next = NULL;
        item->event = *event;
        if (event->topic)
            item->event.topic = memcpy(item->bytes, event->topic, topic);
        if (event->length)
            memcpy(item->bytes + topic, event->text, event->length);
        item->bytes[topic + event->length] = '\0';
        item->event.text = item->bytes + topic;
        broker->bytes += bytes;
        *broker->last = item;
        broker->last = &item->next;
    }
    pthread_mutex_unlock(&broker->items_lock);
    (void)eventfd_write(broker->wake.fd, 1);
}

static void broker_put_text(struct broker *broker, enum broker_event_kind kind, int id,
                            const char *text)
{
    broker_put(broker, &(struct broker_event){
                           .kind = kind, .id = id, .text = text, .length = strlen(text)});
}

static struct broker_item *broker_take(struct broker *broker)
{
    struct broker_item *items;

    pthread_mutex_lock(&broker->items_lock);
    items = broker->first;
    broker->first = NULL;
    broker->last = &broker->first;
    broker->bytes = 0;
    pthread_mutex_unlock(&broker->items_lock);
    return items;
}

static void broker_look(void *context, short events)
{
    struct broker *broker = context;
    struct broker_item *item;
    eventfd_t count;

    (void)events;
    (void)eventfd_read(broker->wake.fd, &count);
    item = broker_take(broker);
    while (item) {
        struct broker_item *next = item->next;

        broker->setup.event(broker->setup.context, &item->event);
        free(item);
        item = next;
    }
}

/* ---- callbacks of libmosquitto, in the thread ------------------------------------------------ */

static void broker_on_connect(struct mosquitto *client, void *context, int reason, int flags,
                              const mosquitto_property *properties)
{
    struct broker *broker = context;
    int count = 0;

    (void)flags;
    (void)properties;
    broker->reason = reason;
    if (reason)
        return;
    while (count < BROKER_TOPICS && broker->setup.topics[count])
        count++;
    (void)mosquitto_subscribe_multiple(client, NULL, count,
                                       (char *const *)(uintptr_t)broker->setup.topics, 1, 0, NULL);
}

static void broker_on_subscribe(struct mosquitto *client, void *context, int id, int count,
                                const int *granted, const mosquitto_property *properties)
{
    struct broker *broker = context;

    (void)id;
    (void)properties;
    for (int i = 0; i < count; i++) {
        if (granted[i] > 2) {
            broker->reason = granted[i];
            (void)mosquitto_disconnect_v5(client, 0, NULL);
            return;
        }
    }
    broker->is_ready = true;
    broker_put(broker, &(struct broker_event){.kind = BROKER_CONNECTED});
}

static void broker_on_disconnect(struct mosquitto *client, void *context, int reason,
                                 const mosquitto_property *properties)
{
    struct broker *broker = context;

    (void)client;
    (void)properties;
    if (reason >= MQTT_RC_UNSPECIFIED)
        broker->reason = reason;
}

static void broker_on_publish(struct mosquitto *client, void *context, int id, int reason,
                              const mosquitto_property *properties)
{
    struct broker *broker = context;

    (void)client;
    (void)properties;
    if (reason >= MQTT_RC_UNSPECIFIED)
        broker_put_text(broker, BROKER_REFUSED, id, mosquitto_reason_string(reason));
    else
        broker_put(broker, &(struct broker_event){.kind = BROKER_ACCEPTED, .id = id});
}

static void broker_on_message(struct mosquitto *client, void *context,
                              const struct mosquitto_message *message,
                              const mosquitto_property *properties)
{
    struct broker *broker = context;
    uint32_t left_s = BROKER_EXPIRY_S;

    (void)client;
    (void)mosquitto_property_read_int32(properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, &left_s,
                                        false);
    broker_put(
        broker,
        &(struct broker_event){
            .kind = BROKER_MESSAGE,
            .held_ms = left_s < BROKER_EXPIRY_S ? (int64_t)(BROKER_EXPIRY_S - left_s) * 1000 : 0,
            .topic = message->topic,
            .text = message->payload,
            .length = message->payloadlen > 0 ? (size_t)message->payloadlen : 0,
        });
}

static void broker_on_log(struct mosquitto *client, void *context, int level, const char *text)
{
    struct broker *broker = context;

    (void)client;
    if (level == MOSQ_LOG_ERR) {
        pthread_mutex_lock(&broker->items_lock);
        (void)snprintf(broker->log, sizeof(broker->log), "%s", text);
        pthread_mutex_unlock(&broker->items_lock);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static int broker_set_will(const struct broker *broker, struct mosquitto *client)
{
    const struct broker_setup *setup = &broker->setup;
    mosquitto_property *properties = NULL;
    int result = mosquitto_property_add_int32(&properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL,
                                              setup->will_expiry_s);

    if (!result) /* which frees the properties if all goes well */
        result = mosquitto_will_set_v5(client, setup->will_topic, (int)strlen(setup->will),
                                       setup->will, 1, true, properties);
    if (result)
        mosquitto_property_free_all(&properties);
    return result;
}

static int broker_set_up(struct broker *broker, struct mosquitto *client)
{
    const struct broker_setup *setup = &broker->setup;
    int result = mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);

    if (!result)
        result = mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    if (!result)
        result = mosquitto_threaded_set(client, true);
    if (!result && setup->user)
        result = mosquitto_username_pw_set(client, setup->user, setup->password);
    if (!result && setup->is_tls)
        result = setup->ca_file ? mosquitto_tls_set(client, setup->ca_file, NULL, setup->cert_file,
                                                    setup->key_file, NULL)
                                : mosquitto_tls_set(client, NULL, "/etc/ssl/certs",
                                                    setup->cert_file, setup->key_file, NULL);
    if (!result)
        result = broker_set_will(broker, client);
    mosquitto_connect_v5_callback_set(client, broker_on_connect);
    mosquitto_disconnect_v5_callback_set(client, broker_on_disconnect);
    mosquitto_subscribe_v5_callback_set(client, broker_on_subscribe);
    mosquitto_publish_v5_callback_set(client, broker_on_publish);
    mosquitto_message_v5_callback_set(client, broker_on_message);
    mosquitto_log_callback_set(client, broker_on_log);
    return result;
}

/* Returns false if the service ends. */
static bool broker_set_client(struct broker *broker, struct mosquitto *client)
{
    bool goes_on;

    pthread_mutex_lock(&broker->client_lock);
    goes_on = !broker->is_ending;
    broker->client = goes_on ? client : NULL;
    pthread_mutex_unlock(&broker->client_lock);
    return goes_on;
}

static int broker_serve(struct broker *broker, struct mosquitto *client)
{
    mosquitto_property *properties = NULL;
    int result = broker_set_up(broker, client);

    if (!result)
        result = mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL,
                                              BROKER_SESSION_S);
    if (!result)
        result = mosquitto_connect_bind_v5(client, broker->setup.host, broker->setup.port,
                                           KEEPALIVE_S, NULL, properties);
    mosquitto_property_free_all(&properties);
    if (!result && broker_set_client(broker, client)) {
        do
            result = mosquitto_loop(client, 1000, 1);
        while (!result);
    }
    (void)broker_set_client(broker, NULL);
    return result;
}

static void broker_describe(struct broker *broker, int result, int cause, struct error *error)
{
    const struct broker_setup *setup = &broker->setup;
    const char *text = mosquitto_strerror(result);
    char log[sizeof(broker->log)];

    pthread_mutex_lock(&broker->items_lock);
    memcpy(log, broker->log, sizeof(log));
    broker->log[0] = '\0';
    pthread_mutex_unlock(&broker->items_lock);
    if (broker->reason == MQTT_RC_BAD_USERNAME_OR_PASSWORD ||
        broker->reason == MQTT_RC_NOT_AUTHORIZED)
        error_set(error, "the broker refuses user \"%s\": %s", setup->user ? setup->user : "(none)",
                  mosquitto_reason_string(broker->reason));
    else if (broker->reason)
        error_set(error, "the broker refuses: %s", mosquitto_reason_string(broker->reason));
    else if (result == MOSQ_ERR_ERRNO)
        error_set(error, "%s", strerror(cause));
    else if (result == MOSQ_ERR_EAI)
        error_set(error, "its name is not known");
    else
        error_set(error, "%s%s%s", text, log[0] ? " " : "", log);
}

static void broker_pause(struct broker *broker, int64_t ms)
{
    struct timespec until;

    pthread_mutex_lock(&broker->client_lock);
    ms = broker->rests ? PAUSE_LONG_MS : ms;
    broker->rests = false;
    pthread_mutex_unlock(&broker->client_lock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&broker->client_lock);
    while (!broker->is_ending &&
           pthread_cond_timedwait(&broker->ends, &broker->client_lock, &until) == 0) {
    }
    pthread_mutex_unlock(&broker->client_lock);
}

/* With a client of its own for each connection: none has messages of an earlier one. */
static void *broker_run(void *context)
{
    struct broker *broker = context;
    int64_t pause_ms = PAUSE_MIN_MS;
    bool goes_on;

    do {
        struct mosquitto *client = mosquitto_new(broker->setup.client, false, broker);
        struct error error = {""};
        int result, cause;

        broker->reason = 0;
        broker->is_ready = false;
        result = client ? broker_serve(broker, client) : MOSQ_ERR_NOMEM;
        cause = errno;
        if (client)
            mosquitto_destroy(client);
        goes_on = broker_set_client(broker, NULL);
        if (goes_on) { /* else the texts of the setup may be gone */
            broker_describe(broker, result, cause, &error);
            broker_put_text(broker, BROKER_AWAY, 0, error.text);
            pause_ms = broker->is_ready ? PAUSE_MIN_MS : pause_ms;
            /* hosts that a broker has left together do not come back together */
            broker_pause(broker, pause_ms / 2 + clock_ns() % pause_ms);
            pause_ms = pause_ms < PAUSE_MAX_MS / 2 ? pause_ms * 2 : PAUSE_MAX_MS;
        }
    } while (goes_on);
    return NULL;
}

/* ---- for the loop ---------------------------------------------------------------------------- */

static void broker_free(struct broker *broker)
{
    struct broker_item *item = broker_take(broker);

    while (item) {
        struct broker_item *next = item->next;

        free(item);
        item = next;
    }
    if (broker->wake.fd >= 0)
        close(broker->wake.fd);
    pthread_mutex_destroy(&broker->client_lock);
    pthread_mutex_destroy(&broker->items_lock);
    pthread_cond_destroy(&broker->ends);
    free(broker);
}

struct broker *broker_open(struct loop *loop, const struct broker_setup *setup, struct error *error)
{
    struct broker *broker = calloc(1, sizeof(*broker));
    pthread_condattr_t attributes;

    if (!broker || mosquitto_lib_init() != MOSQ_ERR_SUCCESS) {
        free(broker);
        return error_null(error, "out of memory");
    }
    broker->setup = *setup;
    broker->loop = loop;
    broker->last = &broker->first;
    pthread_mutex_init(&broker->client_lock, NULL);
    pthread_mutex_init(&broker->items_lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&broker->ends, &attributes);
    pthread_condattr_destroy(&attributes);
    broker->wake = (struct watched){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                    .events = POLLIN,
                                    .ready = broker_look,
                                    .context = broker};
    if (broker->wake.fd < 0 ||
        !thread_start(&broker->thread, broker_run, broker, "blkin-cluster")) {
        error_set(error, "cannot start a thread: %s", strerror(errno));
        broker_free(broker);
        return NULL;
    }
    loop_watch(loop, &broker->wake);
    return broker;
}

void broker_close(struct broker *broker)
{
    struct timespec until;

    if (!broker)
        return;
    loop_unwatch(broker->loop, &broker->wake);
    pthread_mutex_lock(&broker->client_lock);
    broker->is_ending = true;
    if (broker->client)
        (void)mosquitto_disconnect_v5(broker->client, MQTT_RC_DISCONNECT_WITH_WILL_MSG, NULL);
    pthread_cond_signal(&broker->ends);
    pthread_mutex_unlock(&broker->client_lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_S;
    if (pthread_timedjoin_np(broker->thread, NULL, &until) == 0) {
        broker_free(broker);
        mosquitto_lib_cleanup();
    } else {
        (void)pthread_detach(broker->thread); /* the thread looks up a name: it ends after that */
    }
}

int broker_publish(struct broker *broker, const char *topic, const char *text, size_t length,
                   bool is_retained)
{
    mosquitto_property *properties = NULL;
    int id = 0;

    pthread_mutex_lock(&broker->client_lock);
    if (!broker->client ||
        (!is_retained && mosquitto_property_add_int32(
                             &properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL, BROKER_EXPIRY_S)) ||
        mosquitto_publish_v5(broker->client, &id, topic, (int)length, text, 1, is_retained,
                             properties) != MOSQ_ERR_SUCCESS)
        id = 0;
    pthread_mutex_unlock(&broker->client_lock);
    mosquitto_property_free_all(&properties);
    return id;
}

void broker_rest(struct broker *broker)
{
    pthread_mutex_lock(&broker->client_lock);
    broker->rests = true;
    pthread_mutex_unlock(&broker->client_lock);
}

uint64_t broker_dropped(struct broker *broker)
{
    uint64_t dropped;

    pthread_mutex_lock(&broker->items_lock);
    dropped = broker->dropped;
    pthread_mutex_unlock(&broker->items_lock);
    return dropped;
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

void broker_rest(struct broker *broker)
{
    (void)broker;
}

uint64_t broker_dropped(struct broker *broker)
{
    (void)broker;
    return 0;
}

#endif

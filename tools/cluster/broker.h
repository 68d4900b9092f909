/*
 * A connection with an MQTT broker (MQTT 5.0, libmosquitto) in the loop of the service. A broken
 * connection is opened again after a back-off.
 *
 * The broker keeps the session for BROKER_SESSION_S after the connection broke, and then delivers
 * the messages of that time. If the broker had not accepted a message yet, the caller has to
 * publish the message again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_BROKER_H
#define BLKIN_TOOLS_BROKER_H

#include "babeltrace-plugin/base/error.h"
#include "tools/base/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BROKER_SESSION_S 300
#define BROKER_EXPIRY_S  60 /* then the broker drops a message that it could not deliver */
#define BROKER_TOPICS    4  /* the most topics of a subscription */

enum broker_event_kind {
    BROKER_CONNECTED, /* connected and subscribed */
    BROKER_AWAY,      /* the connection has failed; text: why */
    BROKER_MESSAGE,   /* a message arrived: held_ms, topic, text and length */
    BROKER_ACCEPTED,  /* the broker has accepted the publication `id` */
    BROKER_REFUSED,   /* the broker has refused the publication `id`; text: why */
};

struct broker_event {
    enum broker_event_kind kind;
    int id;
    int64_t held_ms; /* how long the broker had the message, within a second */
    const char *topic;
    const char *text; /* of a message: its payload, NUL-terminated */
    size_t length;
};

struct broker_setup {
    char host[256];
    int port;
    bool is_tls;
    const char *client; /* the client id; the broker disconnects an older client with this id */
    const char *user, *password;                /* NULL: none */
    const char *ca_file, *cert_file, *key_file; /* NULL: the system's CAs; no certificate */
    const char *topics[BROKER_TOPICS];          /* the subscription; NULL after the last topic */
    /* the retained message that the broker sends when the client is gone */
    const char *will_topic, *will;
    uint32_t will_expiry_s;
    void (*event)(void *context, const struct broker_event *event); /* must not close the broker */
    void *context;
};

struct broker;

/* The texts of the setup must outlive the broker. Returns NULL with error set. An unreachable
 * broker is no error. */
struct broker *broker_open(struct loop *loop, const struct broker_setup *setup,
                           struct error *error);

/* Disconnects. Then the broker publishes the will. */
void broker_close(struct broker *broker); /* NULL is allowed */

/* Returns the id of BROKER_ACCEPTED or BROKER_REFUSED; 0: there is no connection, or no memory.
 * A retained message does not expire. */
int broker_publish(struct broker *broker, const char *topic, const char *text, size_t length,
                   bool is_retained);

/* Makes the next pause half a minute long. Called when another client has the same id. */
void broker_pause_long(struct broker *broker);

#endif

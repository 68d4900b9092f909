/*
 * A connection with an MQTT broker (MQTT 5.0, libmosquitto) in the loop of the service. After a
 * back-off it connects again.
 *
 * The broker keeps the session for BROKER_SESSION_S after the connection broke, and delivers the
 * messages of that time. Nothing is kept here: the caller publishes a message again that was not
 * accepted when the connection broke.
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
#define BROKER_EXPIRY_S  60 /* the broker drops a message that it could not deliver for so long */
#define BROKER_TOPICS    4  /* at most */

enum broker_event_kind {
    BROKER_CONNECTED, /* and subscribed */
    BROKER_AWAY,      /* text: why */
    BROKER_MESSAGE,
    BROKER_ACCEPTED, /* id: of the publication */
    BROKER_REFUSED,  /* the same; text: why */
};

struct broker_event {
    enum broker_event_kind kind;
    int id;
    int64_t held_ms;   /* how long the broker had the message, within a second */
    const char *topic; /* of a message */
    const char *text;  /* of a message its payload, with a NUL behind it */
    size_t length;
};

struct broker_setup {
    char host[256];
    int port;
    bool is_tls;
    const char *client;          /* its id: of two with one id the broker cuts the older one off */
    const char *user, *password; /* NULL: none */
    const char *ca_file, *cert_file, *key_file; /* NULL: the system's CAs; no certificate */
    const char *topics[BROKER_TOPICS];          /* to subscribe to; NULL behind the last one */
    const char *will_topic, *will; /* published by the broker, retained, when we are gone */
    uint32_t will_expiry_s;
    void (*event)(void *context, const struct broker_event *event); /* must not close the broker */
    void *context;
};

struct broker;

/* The texts of the setup must live as long. Returns NULL with error set; a broker that does not
 * answer is no error. */
struct broker *broker_open(struct loop *loop, const struct broker_setup *setup,
                           struct error *error);

/* The broker publishes the will. */
void broker_close(struct broker *broker); /* NULL is allowed */

/* Returns the id of BROKER_ACCEPTED or BROKER_REFUSED; 0: there is no connection, or no memory.
 * A retained message does not expire. */
int broker_publish(struct broker *broker, const char *topic, const char *text, size_t length,
                   bool is_retained);

/* Another client has our name: when this connection breaks, the next one waits for half a minute.
 */
void broker_rest(struct broker *broker);

#endif

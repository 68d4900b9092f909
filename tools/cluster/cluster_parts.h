/*
 * Shared by the files of the cluster.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CLUSTER_PARTS_H
#define BLKIN_TOOLS_CLUSTER_PARTS_H

#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/deliver/credentials.h"
#include "broker.h"
#include "cluster.h"
#include "tools/base/json.h"

#define MESSAGE_MAX        (1U << 20) /* bytes of its text */
#define MESSAGE_TRACES_MAX 10000
#define MESSAGE_HOST_MAX   253 /* bytes of a host's name, as in the DNS */
#define MESSAGE_NUMBER_MAX 64  /* characters of "number", unique among a host's messages */
#define CLUSTER_HOST       (MESSAGE_HOST_MAX + 1)
#define SEEN_MAX           65536

/* A message of this host, until it is CLUSTER_REPEAT_MS old. */
struct sent {
    struct sent *next;
    char *text; /* without "held_ms" */
    size_t bytes;
    int64_t at_ms;
    int id; /* of the publication in progress; 0: none is in progress */
    bool is_accepted, is_refused;
    char topic[2 * CLUSTER_HOST + 16];
};

/* A set of recent texts. Contains a text for keep_ms to twice that time, or for a shorter time if
 * more than SEEN_MAX texts arrive within keep_ms. The owner sets keep_ms; the other members are 0
 * at first. */
struct seen {
    int64_t keep_ms;
    int64_t turned_ms;   /* when `young` was new */
    json_t *young, *old; /* texts since turned_ms, and texts of the time before */
};

struct cluster {
    struct loop *loop;
    struct cluster_callbacks callbacks;
    struct broker *broker;
    struct timer repeat, tick;
    char host[CLUSTER_HOST];
    char state_topic[CLUSTER_HOST + 16], found_topic[CLUSTER_HOST + 16];
    char url[300]; /* of the broker */
    char user[CLUSTER_HOST], password[CREDENTIAL_MAX];
    char *tls_files[3]; /* of the CAs, the certificate and its key; NULL: not set */
    char instance[17];  /* a random number of this process */
    int64_t opened_ns;

    bool is_connected;
    int64_t since_ns, connected_ms;
    char problem[512]; /* "": none */

    struct sent *first, **last; /* in the order of sending */
    struct sent *unsettled;     /* the first with a publication in progress; NULL: none */
    size_t sent_bytes;
    uint64_t last_number;
    uint64_t accepted, dropped, refused;

    struct seen seen;
    uint64_t received, malformed;

    struct table hosts;    /* the other hosts: struct cluster_host */
    bool knows_hosts;      /* the broker or the file has given the other hosts */
    bool is_known;         /* the broker has sent back this process's state */
    int64_t twin_until_ms; /* until then, the status shows another agent of the same name */
    int64_t wants_per_s, forget_ms;
    char hosts_file[4096];
};

/* ---- cluster.c ---- */

/* Publishes the state "here" of this host. */
void cluster_say_here(struct cluster *cluster);

/* Publishes all messages again after 0.2 s, because a host may have missed some. */
void cluster_repeat_soon(struct cluster *cluster);

/* ---- settings.c: reads the keys and opens the broker. Returns false with error set. ---- */

bool cluster_set_up(struct cluster *cluster, const struct config *config,
                    void (*event)(void *context, const struct broker_event *event),
                    struct error *error);

/* ---- hosts.c ---- */

/* Reads the file. Returns false when out of memory. */
bool hosts_open(struct cluster *cluster);
void hosts_close(struct cluster *cluster);

/* Handles a message of the topic "state". */
void hosts_take(struct cluster *cluster, const char *host, const struct broker_event *event);

/* Subtracts `count` wants from the host's share. Returns false if the share is used up. */
bool hosts_may_want(struct cluster *cluster, const char *host, size_t count);

/* Removes hosts that have been away for cluster-forget-hours. */
void hosts_forget(struct cluster *cluster);

/* Returns a new array. */
json_t *hosts_away(const struct cluster *cluster);

/* ---- message.c: the form of each message (cluster.h) that an agent receives or publishes ---- */

/* Returns true if the name has only letters, digits, '.', '-' and '_', and no '-' at the beginning.
 * The name is shown to users, and is part of a topic. */
bool message_is_host(const char *name);

/* Returns false with error set to the first fault. */
bool message_check(const json_t *message, struct error *error);

#endif

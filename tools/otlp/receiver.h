/*
 * OTLP's HTTP: bodies of POST /v1/traces, bounded in every way, and their answers.
 *
 * A refused request is read to its end before its answer: many SDKs do not see an earlier answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_RECEIVER_H
#define BLKIN_TOOLS_OTLP_RECEIVER_H

#include "babeltrace-plugin/base/error.h"
#include "otlp_decode.h"
#include "tools/base/loop.h"

struct otlp_counts {
    uint64_t requests;
    uint64_t requests_taken;
    uint64_t requests_cut_off;  /* the other end went, or took too long */
    uint64_t refused_page;      /* another path or method, or a web page has sent the request */
    uint64_t refused_type;      /* not protobuf, or another compression than gzip */
    uint64_t refused_too_large; /* longer than message_bytes */
    uint64_t refused_broken;    /* no OTLP: spans before the fault were taken */
    uint64_t refused_rate;      /* too many spans per second */
    uint64_t refused_memory;    /* no memory, or too many requests on their way */
    uint64_t connections;       /* ever */
    uint64_t hung_up;           /* connections that were too many, or took too long */
    uint64_t bytes;             /* of bodies, as they came over the network */
    uint64_t spans_in;
    uint64_t spans_invalid;     /* refused: without ids */
    uint64_t spans_too_large;   /* refused: the store has no room for so large a span */
    uint64_t spans_passed_on;   /* taken at once: see otlp_in_callbacks */
    uint64_t spans_overwritten; /* the others are held */
    uint64_t alarms;
    uint64_t alarms_held_back; /* by the rules' limit */
};

/* A message that is taken in steps. */
struct receiver_message {
    struct otlp_decoding decoding;
    uint64_t too_large; /* spans that were refused as such */
};

struct receiver_calls {
    /* May a request be taken? Returns 0, or the number of seconds after which to try again. */
    unsigned (*busy_s)(void *context);
    /* Takes spans for some ms. Returns false when all were taken. */
    bool (*take)(void *context, struct receiver_message *message);
    void *context;
};

struct receiver;

/* Listens at an address and at the path of a Unix socket, of which either may be NULL or "". Counts
 * into counts, which live longer. Returns NULL with error set. */
struct receiver *receiver_open(struct loop *loop, const char *listen, const char *socket,
                               const struct receiver_calls *calls, struct otlp_counts *counts,
                               struct error *error);
void receiver_close(struct receiver *receiver); /* NULL is allowed */

void receiver_limit(struct receiver *receiver, uint64_t message_bytes, uint64_t connections);

/* "": no port. */
const char *receiver_url(const struct receiver *receiver);
const char *receiver_socket(const struct receiver *receiver);

#endif

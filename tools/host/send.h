/*
 * Samples of this host to others than LTTng: to a topic of Kafka (key host-endpoint), and as a page
 * for Prometheus (host-listen).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_SEND_H
#define BLKIN_TOOLS_HOST_SEND_H

#include "sample.h"
#include "tools/base/loop.h"
#include "tools/config/config.h"

#include <jansson.h>

struct host_send;

/* *send: NULL if nobody is to have them. Returns false with error set. */
bool host_send_open(const struct config *config, struct loop *loop, struct host_send **send,
                    struct error *error);

/* A host_sampled_fn; the context is the struct host_send. */
void host_send(void *context, const struct host_sample *sample);

/* Sends what is due; to be called once a second at least. All below: NULL is allowed. */
void host_send_poll(struct host_send *send);

/* What has become of those for Kafka; NULL: none are sent, or out of memory. */
json_t *host_send_json(const struct host_send *send);

/* Waits for the brokers, but not for long. */
void host_send_close(struct host_send *send);

#endif

/*
 * Checks the form of messages between agents (cluster.h): each message that an agent receives, and
 * each message that it publishes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CLUSTER_MESSAGE_H
#define BLKIN_TOOLS_CLUSTER_MESSAGE_H

#include "tools/base/json.h"
#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>

#define MESSAGE_MAX        (1U << 20) /* bytes of its text */
#define MESSAGE_TRACES_MAX 10000
#define MESSAGE_HOST_MAX   253 /* bytes of a host's name, as in the DNS */
#define MESSAGE_NUMBER_MAX                                                \
    64 /* characters of "number", which is unique among a host's messages \
        */

/* Returns whether the name has only letters, digits, '.', '-' and '_', and no '-' at the beginning.
 * The name is shown to users, and is part of a topic. */
bool message_is_host(const char *name);

/* Returns false with error set to the first fault. */
bool message_check(const json_t *message, struct error *error);

#endif

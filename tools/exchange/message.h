/*
 * The form of a message between recorders (exchange.h). The exchange checks every message that
 * comes over the network, and every one that it posts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_MESSAGE_H
#define BLKIN_TOOLS_MESSAGE_H

#include "babeltrace-plugin/base/error.h"
#include "seen.h"
#include "tools/base/json.h"

#include <stdbool.h>
#include <stdint.h>

#define MESSAGE_MAX        (1U << 20) /* bytes of its text */
#define MESSAGE_TRACES_MAX 10000
#define MESSAGE_HOST_MAX   253 /* as of a name in the DNS */
#define POST_MAX           300 /* characters of "post", which no two messages share */

/* Only letters, digits, '.', '-' and '_', as the name is shown, and is part of a URL. */
bool message_is_host(const char *name);

/* Returns false with error set to the first fault. */
bool message_check(const json_t *message, struct error *error);

/* Writes the text of a message, and how long it was held: at most HELD_ROOM more bytes. */
#define HELD_ROOM 40
size_t message_held(char *to, const char *text, size_t length, int64_t held_ms);

/* Did this message come before? Two hosts may use the same "post". */
bool message_seen_before(struct seen *seen, const json_t *message, int64_t now_ms);

#endif

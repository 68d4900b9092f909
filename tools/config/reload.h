/*
 * What `blkin reload` and `blkin status` tell of the configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SERVICE_RELOAD_H
#define BLKIN_TOOLS_SERVICE_RELOAD_H

#include "config.h"

#include <jansson.h>

/*
 * After config_read_again(), and what the service made of it: the answer to `blkin reload`, which
 * the log and systemd get too. config: the one that is in force now; problem: why it is still the
 * old one, or NULL.
 */
json_t *reload_answer(const struct config *config, const char *problem);

/* The answer if config_read_again() returned NULL. */
extern const char reload_is_wrong[];

/* Adds to the answer to `blkin status`, which it returns: the keys that are set, with the value in
 * force, and what the configuration says now, where a restart is needed for that. */
json_t *reload_status(json_t *status, const struct config *config);

#endif

/*
 * Reads the keys of the sampler as a struct host_config.
 *
 * Each kind has a key: a period, patterns of instances, or both ("100ms", "vd*,nvme*", "100ms
 * vd*"), or "off".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_SETTINGS_H
#define BLKIN_SAMPLER_SETTINGS_H

#include "sample.h"
#include "tools/config/config.h"

/* Returns false with error set if the text is malformed for this key. Accepts any text for a key
 * of others. */
bool host_settings_check(const char *key, const char *text, struct error *error);

/* Sets the defaults and the configured values. `host` points to texts of the configuration.
 * Returns false with error set, which names the origin of the value. */
bool host_settings_read(const struct config *config, struct host_config *host, struct error *error);

/*
 * Compares tail-wait-ms of a service with the periods of the sampler: a long span waits for its
 * host's next samples, at most two periods, before tail sampling sees the span. Returns false with
 * *why set if tail sampling decides earlier. Returns true for a malformed configuration.
 */
bool host_wait_is_short_enough(const struct config *service, const struct config *host,
                               struct error *why);

#endif

/*
 * The keys of what is sampled, as host_open() wants them.
 *
 * Each kind has a key: "100ms", "off", "vd*,nvme*" or "100ms vd*,nvme*", that is a period, names of
 * instances, or both.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_SETTINGS_H
#define BLKIN_SAMPLER_SETTINGS_H

#include "sample.h"
#include "tools/config/config.h"

/* Is it right as the text of this key? That of any other key is. Returns false with error set.
 */
bool host_settings_check(const char *key, const char *text, struct error *error);

/* The defaults, and what the configuration says; the names are its. Returns false with error set,
 * which names where the value is from. */
bool host_settings_read(const struct config *config, struct host_config *host, struct error *error);

/*
 * Tail sampling decides on a trace some time after its last span came; a span waits for its host's
 * next samples before it comes. Is the first of a service (its configuration) as long as the second
 * is at most, with this configuration of the sampler? Returns false with *why set. What cannot
 * be read is not judged.
 */
bool host_wait_is_short_enough(const struct config *service, const struct config *host,
                               struct error *why);

#endif

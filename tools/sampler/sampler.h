/*
 * Samples this host in a thread, each group at its period. Samples that pass the filters
 *   - stay in memory for some minutes, for the stage `hosts`,
 *   - are recorded as blkin:metric in LTTng sessions that enable this event,
 *   - are on the page of metrics.
 *
 * The loop's thread calls all functions. Only sampler_close() waits for the sampler's thread, for
 * one sample at most. NULL stands for a sampler that is off (host = no).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_H
#define BLKIN_SAMPLER_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/printer.h"
#include "sample.h"
#include "tools/base/loop.h"
#include "tools/config/config.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sampler;

/* Called in the loop when a threshold with `keep` was crossed. Returns false with error set if
 * the last seconds are not kept. why: a line for the tag of the kept spans */
typedef bool sampler_keep_fn(void *context, int64_t last_ms, const char *why, struct error *error);

/* Called at the program's start, before any thread. Selects LTTng's provider and switches rings
 * off. */
void sampler_prepare(void);

struct sampler_wanted {
    const struct config *config;
    sampler_keep_fn *keep;
    void *context;
};

/* Takes over a configuration: starts, changes or ends the sampling. *sampler is NULL at first. On
 * failure, returns false with error set, and changes nothing. */
bool sampler_take(struct sampler **sampler, struct loop *loop, const struct sampler_wanted *wanted,
                  struct error *error);
void sampler_close(struct sampler *sampler);

/* payload: of a blkin:metric event; valid during the call. */
typedef void sampler_take_fn(void *context, const char *payload, size_t length);

/* Calls take() for each sample in memory from this number and this time (CLOCK_MONOTONIC) on, in
 * order. Returns the next number. */
uint64_t sampler_read(struct sampler *sampler, uint64_t number, int64_t from_ns,
                      sampler_take_fn *take, void *context);

/* Return the counters for the service's status; print them and the latest samples for its page of
 * metrics. */
json_t *sampler_json(struct sampler *sampler);
void sampler_print(struct sampler *sampler, struct printer *page);

/* ---- the keys of the sampler: settings.c. Each kind has a key: a period, patterns of instances,
 * or both ("100ms", "vd*,nvme*", "100ms vd*"), or "off" */

/* Returns false with error set if the text is malformed for this key. Accepts any text for a key
 * that is not the sampler's. main() gives this function to keys_set_sampler_check(). */
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

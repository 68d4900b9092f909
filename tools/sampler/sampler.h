/*
 * What this host does: a thread samples it at each group's period. What the filters let through
 *   - stays in memory for a while, for the stage `hosts`,
 *   - goes as blkin:metric into the sessions of LTTng that record this event,
 *   - and is on the page of metrics.
 *
 * The loop's thread calls all functions. Nothing here waits for the thread but sampler_close(), for
 * as long as a sample takes. NULL is a sampler that is off (host = no).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_H
#define BLKIN_SAMPLER_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/printer.h"
#include "memory.h"
#include "tools/base/loop.h"
#include "tools/config/config.h"

#include <jansson.h>

struct sampler;

/* A threshold with `keep` was crossed: the last seconds are wanted. Called in the loop; returns
 * false with error set if they are not kept. why: a line of text, which the kept spans tell. */
typedef bool sampler_keep_fn(void *context, int64_t last_ms, const char *why, struct error *error);

/* At the program's start, before there are threads: LTTng is found, and rings are not asked for;
 * and the values of the keys below are checked as the configuration is read. */
void sampler_prepare(void);
void sampler_register(void);

/*
 * Takes over a configuration: begins to sample, goes on in another way, or ends, as the key host
 * says. *sampler is NULL at first. Returns false with error set: then everything is as it was.
 */
struct sampler_wanted {
    const struct config *config;
    sampler_keep_fn *keep;
    void *context;
};
bool sampler_take(struct sampler **sampler, struct loop *loop, const struct sampler_wanted *wanted,
                  struct error *error);
void sampler_close(struct sampler *sampler);

/*
 * The samples that are in memory, from this number on and not before this time (CLOCK_MONOTONIC),
 * in their order: each as the payload of a blkin:metric event, for the length of the call. Returns
 * the number to go on with.
 */
uint64_t sampler_read(struct sampler *sampler, uint64_t number, int64_t from_ns,
                      memory_take_fn *take, void *context);

/* For the service's status, and on its page. */
json_t *sampler_json(struct sampler *sampler);
void sampler_print(struct sampler *sampler, struct printer *page);

#endif

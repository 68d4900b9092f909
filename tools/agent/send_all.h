/*
 * send = all: every span goes to the collector. The rings are read as programs write, and spans of
 * SDKs are passed on as they come, through one pipeline in the service's loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SEND_ALL_H
#define BLKIN_TOOLS_SEND_ALL_H

#include "agent.h"
#include "tools/otlp/otlp_in.h"
#include "tools/rings/memory.h"
#include "tools/sampler/sampler.h"

struct send_all;

/* Does this configuration say so? */
bool send_all_is_wanted(const struct config *config);

/* config: of the pipeline, which may be one that the agent does not have yet. failed is called when
 * nothing can be delivered any more. Returns NULL with error set. */
struct send_all *send_all_open(struct agent *agent, const struct config *config,
                               void (*failed)(void *context), void *context, struct error *error);

/* Delivers what was read, within flush-timeout-ms, and adds the account to the agent's totals. All
 * memories have gone before. Returns false after it has said why something was not delivered. NULL
 * is allowed. */
bool send_all_close(struct send_all *all);

/* From now on its events are read; it is read to its end when it goes. */
void send_all_memory_came(struct send_all *all, const struct memory *memory);
void send_all_memory_goes(struct send_all *all, const struct memory *memory);

/* Samples of this host are given from now on; NULL: there are none. */
void send_all_set_sampler(struct send_all *all, struct sampler *sampler);

/* A span of an SDK. */
void send_all_take_span(struct send_all *all, const struct otlp_origin *origin,
                        const struct otlp_span *span);

/* What it has done up to now, and for the status: what it has read, and how far. */
struct counts send_all_counts(struct send_all *all);
json_t *send_all_statistics(struct send_all *all); /* see pipeline_statistics(); NULL: none */
json_t *send_all_json(struct send_all *all);

#endif

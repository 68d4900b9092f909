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

/* Opens a pipeline to the agent's export. Returns NULL with error set. */
struct send_all *send_all_open(struct agent *agent, struct error *error);

/* Gives what was read to the export. All memories have gone before. NULL is allowed. */
void send_all_close(struct send_all *all);

/* From now on its events are read; it is read to its end when it goes. */
void send_all_memory_came(struct send_all *all, const struct memory *memory);
void send_all_memory_goes(struct send_all *all, const struct memory *memory);

/* Samples of this host are given from now on; NULL: there are none. */
void send_all_set_sampler(struct send_all *all, struct sampler *sampler);

/* A span of an SDK. */
void send_all_take_span(struct send_all *all, const struct otlp_origin *origin,
                        const struct otlp_span *span);

/* For the status: what it has read, and how far. */
json_t *send_all_json(struct send_all *all);

#endif

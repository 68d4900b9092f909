/*
 * send = all: gives every span to the export, through one pipeline in the service's loop. Reads the
 * rings while programs write, and takes the spans of SDKs when they come.
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

/* Returns true if the configuration has send = all. */
bool send_all_is_wanted(const struct config *config);

/* Opens a pipeline to the agent's export. Returns NULL with error set. */
struct send_all *send_all_open(struct agent *agent, struct error *error);

/* Gives the last spans to the export. All memories must have been removed. NULL is allowed. */
void send_all_close(struct send_all *all);

/* Reads the memory from now on. */
void send_all_memory_came(struct send_all *all, const struct memory *memory);
/* Reads the memory to its end, before it is removed. */
void send_all_memory_goes(struct send_all *all, const struct memory *memory);

/* Takes the host's samples from this sampler; NULL: none. */
void send_all_set_sampler(struct send_all *all, struct sampler *sampler);

/* Takes a span of an SDK. */
void send_all_take_span(struct send_all *all, const struct otlp_origin *origin,
                        const struct otlp_span *span);

/* Returns the part of the status: the number of read records, and the time before which all records
 * were read. */
json_t *send_all_json(struct send_all *all);

#endif

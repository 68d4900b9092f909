/*
 * send = all: gives every span to the export, through one pipeline in the service's loop. Reads the
 * rings while programs write, and takes the spans of SDKs when they arrive.
 *
 * A place is the reader's position in each ring at one time:
 *
 *     {"mono_ns": CLOCK_MONOTONIC, "memories": [{"user", "number", "at": [POSITION, ...]}]}
 *
 * A place is settled when all spans from records before the place are settled (export.h). The
 * totals have the last settled place, from which the next process continues to read.
 *
 * A process that was killed may have sent records after that place. If they are overwritten by
 * then, the next process sees a gap in the numbers of events, and cannot know whether they were
 * sent. It counts them as missing and as unsure: see events_unsure. The place of a process that has
 * ended in order has "is_end": true, and nothing after it was sent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SEND_ALL_H
#define BLKIN_TOOLS_SEND_ALL_H

#include "agent.h"
#include "tools/otlp/otlp_in.h"
#include "tools/rings/held.h"
#include "tools/sampler/sampler.h"

struct send_all;

/* Returns true if the configuration has send = all. */
bool send_all_is_wanted(const struct config *config);

/* Opens a pipeline to the agent's export, and reads these memories: from the place read_on of
 * the agent or, without one, from now on. Returns NULL with error set. */
struct send_all *send_all_open(struct agent *agent, struct held *first, struct error *error);

/* Reads all memories to their ends, gives the last spans to the export, and sets read_on. NULL is
 * allowed. */
void send_all_close(struct send_all *all, const struct held *first);

/* Reads the memory of a new user. */
void send_all_add_memory(struct send_all *all, const struct held *held);
/* Reads the memory to its end, before it is removed. */
void send_all_drop_memory(struct send_all *all, const struct held *held);

/* Called when more spans are settled. first: all memories. Returns true if the totals have a new
 * place. */
bool send_all_settle(struct send_all *all, const struct held *first);

/* Takes the host's samples from this sampler; NULL: none. */
void send_all_set_sampler(struct send_all *all, struct sampler *sampler);

/* Takes a span of an SDK. */
void send_all_take_span(struct send_all *all, const struct otlp_origin *origin,
                        const struct otlp_span *span);

/* Returns the members of the status' object "rings" that only send = all has, such as the bytes
 * read. */
json_t *send_all_json(struct send_all *all);

#endif

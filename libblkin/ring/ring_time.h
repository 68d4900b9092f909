/*
 * The times in payloads, of a process whose clock is not the agent's: time_namespaces(7).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_TIME_H
#define BLKIN_RING_TIME_H

#include <stddef.h>
#include <stdint.h>

/* Moves the moment of an event's payload. event: as in a trailer, see tracepoints/format/ring.h. */
void ring_time_move(unsigned event, char *payload, size_t length, uint64_t by_ns);

#endif

/*
 * Where a recording is cut into traces: the last moments of one belong to the next.
 *
 * LTTng ends the buffers of its CPUs one after the other when it cuts, so the next trace may begin
 * with events that are older than the last ones of this one: the begin of a span whose end is read
 * before. So between a trace and the assembler events wait for HOLD_NS of trace time, and those
 * that still wait at the end of the trace are saved, to be taken in among the next one's by their
 * times.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_HOLD_H
#define BLKIN_CORE_HOLD_H

#include "assembler.h"
#include "state.h"

#define HOLD_NS        INT64_C(100000000)
#define HOLD_BYTES_MAX (16U << 20) /* of more, the oldest wait no longer */

struct hold;

/* Returns NULL when out of memory. The assembler must live longer. */
struct hold *hold_new(struct assembler *assembler);
void hold_free(struct hold *hold);

/* Instead of assembler_add() and assembler_note_loss(). What finds no memory does not wait. All
 * texts of the event are kept: those that its kind does not have are empty. */
void hold_add(struct hold *hold, const struct event *event);
void hold_note_loss(struct hold *hold, const struct loss *loss);

/* The trace has ended; it was recorded until end_ns, or until its last event if that is later. */
void hold_end_trace(struct hold *hold, int64_t end_ns);

/* No other trace will come, or none that is near enough to matter. */
void hold_flush(struct hold *hold);

/* How many events wait. */
uint64_t hold_events(const struct hold *hold);

void hold_save(const struct hold *hold, struct state *state);

/* Into a new one, in whose trace no event has come yet. */
void hold_restore(struct hold *hold, struct state *state);

#endif

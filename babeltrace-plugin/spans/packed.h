/*
 * The field "packed" of the span API's events, in the form of doc/format.md.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_PACKED_H
#define BLKIN_CORE_PACKED_H

#include "event.h"

/* The bits of the moment, age_ns; the clock supplies the upper bits. */
#define PACKED_MOMENT_BITS 48

/*
 * Reads a packed text into the event. For EVENT_SPAN and EVENT_BEGIN: trace_id_high, span_id,
 * sequence, thread, dropped, age_ns, ip, port and the log. For other kinds: span_id, sequence,
 * thread, age_ns, and the log of EVENT_TAG. Returns false if the text is invalid for the kind, or
 * has another version.
 */
bool packed_read(struct event *event, struct text packed);

/* Reads the packed text in event->log. On DECODED_NEWER the text stays there. */
enum decoded packed_decode(struct event *event);

/* Computes how long before `now` (64 bits) a moment was, of which only the lower bits are known.
 * Takes the nearest such moment. Returns false for an impossible moment. */
bool moment_age(uint64_t now, uint64_t moment, unsigned bits, int64_t *age_ns);

/* Returns the version of the format if it is newer than the known one; else 0. */
unsigned packed_newer(struct text packed);

#endif

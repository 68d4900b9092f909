/*
 * The text "packed" of the span API's events, in the form that doc/format.md describes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_PACKED_H
#define BLKIN_CORE_PACKED_H

#include "event.h"

/* Of the moment, age_ns, there are as many bits; the clock tells the others. */
#define PACKED_MOMENT_BITS 48

/*
 * Fills in what the text has: for blkin:span and blkin:begin (EVENT_SPAN and EVENT_BEGIN)
 * trace_id_high, span_id, sequence, thread, dropped, the moment as age_ns, ip, port and the log;
 * for the others span_id, sequence, thread, the moment, and of EVENT_TAG the log. Returns false for
 * anything that is not such a text of this kind of event, in the version that is known here.
 */
bool packed_read(struct event *event, struct text packed);

/* The version of the format, where it is newer than the one that is known here; else 0. */
unsigned packed_newer(struct text packed);

#endif

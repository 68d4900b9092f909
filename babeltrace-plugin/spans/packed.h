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

/* The same of a text that is where the log will be, and still is there if DECODED_NEWER. */
enum decoded packed_decode(struct event *event);

/*
 * How long before now, which has 64 bits, the moment was of which there are the lower bits: the one
 * that is nearest. Returns false for one that makes no sense.
 */
bool moment_age(uint64_t now, uint64_t moment, unsigned bits, int64_t *age_ns);

/* The version of the format, where it is newer than the one that is known here; else 0. */
unsigned packed_newer(struct text packed);

#endif

/*
 * Packed events: LTTng-UST events whose payload the caller has already laid out.
 *
 * LTTng's own macros write each field with a call: ten fields and strings of 130 bytes take twice
 * the time of a one-integer event; the same bytes in one write take 1.1 times (make bench,
 * lib.span_vs_tracepoint). So these events are described to LTTng by hand, through the structures
 * of <lttng/ust-events.h> that the macros use, too. Filters, triggers and readers see named fields
 * as in any other event.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PACKED_H
#define BLKIN_PACKED_H

#include "tracepoints/format/fields.h"

#include <lttng/tracepoint.h>
#include <lttng/ust-events.h>

#define PACKED_FIELDS_MAX 20

struct packed_event {
    /* set by the caller */
    const char *name;
    int loglevel;
    const struct packed_field *fields;
    unsigned field_count;

    /* set by packed_register() */
    struct lttng_ust_tracepoint tracepoint;
    const int *loglevel_pointer;
    struct lttng_ust_event_field descriptions[PACKED_FIELDS_MAX];
    const struct lttng_ust_event_field *description_pointers[PACKED_FIELDS_MAX];
    struct lttng_ust_tracepoint_class tracepoint_class;
    struct lttng_ust_event_desc desc;
};

/*
 * Registers a provider of `count` events, at most PACKED_EVENTS_MAX, for ever: neither the array
 * nor this shared object may go away. Call it once, at the end of a constructor in the file with
 * LTTNG_UST_TRACEPOINT_DEFINE.
 */
#define PACKED_EVENTS_MAX 16
void packed_register(const char *provider_name, struct packed_event *events, unsigned count);

/*
 * Records the event in every session that has it enabled. payload: the fields one after the other
 * without padding; read during the call only. thread_slot: a pointer of the calling thread for this
 * function, NULL at first.
 */
void packed_record(struct packed_event *event, const void *payload, size_t length,
                   void **thread_slot);

/* The calling thread has left a record by longjmp(3), or by exit(3) in a signal handler: LTTng does
 * not wait for that record. */
void packed_leave(void);

#endif

/*
 * Packed events: LTTng-UST events whose payload the caller has laid out already.
 *
 * LTTng's own macros write each field with a call of its own: ten fields and strings of 130 bytes
 * take twice the time of a one-integer event, the same bytes in one write 1.1 times (make bench,
 * lib.span_vs_tracepoint). So these events are described to LTTng by hand, through the structures
 * of <lttng/ust-events.h> that the macros use too. Filters, triggers and readers see named fields
 * as of any other event.
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
    /* to be filled in */
    const char *name;
    int loglevel;
    const struct packed_field *fields;
    unsigned field_count;

    /* filled in by packed_register() */
    struct lttng_ust_tracepoint tracepoint;
    const int *loglevel_pointer;
    struct lttng_ust_event_field descriptions[PACKED_FIELDS_MAX];
    const struct lttng_ust_event_field *description_pointers[PACKED_FIELDS_MAX];
    struct lttng_ust_tracepoint_class tracepoint_class;
    struct lttng_ust_event_desc desc;
};

/*
 * Registers a provider of count events, for ever: neither the array nor this shared object may go
 * away. count is PACKED_EVENTS_MAX at most. Once, from a constructor of the file that has
 * LTTNG_UST_TRACEPOINT_DEFINE, at its end.
 */
#define PACKED_EVENTS_MAX 16
void packed_register(const char *provider_name, struct packed_event *events, unsigned count);

/*
 * Records the event in every session that has it enabled. payload is what fields say, one after the
 * other with no padding, and all of length bytes; it is read during the call only. thread_slot is a
 * pointer of the calling thread for the use of this function alone, NULL at first.
 */
void packed_record(struct packed_event *event, const void *payload, size_t length,
                   void **thread_slot);

/* The calling thread has left a record by longjmp(3), or by exit(3) in a signal handler: LTTng does
 * not wait for the end of that. */
void packed_leave(void);

#endif

/*
 * Time and origin of an event of any kind.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DECODE_ORIGIN_H
#define BLKIN_DECODE_ORIGIN_H

#include "babeltrace-plugin/spans/event.h"

#include <babeltrace2/babeltrace.h>

/* Returns false if the clock's value is no time since the epoch in ns. */
static inline bool time_of_snapshot(const bt_clock_snapshot *snapshot, int64_t *time_ns)
{
    if (bt_clock_snapshot_get_ns_from_origin(snapshot, time_ns) ==
        BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK)
        return true;
    bt_current_thread_clear_error(); /* the next call of babeltrace2 would abort at a pending error
                                      */
    return false;
}

/* The origin of a stream's events, from their common context. */
struct origin_fields {
    struct origin origin; /* host and clock live as long as the stream's trace */
    int pid_index;        /* in the common context; -1: not there */
    int tid_index;
    int pid_ns_index;
};

/* Reads all but the process's name, which few events of rules need. */
static inline void origin_read(const struct origin_fields *fields, const bt_event *event,
                               struct origin *origin)
{
    const bt_field *context = bt_event_borrow_common_context_field_const(event);

    *origin = fields->origin;
    if (fields->pid_index >= 0)
        origin->pid =
            bt_field_integer_signed_get_value(bt_field_structure_borrow_member_field_by_index_const(
                context, (uint64_t)fields->pid_index));
    if (fields->tid_index >= 0)
        origin->tid =
            bt_field_integer_signed_get_value(bt_field_structure_borrow_member_field_by_index_const(
                context, (uint64_t)fields->tid_index));
    if (fields->pid_ns_index >= 0)
        origin->pid_ns = bt_field_integer_unsigned_get_value(
            bt_field_structure_borrow_member_field_by_index_const(context,
                                                                  (uint64_t)fields->pid_ns_index));
}

#endif

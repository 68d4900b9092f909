/*
 * LTTng-UST provider "blkin": the events of the span API.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BLKIN_EVENTS_H
#define BLKIN_BLKIN_EVENTS_H

#include "packed.h"
#include "tracepoints/format/provider_table.h"

extern struct packed_event blkin_events[BLKIN_EVENTS]; /* by enum blkin_packed_event */

#endif

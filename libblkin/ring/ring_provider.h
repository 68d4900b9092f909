/*
 * The provider that writes into the rings, over the one that records with LTTng.
 *
 * It is a table like any provider's, so the code that records an event does not know about rings.
 * The table lies over LTTng's provider, or over none. If the provider below wants an event, the
 * event goes there, too. The table does not change when the process gets or loses a memory: without
 * a memory, events go only to the provider below.
 *
 * The rings always get spans, process events, metrics, alarms and the original API's events. They
 * get streaming events only while a session below wants these: the recorder has the whole spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_PROVIDER_H
#define BLKIN_RING_PROVIDER_H

#include "tracepoints/format/provider_table.h"

/* Makes the tables over this provider and over blkin_no_provider. Once, before they are asked for.
 */
void ring_provider_init(const struct blkin_provider *below);

/* The table over one of those two. */
const struct blkin_provider *ring_provider_over(const struct blkin_provider *below);

#endif

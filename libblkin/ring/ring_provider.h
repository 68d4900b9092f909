/*
 * The provider that writes into the rings, over the one that records with LTTng.
 *
 * It is a table as any provider's: whatever records an event does not know of rings. Over it lies
 * nothing, below it lies LTTng's provider or none, and each event that is wanted there goes there,
 * too. What a table says does not depend on whether there is a memory: without one, its events go
 * to the one below only.
 *
 * In the rings are always spans, process events, metrics, alarms and the original API's events.
 * Streaming events are only while a session below wants them: the recorder has the whole spans.
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

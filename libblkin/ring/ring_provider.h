/*
 * The provider that writes into the rings. Below it is another provider: LTTng's, or
 * blkin_no_provider.
 *
 * The rings' provider is a table like any other, so the recording code does not know about rings.
 * The rings' provider also passes an event to the provider below if that provider wants the event.
 * The table does not change when the process gets or loses a memory: without a memory, events go
 * only to the provider below.
 *
 * The rings always get spans, process events, metrics, alarms and the original API's events. The
 * agent needs only whole spans. So streaming events get into the rings only if they are made
 * anyway, for an LTTng session.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_PROVIDER_H
#define BLKIN_RING_PROVIDER_H

#include "tracepoints/format/provider_table.h"

/* Makes the table over this provider. Called once for LTTng's provider and once for
 * blkin_no_provider, each before ring_provider_use_over(). */
void ring_provider_init(const struct blkin_provider *below);

/* Makes this provider the one below the rings, and returns the table over it. */
const struct blkin_provider *ring_provider_use_over(const struct blkin_provider *below);

#endif

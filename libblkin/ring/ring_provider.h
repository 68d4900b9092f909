/*
 * The provider that writes into the rings, on top of LTTng's provider or none.
 *
 * It is a table like any provider's, so the recording code does not know about rings. An event that
 * the provider below wants goes there, too. The table does not change when the process gets or
 * loses a memory: without a memory, events go only to the provider below.
 *
 * The rings always get spans, process events, metrics, alarms and the original API's events. They
 * get streaming events only while a session below wants them: the agent has the whole spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_PROVIDER_H
#define BLKIN_RING_PROVIDER_H

#include "tracepoints/format/provider_table.h"

/* Makes the tables over this provider and over blkin_no_provider. Once, before
 * ring_provider_over(). */
void ring_provider_init(const struct blkin_provider *below);

/* The table over this provider, or over blkin_no_provider. */
const struct blkin_provider *ring_provider_over(const struct blkin_provider *below);

#endif

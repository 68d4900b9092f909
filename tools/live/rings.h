/*
 * blkin live --from=rings: the spans of this host, from the rings that libblkin writes into. No
 * LTTng, relay daemon or babeltrace2 has a part in it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_RINGS_H
#define BLKIN_LIVE_RINGS_H

#include "tools/config/frame.h"

/* Its configuration is read. Takes its calls over; returns the exit status. */
int live_rings(struct frame *frame);

#endif

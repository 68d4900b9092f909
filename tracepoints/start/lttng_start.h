/*
 * Whether LTTng can start in this process, and how long it waits there: for libblkin, which loads
 * it, and for the provider, which starts it again in children of fork(2).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LTTNG_START_H
#define BLKIN_LTTNG_START_H

#include <stdbool.h>

/* The value of LTTNG_UST_REGISTER_TIMEOUT as LTTng has it by default. */
#define LTTNG_START_TIMEOUT "3000"

/*
 * Before LTTng starts its threads. *timeout_ms becomes 0, or 1000 if the session daemon may be
 * waited for and is not stopped. False if LTTng could not start its threads: it must not be
 * started.
 */
bool lttng_start_prepare(char timeout_ms[sizeof(LTTNG_START_TIMEOUT)], bool may_wait);

/*
 * After it: LTTng's default again. LTTng reads the value each time that it connects, and it bounds
 * the session daemon's answers, too.
 */
void lttng_start_done(char timeout_ms[sizeof(LTTNG_START_TIMEOUT)]);

#endif

/*
 * Decides once whether this process loads LTTng: at once, or never.
 *
 * LTTng starts threads, takes locks and opens descriptors. So libblkin loads it in a constructor,
 * before main(), while the program has one thread. Two kinds of programs load LTTng only by
 * blkin_init(): those with libblkin.a, and those that had threads already when libblkin was loaded,
 * as with a plug-in.
 *
 * The environment variable BLKIN_LTTNG says "yes", "no" or "auto", the default: load LTTng if the
 * socket of a session daemon is there. BLKIN_PROVIDER names another file than LTTNG_PROVIDER_FILE.
 * Set-user-ID programs ignore both.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LTTNG_H
#define BLKIN_LTTNG_H

#include "blkin_base.h"
#include "tracepoints/format/provider_table.h"

/* Called by the constructor. */
void blkin_lttng_at_start(void);

/* Called by blkin_init(), also if there are threads. No thread may fork meanwhile. */
void blkin_lttng_load(void);

/* Returns LTTng's table, or blkin_no_provider. */
const struct blkin_provider *blkin_lttng_provider_in_use(void);

/* Reports whether LTTng is loaded, and why: for BLKIN_DEBUG. */
void blkin_lttng_report(void);

/* Called when LTTng records nothing more in this process: in a child whose fork ran no handlers,
 * or under a seccomp filter, which may forbid LTTng's system calls. */
void blkin_lttng_leave(const char *reason);

/*
 * For libblkin-preload.so, which defines blkin_preload_decides_: libblkin's constructor then loads
 * nothing, and the preload calls blkin_lttng_start_(). Unless BLKIN_LTTNG=yes is set, the agent's
 * rings take precedence.
 */
extern const char blkin_preload_decides_ __attribute__((weak));
BLKIN_PUBLIC void blkin_lttng_start_(bool may_load);

/* Returns LTTng's table, or NULL if LTTng is not loaded. For close(2) in the preload. */
BLKIN_PUBLIC const struct blkin_provider *blkin_lttng_(void);

#endif

/*
 * Decides once whether this process loads LTTng.
 *
 * LTTng starts threads, takes locks and opens descriptors. So libblkin loads LTTng in a
 * constructor, before main(), while the program has one thread. Two kinds of programs load LTTng
 * only by blkin_init(): those with libblkin.a, and those that already had threads when libblkin was
 * loaded, for example with a plug-in.
 *
 * The environment variable BLKIN_LTTNG is "yes", "no" or "auto". The default "auto" loads LTTng if
 * a session daemon's socket exists. BLKIN_PROVIDER is another path of LTTNG_PROVIDER_FILE.
 * Set-user-ID programs ignore both variables.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LTTNG_H
#define BLKIN_LTTNG_H

#include "blkin_base.h"
#include "tracepoints/format/provider_table.h"

/* Called by the constructor. */
void blkin_lttng_at_start(void);

/* Called by blkin_init(), even if there are threads. No thread may fork meanwhile. */
void blkin_lttng_load(void);

/* Returns LTTng's table, or blkin_no_provider. */
const struct blkin_provider *blkin_lttng_provider_in_use(void);

/* Reports whether LTTng is loaded, and why: for BLKIN_DEBUG. */
void blkin_lttng_report(void);

/* From now on, LTTng records nothing in this process. Called in a child whose fork ran no handlers,
 * and for a seccomp filter, which may forbid LTTng's system calls. */
void blkin_lttng_leave(const char *reason);

/*
 * For libblkin-preload.so, which defines blkin_preload_decides_: then libblkin's constructor does
 * not load LTTng, and the preload calls blkin_lttng_start_(). If the agent's rings are there, that
 * call loads LTTng only with BLKIN_LTTNG=yes.
 */
extern const char blkin_preload_decides_ __attribute__((weak));
BLKIN_PUBLIC void blkin_lttng_start_(bool may_load);

/* Returns LTTng's table, or NULL if LTTng is not loaded. For close(2) in the preload. */
BLKIN_PUBLIC const struct blkin_provider *blkin_lttng_(void);

#endif

/*
 * Whether LTTng is in this process: decided once, and loaded then or never.
 *
 * LTTng starts threads, takes locks and opens descriptors. So libblkin loads it while the program
 * has one thread: in a constructor, before main(). A program that has threads already when libblkin
 * comes, as by the dlopen(3) of a plug-in, loads it by blkin_init() only; so does a program that
 * libblkin.a is linked into.
 *
 * The environment variable BLKIN_LTTNG says "yes", "no" or "auto", the default: LTTng is loaded if
 * the socket of a session daemon is there. BLKIN_PROVIDER names another file than PROVIDER_FILE.
 * Set-user-ID programs ignore both.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LTTNG_H
#define BLKIN_LTTNG_H

#include "blkin_base.h"
#include "tracepoints/format/provider_table.h"

/* In a constructor. */
void blkin_lttng_at_start(void);

/* By blkin_init(): also if there are threads. While it works, no thread may fork. */
void blkin_lttng_load(void);

/* LTTng's table, or blkin_no_provider. */
const struct blkin_provider *blkin_lttng_provider_in_use(void);

/* Says whether LTTng is loaded, and why: for BLKIN_DEBUG. */
void blkin_lttng_report(void);

/* From now on LTTng records nothing here: in a child that was made without the handlers of fork(2),
 * or under a seccomp filter, which may forbid what LTTng does. */
void blkin_lttng_leave(const char *reason);

/*
 * For libblkin-preload.so, which defines blkin_preload_decides_: then libblkin's constructor loads
 * nothing, and the preload's calls blkin_lttng_start_(). Where BLKIN_LTTNG
 * does not say "yes", the agent's rings come first.
 */
extern const char blkin_preload_decides_ __attribute__((weak));
BLKIN_PUBLIC void blkin_lttng_start_(bool may_load);

/* LTTng's table; NULL: it is not loaded. For the preload's close(2). */
BLKIN_PUBLIC const struct blkin_provider *blkin_lttng_(void);

#endif

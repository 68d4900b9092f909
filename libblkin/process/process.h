/*
 * The life of the process: the first need of the library, the provider in use (LTTng, rings, none),
 * the periodic work, children of fork(2).
 *
 * Only the sources of the public headers, metric/ and preload/ call process/. The rooms below use
 * data and one function pointer in base/, which process/ sets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PROCESS_H
#define BLKIN_PROCESS_H

#include "blkin_base.h"
#include "libblkin/base/periodic.h"
#include "libblkin/base/provider.h"
#include "zipkin_c.h"

#include <stdint.h>

/* ---- for libblkin-preload.so only ---- */

/* 0 in a child of _Fork(3), or of clone(2) without CLONE_VM, where no handler of forks has run:
 * call blkin_forked_() before anything else. */
BLKIN_PUBLIC extern const uint32_t *blkin_process_mark_;
BLKIN_PUBLIC void blkin_forked_(void);

/* Before the program installs a seccomp filter: makes the process quiet, see base/thread.h. False:
 * there are no rings to write into, and nothing has changed. */
BLKIN_PUBLIC bool blkin_be_quiet_(void);

/* The program waits for connections for the first time: waits for the agent's rings, up to 0.3 s,
 * because no client waits yet. */
BLKIN_PUBLIC void blkin_server_begins_(void);

/* Before chroot(2): afterwards, the agent's socket cannot be reached. */
BLKIN_PUBLIC void blkin_before_chroot_(void);

/* The process may have become another user. Called at once, as the process may soon lose rights or
 * fork. Costs next to nothing in other processes. */
BLKIN_PUBLIC void blkin_after_chroot_(void);

/* Returns true if LTTng or the agent wants spans. looks_for_rings: opens the library if needed, and
 * does the periodic work if it is due. */
BLKIN_PUBLIC bool blkin_wants_spans_(bool looks_for_rings);

/* ---- the table ---- */

/* The tracepoints of the original API, indexed by blkin_annotation_type. Never NULL. */
extern __attribute__((visibility("hidden")))
const struct blkin_tracepoint *blkin_original_tracepoints;

static inline const struct blkin_tracepoint *
blkin_original_tracepoint(const struct blkin_annotation *annotation)
{
    return &__atomic_load_n(&blkin_original_tracepoints, __ATOMIC_ACQUIRE)[annotation->type];
}

/* Not 0: enabled, or BLKIN_LOOKS_FOR_RINGS. */
static inline int blkin_tracepoint_enabled(const struct blkin_tracepoint *tracepoint)
{
    return __builtin_expect(__atomic_load_n(tracepoint->enabled, __ATOMIC_RELAXED), 0);
}

/* Once a second: looks for the agent's rings, or leaves them. True: the agent has been asked; call
 * again soon. */
bool blkin_process_refresh(void);

/* ---- the periodic work ---- */

/* Called when BLKIN_LOOKS_FOR_RINGS is set: opens the library, and does the periodic work if it is
 * due. Returns the current ticks, which may be of another clock than earlier ones. */
uint64_t blkin_look(void);

/* Looks for rings; records the process event and reads the policies' files. One thread at a time
 * does the work. */
void blkin_do_periodic(uint64_t now_ticks);

static inline void blkin_do_periodic_if_due(uint64_t now_ticks)
{
    if (blkin_periodic_is_due(now_ticks))
        blkin_do_periodic(now_ticks);
}

#endif

/*
 * The life of the process: the first need of the library, the provider in use (LTTng, rings, none),
 * the periodic work, children of fork(2).
 *
 * Only the sources of the public headers, metric/ and preload/ call process/. All other folders use
 * data and a function pointer in base/ that process/ sets.
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

/* 0 in a child of _Fork(3), or of clone(2) without CLONE_VM, where no handler of forks has run. The
 * preload then calls blkin_forked_() before anything else. */
BLKIN_PUBLIC extern const uint32_t *blkin_process_mark_;
BLKIN_PUBLIC void blkin_forked_(void);

/* Called before the program installs a seccomp filter. Makes the process quiet: see base/thread.h.
 * Returns false, and changes nothing, if there are no rings to write into. */
BLKIN_PUBLIC bool blkin_be_quiet_(void);

/* Called when the program first waits for connections. Waits up to 0.3 s for the agent's rings,
 * because no client waits yet. */
BLKIN_PUBLIC void blkin_server_begins_(void);

/* Called before chroot(2), which makes the agent's socket unreachable. */
BLKIN_PUBLIC void blkin_before_chroot_(void);

/* Called when the process may have become another user: at once, because the process may soon lose
 * rights or fork. Does nothing in a process without blkin_before_chroot_(). */
BLKIN_PUBLIC void blkin_after_chroot_(void);

/* Returns true if LTTng or the agent wants spans. looks_for_rings: first opens the library, and
 * does the periodic work if it is due. */
BLKIN_PUBLIC bool blkin_wants_spans_(bool looks_for_rings);

/* Called when a request or a span was not recorded, perhaps because there are no rings. When there
 * are some, the agent marks the traces of that time. */
BLKIN_PUBLIC void blkin_missed_(void);

/* ---- the table ---- */

/* The tracepoints of the original API, indexed by blkin_annotation_type. Never NULL. */
extern __attribute__((visibility("hidden")))
const struct blkin_tracepoint *blkin_original_tracepoints;

static inline const struct blkin_tracepoint *
blkin_original_tracepoint(const struct blkin_annotation *annotation)
{
    return &__atomic_load_n(&blkin_original_tracepoints, __ATOMIC_ACQUIRE)[annotation->type];
}

/* Returns the tracepoint's word. Not 0: the event is enabled, or BLKIN_LOOKS_FOR_RINGS is set. */
static inline int blkin_tracepoint_enabled(const struct blkin_tracepoint *tracepoint)
{
    return __builtin_expect(__atomic_load_n(tracepoint->enabled, __ATOMIC_RELAXED), 0);
}

/* Called once a second, by the sampler every 0.5 s. Looks for the agent's rings, or leaves them.
 * Returns true if the agent was asked and has not answered: the caller calls again soon. */
bool blkin_process_refresh(void);

/* ---- the periodic work ---- */

/* Called when BLKIN_LOOKS_FOR_RINGS is set. Opens the library, and does the periodic work if it is
 * due. Returns the current ticks. The opening may change the clock, so earlier ticks are not
 * comparable. */
uint64_t blkin_look_for_rings(void);

/* Looks for rings, reads the policies' files, and records the process event. One thread does the
 * work; others return at once. */
void blkin_do_periodic(uint64_t now_ticks);

static inline void blkin_do_periodic_if_due(uint64_t now_ticks)
{
    if (blkin_periodic_is_due(now_ticks))
        blkin_do_periodic(now_ticks);
}

#endif

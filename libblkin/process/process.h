/*
 * The life of the process: its first need of the library, the table that events are recorded
 * through (LTTng's, that of the rings, or none), what is due once a second, children of fork(2).
 *
 * Only the sources of the public headers, metric/ and preload/ call process/. The rooms below it
 * find what they need in base/: data, and one function pointer, both of which process/ sets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PROCESS_H
#define BLKIN_PROCESS_H

#include "blkin_base.h"
#include "libblkin/base/chores.h"
#include "libblkin/base/provider.h"
#include "zipkin_c.h"

#include <stdint.h>

/* ---- for libblkin-preload.so ---- */

/*
 * 0 in a child of _Fork(3) or clone(2) without CLONE_VM, where no handler of forks has run: then
 * call blkin_forked_() before anything else. Also for libblkin-preload.so.
 */
BLKIN_PUBLIC extern const uint32_t *blkin_process_mark_;
BLKIN_PUBLIC void blkin_forked_(void);

/*
 * For libblkin-preload.so, before the program installs a seccomp filter: see base/quiet.h. False:
 * there are no rings to write into, and nothing has changed.
 */
BLKIN_PUBLIC bool blkin_be_quiet_(void);

/* For libblkin-preload.so: the program first waits for connections. As no client waits, the
 * recorder's rings are waited for as long as its agent may take. */
BLKIN_PUBLIC void blkin_server_begins_(void);

/* For libblkin-preload.so, before chroot(2), after which the agent's socket cannot be reached. */
BLKIN_PUBLIC void blkin_before_chroot_(void);

/* And when the process may have become another user: at once, as it may soon be allowed less, or
 * fork(2). Costs next to nothing in other processes. */
BLKIN_PUBLIC void blkin_after_chroot_(void);

/* Returns whether spans are wanted, by LTTng or by the recorder, whose rings it looks for if told
 * so and if it is time. For libblkin-preload.so. */
BLKIN_PUBLIC bool blkin_wants_spans_(bool looks_for_rings);

/* ---- the table ---- */

/* The tracepoints of the original API, by blkin_annotation_type. Never NULL. */
extern __attribute__((visibility("hidden")))
const struct blkin_tracepoint *blkin_original_tracepoints;

static inline const struct blkin_tracepoint *
blkin_original_tracepoint(const struct blkin_annotation *annotation)
{
    return &__atomic_load_n(&blkin_original_tracepoints, __ATOMIC_ACQUIRE)[annotation->type];
}

/* Also BLKIN_GATE_LOOKS. */
static inline int blkin_tracepoint_enabled(const struct blkin_tracepoint *tracepoint)
{
    return __builtin_expect(__atomic_load_n(tracepoint->enabled, __ATOMIC_RELAXED), 0);
}

/*
 * At the first need: starts clocks and policies, and asks the agent for rings, which it waits for
 * 5 ms at most, or 0.3 s at the program's start. Does nothing later. Thread-safe.
 */
void blkin_process_load(bool is_at_start);

/* blkin_init(): the same at the program's start, where no request waits, and with LTTng. */
void blkin_process_start(void);

/* Once a second: looks for the agent's rings, or leaves them. True: an answer is awaited, call
 * again soon. */
bool blkin_process_refresh(void);

/* ---- the chores ---- */

/* For who finds BLKIN_GATE_LOOKS: the first need, then the chores if they are due. Returns the
 * ticks of now: those of before may be of another kind. */
uint64_t blkin_look(void);

/* The process event, the files of sampling and of slow requests. One thread at a time does it. */
void blkin_do_chores(uint64_t now_ticks);

static inline void blkin_do_chores_if_due(uint64_t now_ticks)
{
    if (blkin_chores_are_due(now_ticks))
        blkin_do_chores(now_ticks);
}

#endif

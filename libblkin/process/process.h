/*
 * The life of the process: its first need of the library, what is due once a second, children of
 * fork(2).
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

#include <stdint.h>

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

/* Returns whether spans are wanted, by LTTng or by the recorder, whose rings it looks for if told
 * so and if it is time. For libblkin-preload.so. */
BLKIN_PUBLIC bool blkin_wants_spans_(bool looks_for_rings);

/*
 * At the first need: see loader.h. Callers outside of process/ use this function and not
 * blkin_provider_load(): it makes the linker of a static program take process.c, with the handlers
 * of fork(2).
 */
void blkin_process_load(void);

/* blkin_init(): the same at the program's start, where no request waits, and with LTTng. */
void blkin_process_start(void);

/* The process event, the files of sampling and of slow requests. One thread at a time does it. */
void blkin_do_chores(uint64_t now_ticks);

static inline void blkin_do_chores_if_due(uint64_t now_ticks)
{
    if (blkin_chores_are_due(now_ticks))
        blkin_do_chores(now_ticks);
}

#endif

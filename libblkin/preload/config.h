/*
 * What is traced of a program that runs with libblkin-preload.so: the text of BLKIN_RUN, which
 * "blkin run" has made of its options, then a file that may be changed while the program runs.
 *
 * What is in force never changes in place: a new one is written to another slot and made the
 * current one with a single store. A slot is used again after seven changes, a second each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_CONFIG_H
#define BLKIN_PRELOAD_CONFIG_H

#include "config_text.h"

#include <stdint.h>

#define PRELOAD_CONFIG_FILE  "/run/blkin/run"
#define PRELOAD_CONFIG_EVERY UINT64_C(1000000000) /* ns */

extern __attribute__((visibility("hidden"))) const struct preload_config *preload_config_in_force;
extern __attribute__((visibility("hidden"))) uint64_t preload_config_due_ns;

/* Until preload_config_init() nothing is wanted. Good until the next call that may wait. */
static inline const struct preload_config *preload_config(void)
{
    return __atomic_load_n(&preload_config_in_force, __ATOMIC_ACQUIRE);
}

/* Reads the environment and the file. Once, before main(). */
void preload_config_init(void);

/* The file is not looked at any more. */
void preload_config_fix(void);

/* The configured one, or the program's name as it was at the start. */
const char *preload_service_name(void);

/* Takes the file over if it has changed; one thread at a time does it. */
void preload_config_look(uint64_t now_ns);

/* The same if that was not done for a second: else a load and a comparison. */
static inline void preload_config_refresh(uint64_t now_ns)
{
    if (__builtin_expect(now_ns >= __atomic_load_n(&preload_config_due_ns, __ATOMIC_RELAXED), 0))
        preload_config_look(now_ns);
}

#endif

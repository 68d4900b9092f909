/*
 * A process that is about to install a seccomp filter: from then on, a system call that its filter
 * does not expect may end it. So the library makes none in a quiet process. The recorder's rings
 * need none: they are mapped, and times come from pages that the kernel maps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_QUIET_H
#define BLKIN_QUIET_H

#include <stdbool.h>
#include <stdint.h>

/* Never false again. */
extern __attribute__((visibility("hidden"))) bool blkin_is_quiet;

/* Gets what a quiet process needs, and makes it one. */
void blkin_quiet_begin(void);

/* In a child of fork(2), in its first thread. */
void blkin_quiet_after_fork(void);

/* The process's number, quiet or not. */
uint32_t blkin_pid(void);

/* Differs by process and call, as random numbers do. */
uint64_t blkin_quiet_seed(void);

#endif

/*
 * The begin and the end of the process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_START_H
#define BLKIN_PRELOAD_START_H

#include <stdbool.h>

/* The program installs a seccomp filter: gets all that needs a system call. False: this process
 * cannot be traced without. */
bool start_be_quiet(void);

/* The program calls chroot(2): gets all that needs the agent's socket or /proc. */
void start_leave_files(void);

/* Also requests that have caused calls: nobody will answer them. */
void start_end_all(void);

/* Records all that is answered or put off, of all threads: the process ends, or must be quiet. */
void start_flush_all(void);

#endif

/*
 * Seccomp filters. A filter may end the process at a system call that it does not expect, and LTTng
 * and this library make such calls. So where one may be, the program is left alone: the wrappers
 * only pass on. One that was inherited, as in a container, is seen at the start; one that the
 * program installs is seen by the calls that install it, before they do.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_FILTER_H
#define BLKIN_PRELOAD_FILTER_H

/* Looks for one that was inherited. Once, before main(), after the configuration. */
void filter_init(void);

#endif

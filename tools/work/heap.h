/*
 * The memory of a worker.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_HEAP_H
#define BLKIN_TOOLS_WORK_HEAP_H

#include <stddef.h>

/*
 * For a process that holds hundreds of MB, gives them back piece by piece, and takes them again:
 * malloc() keeps what was freed, and so many bytes, of the main thread, come in large pages where
 * the kernel has them. Memory is used up only where it is written to.
 */
void heap_prepare(size_t bytes);

#endif

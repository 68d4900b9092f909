/*
 * The memory of a worker.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_HEAP_H
#define BLKIN_TOOLS_WORK_HEAP_H

#include <stddef.h>

/*
 * For a process that allocates, frees and allocates hundreds of MB again: malloc() keeps freed
 * memory, and the main thread's first `bytes` bytes use large pages where the kernel has them. Only
 * memory that is written to counts as used.
 */
void heap_prepare(size_t bytes);

#endif

/*
 * The memory of a worker. With pages of 4 KiB, a worker spent a fifth of its time on page faults,
 * and most searches for a trace were TLB misses.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE    ((uintptr_t)2 << 20)
#define MMAP_FROM     (16 << 20) /* larger than a message of a broker */
#define MMAP_MAX      65536      /* glibc's own */
#define NEVER_TRIMMED (-1)

void heap_prepare(size_t bytes)
{
    void *memory;
    uintptr_t from;

    (void)mallopt(M_MMAP_THRESHOLD, MMAP_FROM);
    (void)mallopt(M_TRIM_THRESHOLD, NEVER_TRIMMED);
    (void)mallopt(M_MMAP_MAX, 0); /* allocations extend the heap, which never shrinks */
    memory = malloc(bytes);
    (void)mallopt(M_MMAP_MAX, MMAP_MAX);
    if (!memory)
        return;
    from = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    if (from < (uintptr_t)memory + bytes)
        (void)madvise((void *)from, (uintptr_t)memory + bytes - from, MADV_HUGEPAGE);
    free(memory);
}

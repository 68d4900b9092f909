/*
 * The memory of a worker. In pages of 4 KiB a fifth of its time went into having them given, and
 * finding a trace was mostly a miss in the processor's table of pages.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE    ((uintptr_t)2 << 20)
#define MMAP_FROM     (16 << 20) /* what brokers send is less */
#define MMAP_MAX      65536      /* glibc's own */
#define NEVER_TRIMMED (-1)

void heap_prepare(size_t bytes)
{
    void *memory;
    uintptr_t from;

    (void)mallopt(M_MMAP_THRESHOLD, MMAP_FROM);
    (void)mallopt(M_TRIM_THRESHOLD, NEVER_TRIMMED);
    (void)mallopt(M_MMAP_MAX, 0); /* at the end of the heap, which it stays a part of */
    memory = malloc(bytes);
    (void)mallopt(M_MMAP_MAX, MMAP_MAX);
    if (!memory)
        return;
    from = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    if (from < (uintptr_t)memory + bytes)
        (void)madvise((void *)from, (uintptr_t)memory + bytes - from, MADV_HUGEPAGE);
    free(memory);
}

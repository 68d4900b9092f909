/*
 * The table of descriptors.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "slot.h"

#include "preload.h"

#include <sys/mman.h>

static struct preload_slot *slot_leaves[PRELOAD_LEAVES];

struct preload_slot *preload_slot(int fd)
{
    struct preload_slot *leaf;

    if (fd < 0 || fd >= PRELOAD_LEAF * PRELOAD_LEAVES)
        return NULL;
    leaf = __atomic_load_n(&slot_leaves[fd / PRELOAD_LEAF], __ATOMIC_ACQUIRE);
    return leaf ? &leaf[fd % PRELOAD_LEAF] : NULL;
}

struct preload_slot *preload_slot_make(int fd)
{
    struct preload_slot *slot = preload_slot(fd), *leaf, *there = NULL;

    if (slot || fd < 0 || fd >= PRELOAD_LEAF * PRELOAD_LEAVES || preload_is_quiet())
        return slot;
    leaf = mmap(NULL, PRELOAD_LEAF * sizeof(*leaf), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (leaf == MAP_FAILED)
        return NULL;
    if (!__atomic_compare_exchange_n(&slot_leaves[fd / PRELOAD_LEAF], &there, leaf, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        (void)munmap(leaf, PRELOAD_LEAF * sizeof(*leaf));
    return preload_slot(fd);
}

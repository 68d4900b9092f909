/*
 * The table of descriptors: what connection.h and file.h know of each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_SLOT_H
#define BLKIN_PRELOAD_SLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What else than a connection's pointer is in a slot. */
enum preload_kind {
    PRELOAD_UNKNOWN,   /* not looked at yet, or closed */
    PRELOAD_NO_SOCKET, /* a file, a pipe, whatever */
    PRELOAD_OTHER,     /* a socket of no interest */
};

/* One per descriptor; made at the first need, never freed, all zeros at first. */
struct preload_slot {
    uintptr_t connection; /* a preload_kind, or a pointer: connection.h */
    uintptr_t file;       /* file.h's own; 0 again once the descriptor is closed or replaced */
    void *file_memory;    /* file.h's own; stays */
};

/* Any number that RLIMIT_NOFILE allows: leaves of slots, mapped at the first need. */
#define PRELOAD_LEAF   16384
#define PRELOAD_LEAVES 65536

/* The slot, or NULL if there is none yet. Any number may come. */
struct preload_slot *preload_slot(int fd);

/* The same, made if need be; NULL if there is no memory or fd is no descriptor. */
struct preload_slot *preload_slot_make(int fd);

/* True for one that the wrappers of sockets take; false: file.h may have it. */
static inline bool preload_is_socket(const struct preload_slot *slot)
{
    return slot && __atomic_load_n(&slot->connection, __ATOMIC_RELAXED) > PRELOAD_NO_SOCKET;
}

/* Is there anything to forget when the descriptor is closed? */
static inline bool preload_is_known(const struct preload_slot *slot)
{
    return slot && (__atomic_load_n(&slot->connection, __ATOMIC_RELAXED) |
                    __atomic_load_n(&slot->file, __ATOMIC_RELAXED));
}

#endif

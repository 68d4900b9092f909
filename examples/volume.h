/*
 * The map of a thin-provisioned volume: which object holds which extent, with copy-on-write.
 *
 * Nothing here records anything, and nothing is kept on disk: mapper.c has the spans and the I/O.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef EXAMPLES_VOLUME_H_
#define EXAMPLES_VOLUME_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define EXTENT_SIZE    65536U
#define VOLUME_EXTENTS (1U << 20) /* 64 GiB */
#define VOLUME_LOCKS   64

struct extent {
    uint64_t object;   /* 0: nothing was written yet, reads as zeros */
    uint64_t snapshot; /* how many there were when the object was made */
};

struct volume {
    struct extent *extents;
    pthread_mutex_t locks[VOLUME_LOCKS]; /* of an extent: number modulo VOLUME_LOCKS */
    pthread_rwlock_t requests;           /* for reading: a read or a write; else a snapshot */
    uint64_t snapshots;
    atomic_uint_least64_t last_object;
};

enum extent_state {
    EXTENT_ABSENT,
    EXTENT_SHARED, /* with a snapshot: a write must go to a copy */
    EXTENT_OWN,
};

/* Returns 0 or an errno. */
int volume_init(struct volume *volume);

/* Around a read or write of data; a snapshot waits until none is under way. */
void volume_begin(struct volume *volume);
void volume_end(struct volume *volume);

/* From here on what is written now can be changed only in a copy. Returns how many there are. */
uint64_t volume_snapshot(struct volume *volume);

/* Between a lock and an unlock, an extent stays what it is to everybody else. */
void volume_lock(struct volume *volume, uint64_t extent);
void volume_unlock(struct volume *volume, uint64_t extent);

/* Sets *object to that of the extent, 0 if absent. Under its lock, as is volume_set(). */
enum extent_state volume_lookup(const struct volume *volume, uint64_t extent, uint64_t *object);
void volume_set(struct volume *volume, uint64_t extent, uint64_t object);

/* The number of an object that no extent has. */
uint64_t volume_new_object(struct volume *volume);

#endif /* EXAMPLES_VOLUME_H_ */

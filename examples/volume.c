/*
 * The map of a thin-provisioned volume: which object holds which extent, with copy-on-write.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "volume.h"

#include <errno.h>
#include <stdlib.h>

int volume_init(struct volume *volume)
{
    pthread_rwlockattr_t attributes;

    volume->extents = calloc(VOLUME_EXTENTS, sizeof(*volume->extents));
    if (!volume->extents)
        return ENOMEM;
    for (int i = 0; i < VOLUME_LOCKS; i++)
        pthread_mutex_init(&volume->locks[i], NULL);
    pthread_rwlockattr_init(&attributes);
    /* else a snapshot would wait for ever where there is always some request under way */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&volume->requests, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    volume->snapshots = 0;
    atomic_init(&volume->last_object, 0);
    return 0;
}

void volume_begin(struct volume *volume)
{
    pthread_rwlock_rdlock(&volume->requests);
}

void volume_end(struct volume *volume)
{
    pthread_rwlock_unlock(&volume->requests);
}

uint64_t volume_snapshot(struct volume *volume)
{
    uint64_t snapshots;

    pthread_rwlock_wrlock(&volume->requests);
    snapshots = ++volume->snapshots;
    pthread_rwlock_unlock(&volume->requests);
    return snapshots;
}

void volume_lock(struct volume *volume, uint64_t extent)
{
    pthread_mutex_lock(&volume->locks[extent % VOLUME_LOCKS]);
}

void volume_unlock(struct volume *volume, uint64_t extent)
{
    pthread_mutex_unlock(&volume->locks[extent % VOLUME_LOCKS]);
}

enum extent_state volume_lookup(const struct volume *volume, uint64_t extent, uint64_t *object)
{
    const struct extent *found = &volume->extents[extent];

    *object = found->object;
    if (found->object == 0)
        return EXTENT_ABSENT;
    return found->snapshot < volume->snapshots ? EXTENT_SHARED : EXTENT_OWN;
}

void volume_set(struct volume *volume, uint64_t extent, uint64_t object)
{
    volume->extents[extent] = (struct extent){object, volume->snapshots};
}

uint64_t volume_new_object(struct volume *volume)
{
    return atomic_fetch_add(&volume->last_object, 1) + 1;
}

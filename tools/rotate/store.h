/*
 * The folder OUTPUT of `blkin rotate`, which is its queue: what lies there is all that it knows, so
 * it may be killed at any time.
 *
 *     OUTPUT/PLACE/archives/CHUNK/  closed, to be converted: the oldest first
 *     OUTPUT/PLACE/...              what LTTng's session writes now
 *     OUTPUT/damaged/, OUTPUT/trash/
 *
 * Each session that was ever made has a PLACE of its own, whose name begins with a number that
 * rises. The same name below SHM is where its buffers are.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_STORE_H
#define BLKIN_TOOLS_ROTATE_STORE_H

#include "tools/base/folders.h"

#define PLACE_MAX 64
#define CHUNK_MAX 192

struct chunk {
    char place[PLACE_MAX];
    char name[CHUNK_MAX];
    uint64_t number; /* within its place; LTTng's */
    uint64_t bytes;
    int64_t closed_ns;
};

struct place {
    char name[PLACE_MAX];
    bool has_rest; /* something else than closed chunks: a session writes here, or has died */
};

struct store {
    char output[4096];
    char shm[4096];       /* "": LTTng's own */
    struct chunk *chunks; /* the oldest first */
    size_t count, room;
    struct place *places;
    size_t place_count, place_room;
    uint64_t bytes; /* of all chunks */
};

/* Makes the folders. Returns false with error set. */
bool store_open(struct store *store, const char *output, const char *shm, struct error *error);
void store_close(struct store *store);

/* Only its folders, for the order of a task. */
struct store store_folders(const struct store *store);

/* Looks what is there now. Returns false with errno set. */
bool store_scan(struct store *store);

/* A name for a new place, after all that are there. */
void store_new_place(const struct store *store, char place[PLACE_MAX]);

void store_chunk_path(const struct store *store, const struct chunk *chunk, char path[PATH_ROOM]);

/* It is gone at once, however this is interrupted. Returns false with errno set. The saver does the
 * rest. */
bool store_remove(const struct store *store, const struct chunk *chunk);
/* The same, all by the saver: after what was given to it before. */
void store_remove_later(const struct store *store, const struct chunk *chunk);

/* Of a place that nobody uses and that is empty. */
void store_remove_place(const struct store *store, const char *place);

/* Of its file system: what is left free, of how much, in bytes. */
bool store_free(const struct store *store, uint64_t *bytes, uint64_t *all);

#endif

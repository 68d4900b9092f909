/*
 * The folder OUTPUT of `blkin rotate`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "store.h"

#include "babeltrace-plugin/base/array.h"
#include "tools/base/saver.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

bool store_open(struct store *store, const char *output, const char *shm, struct error *error)
{
    char trash[PATH_ROOM];

    *store = (struct store){.count = 0};
    (void)snprintf(store->output, sizeof(store->output), "%s", output);
    (void)snprintf(store->shm, sizeof(store->shm), "%s", shm);
    if (output[0] != '/')
        return error_set(error, "output \"%s\": expected a path that begins with /", output);
    if (!folder_own(output, "output", error) || (*shm && !folder_own(shm, "shm-path", error)))
        return false;
    path_set(trash, "%s/trash", output);
    if (tree_remove(trash) && mkdir(trash, 0700) == 0)
        return true;
    return error_set(error, "cannot empty %s: %s", trash, strerror(errno));
}

void store_close(struct store *store)
{
    free(store->chunks);
    free(store->places);
}

struct store store_folders(const struct store *store)
{
    struct store folders = {.count = 0};

    memcpy(folders.output, store->output, sizeof(folders.output));
    memcpy(folders.shm, store->shm, sizeof(folders.shm));
    return folders;
}

void store_chunk_path(const struct store *store, const struct chunk *chunk, char path[PATH_ROOM])
{
    path_set(path, "%s/%s/archives/%s", store->output, chunk->place, chunk->name);
}

/* ---- scanning -------------------------------------------------------------------------------- */

/* Of "20261122T043257+0000-20261122T043258+0000-12", as of "dead-12~1": 12. */
static uint64_t number_of(const char *name)
{
    const char *dash = strrchr(name, '-');

    return dash ? strtoull(dash + 1, NULL, 10) : 0;
}

static int store_by_age(const void *a, const void *b)
{
    const struct chunk *one = a, *other = b;
    const int places = strcmp(one->place, other->place);

    if (places)
        return places;
    return one->number < other->number ? -1 : one->number > other->number;
}

/* Among those of the scan before, in their order. */
static const struct chunk *find(const struct chunk *chunks, size_t count, const struct chunk *chunk)
{
    const struct chunk *found =
        count ? bsearch(chunk, chunks, count, sizeof(*chunks), store_by_age) : NULL;

    return found && strcmp(found->name, chunk->name) == 0 ? found : NULL;
}

struct scan {
    struct store *store;
    struct chunk *before; /* closed chunks do not change: their size is known */
    size_t before_count;
};

static bool add_chunk(struct scan *scan, const char *place, const char *name)
{
    struct store *store = scan->store;
    struct chunk chunk = {.number = number_of(name)};
    const struct chunk *known;
    char path[PATH_ROOM];
    struct stat status;

    if (!ARRAY_FITS(store->chunks, store->room, store->count) ||
        snprintf(chunk.place, sizeof(chunk.place), "%s", place) >= PLACE_MAX ||
        snprintf(chunk.name, sizeof(chunk.name), "%s", name) >= CHUNK_MAX)
        return false;
    known = find(scan->before, scan->before_count, &chunk);
    store_chunk_path(store, &chunk, path);
    chunk.bytes = known ? known->bytes : tree_bytes(path);
    chunk.closed_ns = known ? known->closed_ns
                      : lstat(path, &status) == 0
                          ? (int64_t)status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec
                          : 0;
    store->chunks[store->count++] = chunk;
    store->bytes += chunk.bytes;
    return true;
}

static bool is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static bool scan_archives(struct scan *scan, const char *place)
{
    char path[PATH_ROOM];
    const struct dirent *entry;
    bool is_well = true;
    DIR *folder;

    path_set(path, "%s/%s/archives", scan->store->output, place);
    folder = opendir(path);
    if (!folder)
        return errno == ENOENT;
    while (is_well && (entry = readdir(folder)) != NULL) {
        if (is_entry(entry) && strlen(entry->d_name) < CHUNK_MAX)
            is_well = add_chunk(scan, place, entry->d_name);
    }
    closedir(folder);
    return is_well;
}

static bool scan_place(struct scan *scan, const char *name)
{
    struct store *store = scan->store;
    char path[PATH_ROOM];
    const struct dirent *entry;
    struct place *place;
    DIR *folder;

    if (!ARRAY_FITS(store->places, store->place_room, store->place_count))
        return false;
    path_set(path, "%s/%s", store->output, name);
    folder = opendir(path);
    if (!folder)
        return errno == ENOENT || errno == ENOTDIR;
    place = &store->places[store->place_count++];
    *place = (struct place){.has_rest = false};
    (void)snprintf(place->name, sizeof(place->name), "%s", name);
    path_set(path, "%s/%s", store->shm, name);
    place->has_rest = store->shm[0] && access(path, F_OK) == 0;
    while ((entry = readdir(folder)) != NULL) {
        if (is_entry(entry) && strcmp(entry->d_name, "archives") != 0)
            place->has_rest = true;
    }
    closedir(folder);
    return scan_archives(scan, name);
}

static bool scan_all(struct scan *scan)
{
    DIR *folder = opendir(scan->store->output);
    const struct dirent *entry;
    bool is_well = folder != NULL;

    /* what is no place does not begin with a number */
    while (is_well && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && strlen(entry->d_name) < PLACE_MAX)
            is_well = scan_place(scan, entry->d_name);
    }
    if (folder)
        closedir(folder);
    return is_well;
}

bool store_scan(struct store *store)
{
    struct scan scan = {store, store->chunks, store->count};
    bool is_well;

    store->chunks = NULL;
    store->count = store->room = 0;
    store->place_count = 0;
    store->bytes = 0;
    is_well = scan_all(&scan);
    free(scan.before);
    if (store->count)
        qsort(store->chunks, store->count, sizeof(*store->chunks), store_by_age);
    return is_well;
}

/* ---- names ----------------------------------------------------------------------------------- */

void store_new_place(const struct store *store, char place[PLACE_MAX])
{
    const time_t now = time(NULL);
    unsigned long last = 0;
    struct tm tm;
    char date[32] = "";

    for (size_t i = 0; i < store->place_count; i++) {
        const unsigned long number = strtoul(store->places[i].name, NULL, 10);

        last = number > last ? number : last;
    }
    if (gmtime_r(&now, &tm))
        (void)strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm);
    /* the same number may come again, with another time */
    (void)snprintf(place, PLACE_MAX, "%06lu-%s", last + 1, date);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void paths_of(const struct store *store, const struct chunk *chunk, char path[PATH_ROOM],
                     char trash[PATH_ROOM])
{
    store_chunk_path(store, chunk, path);
    path_set(trash, "%s/trash/%s.%s", store->output, chunk->place, chunk->name);
}

bool store_remove(const struct store *store, const struct chunk *chunk)
{
    char path[PATH_ROOM], trash[PATH_ROOM];

    paths_of(store, chunk, path, trash);
    if (rename(path, trash) != 0 && errno != ENOENT)
        return false;
    saver_remove(path, trash);
    return true;
}

void store_remove_later(const struct store *store, const struct chunk *chunk)
{
    char path[PATH_ROOM], trash[PATH_ROOM];

    paths_of(store, chunk, path, trash);
    saver_remove(path, trash);
}

void store_remove_place(const struct store *store, const char *place)
{
    char path[PATH_ROOM];

    path_set(path, "%s/%s/archives", store->output, place);
    (void)rmdir(path);
    path_set(path, "%s/%s", store->output, place);
    (void)rmdir(path);
}

bool store_free(const struct store *store, uint64_t *bytes, uint64_t *all)
{
    struct statvfs status;

    if (statvfs(store->output, &status) != 0 || status.f_blocks == 0)
        return false;
    *bytes = (uint64_t)status.f_bavail * status.f_frsize;
    *all = (uint64_t)status.f_blocks * status.f_frsize;
    return true;
}

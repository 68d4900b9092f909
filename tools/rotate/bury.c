/*
 * What a session leaves that died.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "bury.h"

#include "tools/base/say.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CRASH_TIME_S 120

/* ---- is it quiet? ---------------------------------------------------------------------------- */

static bool note_newest(void *context, const char *folder, const char *name)
{
    time_t *newest = context;
    char path[PATH_ROOM];
    struct stat status;

    path_set(path, "%s/%s", folder, name);
    if (lstat(path, &status) == 0 && status.st_mtime > *newest)
        *newest = status.st_mtime;
    return true;
}

/*
 * Has anybody this file open for writing? /proc/PID/fd shows only our own processes; the consumer
 * daemon is root's. The kernel tells the owner of a file: it gives a lease for reading only on one
 * that nobody has open for writing. It is given back at once; who opens the file meanwhile waits
 * for that, and we are told by SIGIO.
 */
static enum bury_open is_written(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    enum bury_open state = BURY_CLOSED;

    if (fd < 0)
        return errno == ENOENT ? BURY_CLOSED : BURY_UNKNOWN;
    if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
        state = errno == EAGAIN ? BURY_WRITTEN : BURY_UNKNOWN;
    close(fd); /* with the lease */
    return state;
}

static bool note_written(void *context, const char *folder, const char *name)
{
    struct bury_file *file = context;

    path_set(file->path, "%s/%s", folder, name);
    file->open = is_written(file->path);
    return file->open == BURY_CLOSED;
}

bool bury_is_quiet(const struct store *store, const char *place, int64_t quiet_s,
                   struct bury_file *file)
{
    char path[PATH_ROOM];
    time_t newest = 0;
    int64_t age_s;

    file->open = BURY_CLOSED;
    path_set(path, "%s/%s", store->output, place);
    (void)tree_files(path, note_newest, &newest);
    age_s = (int64_t)time(NULL) - (int64_t)newest;
    /* after the wall clock was set back it is younger than nothing */
    if (age_s >= 0 && age_s < quiet_s)
        return false;
    (void)signal(SIGIO, SIG_IGN);
    (void)tree_files(path, note_written, file);
    return file->open == BURY_CLOSED;
}

/* ---- unfinished packets ---------------------------------------------------------------------- */

/* LTTng's index of a stream's packets, CTF_INDEX 1.x: all numbers are big-endian. */
#define INDEX_MAGIC 0xC1F1DCC1

struct index_head {
    uint32_t magic, major, minor, entry_size;
};

struct index_entry {
    uint64_t offset, packet_bits;
};

/* The length of the stream up to the last packet that is whole and in the index; index: how much of
 * that is. Returns false if there is no index. */
static bool whole_packets(int index, uint64_t stream_bytes, uint64_t *bytes, uint64_t *index_bytes)
{
    struct index_head head;
    struct index_entry entry;

    if (pread(index, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        be32toh(head.magic) != INDEX_MAGIC || be32toh(head.entry_size) < sizeof(entry))
        return false;
    *bytes = 0;
    *index_bytes = sizeof(head);
    while (pread(index, &entry, sizeof(entry), (off_t)*index_bytes) == (ssize_t)sizeof(entry)) {
        const uint64_t end = be64toh(entry.offset) + be64toh(entry.packet_bits) / 8;
        char last;

        if (end <= *bytes || end > stream_bytes ||
            pread(index, &last, 1, (off_t)(*index_bytes + be32toh(head.entry_size) - 1)) != 1)
            break;
        *bytes = end;
        *index_bytes += be32toh(head.entry_size);
    }
    return true;
}

/* The index is written after its packet, and the packet leaves the buffer after that. */
static bool cut_stream(void *context, const char *folder, const char *name)
{
    bool *has_failed = context;
    char path[PATH_ROOM], index_path[PATH_ROOM];
    uint64_t bytes, index_bytes;
    struct stat status;
    int index;

    path_set(path, "%s/%s", folder, name);
    path_set(index_path, "%s/index/%s.idx", folder, name);
    index = open(index_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (index < 0)
        return true;
    if (lstat(path, &status) == 0 &&
        whole_packets(index, (uint64_t)status.st_size, &bytes, &index_bytes)) {
        if (truncate(path, (off_t)bytes) != 0 || ftruncate(index, (off_t)index_bytes) != 0)
            *has_failed = true;
    }
    close(index);
    return true;
}

static bool bury_is_stream(const char *name)
{
    return strncmp(name, "metadata", strlen("metadata")) != 0 && !strstr(name, ".idx");
}

/* A program that had just begun has nothing in its streams, and maybe half of its metadata. */
static void remove_if_empty(const char *trace)
{
    const struct dirent *entry;
    DIR *folder = opendir(trace);
    uint64_t bytes = 0;

    while (folder && (entry = readdir(folder)) != NULL) {
        char path[PATH_ROOM];
        struct stat status;

        path_set(path, "%s/%s", trace, entry->d_name);
        if (lstat(path, &status) == 0 && S_ISREG(status.st_mode) && bury_is_stream(entry->d_name))
            bytes += (uint64_t)status.st_size;
    }
    if (folder)
        closedir(folder);
    if (!bytes)
        (void)tree_remove(trace);
}

static void remove_empty(const char *chunk)
{
    size_t count = 0;
    char **traces = trace_folders(chunk, &count);

    for (size_t i = 0; traces && i < count; i++)
        remove_if_empty(traces[i]);
    trace_folders_free(traces);
}

/* ---- chunks that were under way -------------------------------------------------------------- */

/* The first chunk of all, as another one has it: with a folder "ust". */
#define FIRST ".first_chunk"

static bool close_first(const char *place)
{
    char from[PATH_ROOM], to[PATH_ROOM];

    path_set(from, "%s/ust", place);
    path_set(to, "%s/" FIRST "/ust", place);
    if (access(from, F_OK) != 0)
        return true;
    *strrchr(to, '/') = '\0';
    if (mkdir(to, 0700) != 0 && errno != EEXIST)
        return false;
    path_set(to, "%s/" FIRST "/ust", place);
    return rename(from, to) == 0;
}

/* In the order in which LTTng has written them; -1: none of LTTng's. */
static int age_of(const char *name)
{
    if (strcmp(name, ".tmp_old_chunk") == 0)
        return 0;
    if (strcmp(name, FIRST) == 0)
        return 1;
    if (name[0] >= '0' && name[0] <= '9')
        return 2;
    return strcmp(name, ".tmp_new_chunk") == 0 ? 3 : -1;
}

struct rest {
    char name[CHUNK_MAX];
    int age;
};

static int by_age(const void *a, const void *b)
{
    const struct rest *one = a, *other = b;

    return one->age != other->age ? one->age - other->age : strcmp(one->name, other->name);
}

#define RESTS_MAX 8

static size_t list_rests(const char *place, struct rest rests[RESTS_MAX])
{
    const struct dirent *entry;
    size_t count = 0;
    DIR *folder = opendir(place);

    while (folder && count < RESTS_MAX && (entry = readdir(folder)) != NULL) {
        const int age = age_of(entry->d_name);

        if (age < 0 || snprintf(rests[count].name, CHUNK_MAX, "%s", entry->d_name) >= CHUNK_MAX)
            continue;
        rests[count++].age = age;
    }
    if (folder)
        closedir(folder);
    qsort(rests, count, sizeof(*rests), by_age);
    return count;
}

/* After all of LTTng's, and never one that another chunk has had: by it is known what was sent. */
static void new_name(const char *archives, char path[PATH_ROOM])
{
    static uint64_t last;
    const uint64_t us = (uint64_t)wall_clock_ns() / 1000;

    last = us > last ? us : last + 1;
    path_set(path, "%s/dead-%" PRIu64, archives, last);
}

static bool metadata_from(const char *folder, const char *below, const char *to)
{
    char from[PATH_ROOM];

    path_set(from, "%s%s/metadata", folder, below);
    return file_copy(from, to);
}

static bool metadata_of_chunks(const char *archives, const char *below, const char *to)
{
    const struct dirent *entry;
    bool found = false;
    DIR *folder = opendir(archives);

    while (folder && !found && (entry = readdir(folder)) != NULL) {
        char chunk[PATH_ROOM];

        path_set(chunk, "%s/%s", archives, entry->d_name);
        found = entry->d_name[0] != '.' && metadata_from(chunk, below, to);
    }
    if (folder)
        closedir(folder);
    return found;
}

struct completing {
    const char *chunk;
    const char *shm, *saved, *archives; /* where metadata may be */
};

/*
 * The session daemon hands metadata to its consumer late, and with it dies what it has not handed
 * over. With buffers in our folder it is whole beside them.
 */
static bool complete_metadata(void *context, const char *folder, const char *name)
{
    const struct completing *completing = context;
    const char *below = folder + strlen(completing->chunk);
    char whole[PATH_ROOM], there[PATH_ROOM];

    if (!bury_is_stream(name))
        return true;
    path_set(whole, "%s/metadata.whole", folder);
    path_set(there, "%s/metadata", folder);
    if (!(metadata_from(completing->shm, below, whole) ||
          metadata_from(completing->saved, below, whole) ||
          (access(there, F_OK) != 0 && metadata_of_chunks(completing->archives, below, whole))) ||
        rename(whole, there) != 0)
        (void)unlink(whole);
    return true;
}

static bool close_rests(const char *place, const char *shm, const char *archives,
                        struct error *error)
{
    char saved[PATH_ROOM];
    struct rest rests[RESTS_MAX];
    size_t count;

    path_set(saved, "%s/.metadata", place);
    if (!close_first(place))
        return error_set(error, "cannot move %s/ust: %s", place, strerror(errno));
    while ((count = list_rests(place, rests)) > 0) {
        for (size_t i = 0; i < count; i++) {
            char from[PATH_ROOM], to[PATH_ROOM];
            bool has_failed = false;

            path_set(from, "%s/%s", place, rests[i].name);
            new_name(archives, to);
            (void)tree_files(from, cut_stream, &has_failed);
            (void)tree_files(from, complete_metadata,
                             &(struct completing){from, shm, saved, archives});
            remove_empty(from);
            if (has_failed || !tree_put(from, to))
                return error_set(error, "cannot move %s to %s: %s", from, to, strerror(errno));
        }
    }
    return true;
}

/* ---- buffers --------------------------------------------------------------------------------- */

struct copying {
    const char *from; /* what is copied is below it */
    const char *to;
    bool has_failed;
};

static bool copy_metadata(void *context, const char *folder, const char *name)
{
    struct copying *copying = context;
    char from[PATH_ROOM], to[PATH_ROOM], part[PATH_ROOM];

    if (strcmp(name, "metadata") != 0)
        return true;
    path_set(part, "%s/%s.part", copying->to, folder + strlen(copying->from));
    path_set(to, "%s/%s", copying->to, folder + strlen(copying->from));
    path_set(from, "%s/metadata", folder);
    if (access(to, F_OK) == 0)
        return true;
    if (!folder_make(part) || (path_set(to, "%s/metadata", part), !file_copy(from, to)))
        copying->has_failed = true;
    path_set(to, "%s/%s", copying->to, folder + strlen(copying->from));
    if (!copying->has_failed && !tree_put(part, to))
        copying->has_failed = true;
    return !copying->has_failed;
}

bool bury_prepare(const struct store *store, const char *place, struct error *error)
{
    char shm[PATH_ROOM], to[PATH_ROOM];
    struct copying copying = {shm, to, false};

    path_set(shm, "%s/%s", store->shm, place);
    path_set(to, "%s/%s/.metadata", store->output, place);
    if (store->shm[0] == '\0' || access(shm, F_OK) != 0)
        return true;
    (void)tree_files(shm, copy_metadata, &copying);
    if (copying.has_failed)
        error_set(error, "cannot copy metadata from %s to %s: %s", shm, to, strerror(errno));
    return !copying.has_failed;
}

struct lacking {
    const char *shm;      /* of the place */
    const char *place;    /* below OUTPUT */
    const char *archives; /* below that */
    size_t missing;
};

/* Of a program that has ended LTTng may have removed it, and left the buffers. */
static bool supply_metadata(void *context, const char *folder, const char *name)
{
    struct lacking *lacking = context;
    const char *below = folder + strlen(lacking->shm);
    char to[PATH_ROOM], saved[PATH_ROOM];

    (void)name;
    path_set(to, "%s/metadata", folder);
    path_set(saved, "%s/.metadata", lacking->place);
    if (access(to, F_OK) != 0 && !metadata_from(saved, below, to) &&
        !metadata_of_chunks(lacking->archives, below, to)) {
        (void)unlink(to);
        lacking->missing++;
    }
    return true;
}

static int run_crash(const char *shm, const char *to)
{
    const pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        (void)alarm(CRASH_TIME_S);
        (void)execlp("lttng-crash", "lttng-crash", "-x", to, shm, (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static bool read_buffers(const struct store *store, const char *place, const char *archives,
                         struct error *error)
{
    char shm[PATH_ROOM], path[PATH_ROOM], part[PATH_ROOM], to[PATH_ROOM];
    struct lacking lacking = {shm, path, archives, 0};
    int status;

    path_set(shm, "%s/%s", store->shm, place);
    path_set(path, "%s/%s", store->output, place);
    path_set(part, "%s/.crash", path);
    if (store->shm[0] == '\0' || access(shm, F_OK) != 0)
        return true;
    (void)tree_files(shm, supply_metadata, &lacking);
    status = tree_remove(part) ? run_crash(shm, part) : -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(error, "cannot read the buffers in %s: %s", shm,
                         WIFEXITED(status) && WEXITSTATUS(status) == 127
                             ? "there is no lttng-crash: install lttng-tools"
                             : "lttng-crash has failed");
    new_name(archives, to);
    if (access(part, F_OK) == 0 && !tree_put(part, to)) { /* the only copy from now on */
        return error_set(error, "cannot move %s to %s: %s", part, to, strerror(errno));
    }
    if (lacking.missing)
        say(BK3013, "%zu buffers in %s are lost: LTTng has removed their metadata", lacking.missing,
            shm);
    return tree_remove(shm);
}

bool bury(const struct store *store, const char *place, struct error *error)
{
    char path[PATH_ROOM], archives[PATH_ROOM], saved[PATH_ROOM], shm[PATH_ROOM];

    path_set(shm, "%s/%s", store->shm, place);
    path_set(path, "%s/%s", store->output, place);
    path_set(archives, "%s/archives", path);
    path_set(saved, "%s/.metadata", path);
    if (mkdir(archives, 0700) != 0 && errno != EEXIST)
        return error_set(error, "cannot make %s: %s", archives, strerror(errno));
    return close_rests(path, shm, archives, error) && read_buffers(store, place, archives, error) &&
           tree_remove(saved);
}

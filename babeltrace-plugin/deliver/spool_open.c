/*
 * Opens and closes the spool: checks and locks the folder, and counts the records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spool_parts.h"

#include "babeltrace-plugin/base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* a full spool removes one file at a time, and 15/16 of its bytes stay */
#define SEGMENTS    16
#define SEGMENT_MIN (UINT64_C(64) << 10)
#define SEGMENT_MAX (UINT64_C(16) << 20)

static bool spool_fail_with(const struct spool *spool, struct error *error, const char *what)
{
    return error_set(error, "spool \"%s\": %s: %s", spool->options.folder, what, strerror(errno));
}

/* ---- found records --------------------------------------------------------------------------- */

/* Returns false with errno set if the file cannot be opened. */
static bool spool_scan_segment(struct spool *spool, struct segment *segment)
{
    uint64_t at = 0, where;
    struct record_head head;
    enum record_found found;

    if (!segment_open(&spool->segments, segment))
        return false;
    while ((found = record_next(segment->fd, &at, segment->size, &head, &where)) != RECORD_END) {
        if (found == RECORD_UNREADABLE || head.state == RECORD_DONE)
            continue;
        if (head.format != record_format(spool->options.format))
            spool->foreign += head.spans;
        segment->spans += head.spans;
        segment->newest_ms = head.written_ms;
        if (head.written_ms > spool->newest_ms)
            spool->newest_ms = head.written_ms;
    }
    spool->counts.found += segment->spans;
    close(segment->fd);
    segment->fd = -1;
    return true;
}

static bool spool_scan(struct spool *spool, struct error *error)
{
    for (struct segment *segment = spool->segments.first; segment; segment = segment->next) {
        if (!spool_scan_segment(spool, segment))
            return spool_fail_with(spool, error, "cannot be read");
    }
    spool->reading = spool->segments.first;
    spool->counts.spans = spool->counts.waiting = spool->counts.found;
    spool_set_route(spool);
    return true;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static bool spool_lock_folder(struct spool *spool, struct error *error)
{
    spool->lock_fd =
        openat(spool->segments.folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (spool->lock_fd < 0)
        return spool_fail_with(spool, error, "cannot be written");
    if (flock(spool->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (errno != EWOULDBLOCK)
        return spool_fail_with(spool, error, "cannot be locked");
    return error_set(error,
                     "spool \"%s\": another sink uses it: give each sink a folder of its own",
                     spool->options.folder);
}

/* Another user with write access could make us send foreign spans. */
static bool spool_folder_is_own(struct spool *spool, struct error *error)
{
    struct stat status;

    if (fstat(spool->segments.folder_fd, &status) != 0)
        return spool_fail_with(spool, error, "cannot be read");
    if (status.st_uid == geteuid() && !(status.st_mode & 022))
        return true;
    return error_set(error,
                     "spool \"%s\": expected a folder of the user who runs this, which nobody else "
                     "can write, but it belongs to user %u and has mode %o",
                     spool->options.folder, (unsigned)status.st_uid,
                     (unsigned)status.st_mode & 07777);
}

/* Stores the folder's own name on disk. */
static bool spool_sync_parent(const struct spool *spool)
{
    const int fd = openat(spool->segments.folder_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool is_synced = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return is_synced;
}

static bool spool_open_folder(struct spool *spool, struct error *error)
{
    const char *folder = spool->options.folder;
    bool is_new;

    if (folder[0] == '\0')
        return error_set(error, "spool: expected the path of a folder, got an empty text");
    is_new = mkdir(folder, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return spool_fail_with(spool, error, "cannot be made");
    spool->segments.folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (spool->segments.folder_fd < 0)
        return spool_fail_with(spool, error, "expected a folder");
    if (is_new && spool->options.fsync != SPOOL_FSYNC_NEVER && !spool_sync_parent(spool))
        return spool_fail_with(spool, error, "cannot be stored");
    if (!spool_folder_is_own(spool, error) || !spool_lock_folder(spool, error))
        return false;
    if (!segments_find(&spool->segments))
        return spool_fail_with(spool, error, "cannot be read");
    return true;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static uint64_t spool_segment_bytes(int64_t bytes)
{
    const uint64_t part = (uint64_t)bytes / SEGMENTS;

    if (part < SEGMENT_MIN)
        return SEGMENT_MIN;
    return part < SEGMENT_MAX ? part : SEGMENT_MAX;
}

struct spool *spool_open(const struct spool_options *options, struct span_queue *queue,
                         struct error *error)
{
    struct spool *spool = calloc(1, sizeof(*spool));
    char *folder = spool ? strdup(options->folder) : NULL;

    if (!folder) {
        error_set(error, "spool: out of memory");
        free(spool);
        return NULL;
    }
    *spool = (struct spool){
        .options = *options,
        .queue = queue,
        .segment_bytes = spool_segment_bytes(options->bytes),
        .lock_fd = -1,
        .segments = {.folder_fd = -1},
        .counts = {.in_use = 1},
        .sync_due_ms = CLOCK_NEVER,
    };
    spool->options.folder = folder;
    pthread_mutex_init(&spool->append_lock, NULL);
    pthread_mutex_init(&spool->lock, NULL);
    condition_init(&spool->changed);
    if (!spool_open_folder(spool, error) || !spool_scan(spool, error)) {
        spool_free(spool);
        return NULL;
    }
    spool->time_offset_ms = spool_time_offset_ms(spool->lock_fd, spool->newest_ms);
    if (spool->foreign) {
        error_set(error,
                  "spool \"%s\": holds %" PRIu64 " spans in another format than \"%s\": send them "
                  "with that format first, or use another folder",
                  options->folder, spool->foreign, protocol_of(options->format, NULL)->name);
        spool_free(spool);
        return NULL;
    }
    return spool;
}

void spool_free(struct spool *spool)
{
    if (!spool)
        return;
    pthread_mutex_lock(&spool->lock);
    (void)segments_reap(&spool->segments, &spool->lock);
    pthread_mutex_unlock(&spool->lock);
    segments_free(&spool->segments);
    if (spool->lock_fd >= 0)
        close(spool->lock_fd); /* closing unlocks the file */
    if (spool->segments.folder_fd >= 0)
        close(spool->segments.folder_fd);
    pthread_cond_destroy(&spool->changed);
    pthread_mutex_destroy(&spool->lock);
    pthread_mutex_destroy(&spool->append_lock);
    free((char *)(uintptr_t)spool->options.folder);
    free(spool);
}

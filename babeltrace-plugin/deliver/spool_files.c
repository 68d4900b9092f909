/*
 * The spool's folder and its files: segments, set-up.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spool_parts.h"

#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/thread.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/file.h>

/* A full spool of 1 MiB or more removes one file at a time: at most 1/16 of its bytes, and one
 * record more. */
#define SEGMENTS    16
#define SEGMENT_MIN (UINT64_C(64) << 10)
#define SEGMENT_MAX (UINT64_C(16) << 20)

/* ---- segments -------------------------------------------------------------------------------- */

struct segment *spool_next(const struct spool *spool, const struct segment *segment)
{
    struct cds_list_head *next = segment ? segment->in_list.next : spool->segments.next;

    return next == &spool->segments ? NULL : cds_list_entry(next, struct segment, in_list);
}

struct segment *spool_add_segment(struct spool *spool, const char *name)
{
    struct segment *segment = calloc(1, sizeof(*segment));
    struct cds_list_head *before = spool->segments.prev;

    if (!segment)
        return NULL;
    segment->fd = -1;
    (void)snprintf(segment->name, sizeof(segment->name), "%s", name);
    while (before != &spool->segments &&
           strcmp(cds_list_entry(before, struct segment, in_list)->name, name) > 0)
        before = before->prev;
    cds_list_add(&segment->in_list, before);
    return segment;
}

bool segment_open(const struct spool *spool, struct segment *segment, int flags)
{
    if (segment->fd < 0)
        segment->fd =
            openat(spool->folder_fd, segment->name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    return segment->fd >= 0;
}

static void segment_free(struct segment *segment)
{
    if (segment->fd >= 0)
        close(segment->fd);
    free(segment);
}

bool spool_reap(struct spool *spool)
{
    const bool has_any = !cds_list_empty(&spool->removed);

    while (!cds_list_empty(&spool->removed)) {
        struct segment *segment = cds_list_first_entry(&spool->removed, struct segment, in_list);
        const struct segment before = *segment; /* the last user may free the segment meanwhile */

        cds_list_del(&segment->in_list);
        segment->is_unlinked = true;
        segment->users--;
        pthread_mutex_unlock(&spool->lock);
        if (!before.is_unlinked)
            (void)unlinkat(spool->folder_fd, before.name, 0);
        if (before.users == 1)
            segment_free(segment);
        pthread_mutex_lock(&spool->lock);
    }
    return has_any;
}

void spool_unlock(struct spool *spool)
{
    (void)spool_reap(spool);
    pthread_mutex_unlock(&spool->lock);
}

/* Gives the segment to spool_reap(), which becomes one of its users. */
static void spool_give_to_reap(struct spool *spool, struct segment *segment)
{
    segment->users++;
    cds_list_add_tail(&segment->in_list, &spool->removed);
}

void spool_remove_segment(struct spool *spool, struct segment *segment)
{
    if (spool->writing == segment)
        spool->writing = NULL;
    if (spool->reading == segment)
        spool->reading = spool_next(spool, segment);
    cds_list_del(&segment->in_list);
    spool->bytes -= segment->size;
    segment->is_removed = true;
    spool_give_to_reap(spool, segment);
}

bool spool_is_used_up(const struct spool *spool, const struct segment *segment)
{
    return segment->read_at >= segment->size && segment->users == 0 && !segment->is_left &&
           segment != spool->reading;
}

/* Closes the file if no thread uses it: a spool may have many files. */
static void spool_close_idle(const struct spool *spool, struct segment *segment)
{
    if (segment == spool->reading || segment == spool->writing || segment->users ||
        segment->is_dirty || segment->fd < 0)
        return;
    close(segment->fd);
    segment->fd = -1;
}

void spool_release_segment(struct spool *spool, struct segment *segment)
{
    segment->users--;
    if (segment->is_removed) {
        if (segment->users == 0)
            spool_give_to_reap(spool, segment);
        return;
    }
    if (spool->counts.waiting == 0 && segment == spool->writing && segment == spool->reading &&
        segment->read_at >= segment->size)
        spool->reading = NULL; /* an empty spool has no file */
    if (spool_is_used_up(spool, segment))
        spool_remove_segment(spool, segment);
    else
        spool_close_idle(spool, segment);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static bool spool_fail_with(const struct spool *spool, struct error *error, const char *what)
{
    return error_set(error, "spool \"%s\": %s: %s", spool->options.folder, what, strerror(errno));
}

/* Adds the segment of a file; does nothing for a file that is no segment. Returns false with errno
 * set. */
static bool spool_scan_file(struct spool *spool, const char *name)
{
    struct segment *segment;
    struct record_head head;
    enum record_found found;
    struct stat status;
    uint64_t at = 0, where;

    if (strspn(name, "0123456789abcdef") != SEGMENT_DIGITS ||
        strcmp(name + SEGMENT_DIGITS, SEGMENT_SUFFIX) != 0)
        return true;
    if (fstatat(spool->folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT;
    if (!S_ISREG(status.st_mode))
        return true;
    segment = spool_add_segment(spool, name);
    if (!segment || !segment_open(spool, segment, 0))
        return false;
    spool->bytes += segment->size = (uint64_t)status.st_size;
    if (strtoull(name, NULL, 16) >= spool->next_number)
        spool->next_number = strtoull(name, NULL, 16) + 1;
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
    spool_close_idle(spool, segment);
    return true;
}

/* Finds the segments, and counts their records. */
static bool spool_scan(struct spool *spool, struct error *error)
{
    DIR *folder = opendir(spool->options.folder);
    const struct dirent *entry = NULL;
    bool has_worked = folder != NULL;

    while (has_worked) {
        errno = 0;
        entry = readdir(folder);
        if (!entry)
            break;
        has_worked = spool_scan_file(spool, entry->d_name);
    }
    if (!has_worked || (!entry && errno))
        has_worked = spool_fail_with(spool, error, "cannot be read");
    if (folder)
        (void)closedir(folder);
    spool->reading = spool_next(spool, NULL);
    spool->counts.spans = spool->counts.waiting = spool->counts.found;
    spool_set_route(spool);
    return has_worked;
}

static bool spool_lock_folder(struct spool *spool, struct error *error)
{
    spool->lock_fd =
        openat(spool->folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
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

    if (fstat(spool->folder_fd, &status) != 0)
        return spool_fail_with(spool, error, "cannot be read");
    if (status.st_uid == geteuid() && !(status.st_mode & 022))
        return true;
    return error_set(error,
                     "spool \"%s\": expected a folder of the user who runs this, which nobody else "
                     "can write, but it belongs to user %u and has mode %o",
                     spool->options.folder, (unsigned)status.st_uid,
                     (unsigned)status.st_mode & 07777);
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
    spool->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (spool->folder_fd < 0)
        return spool_fail_with(spool, error, "expected a folder");
    if (is_new && spool->options.fsync != SPOOL_FSYNC_NEVER && !file_store_name(folder))
        return spool_fail_with(spool, error, "cannot be stored");
    return spool_folder_is_own(spool, error) && spool_lock_folder(spool, error);
}

struct spool *spool_open(const struct spool_options *options, struct span_queue *queue,
                         struct error *error)
{
    const uint64_t part = (uint64_t)options->bytes / SEGMENTS;
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
        .segment_bytes = part < SEGMENT_MIN   ? SEGMENT_MIN
                         : part < SEGMENT_MAX ? part
                                              : SEGMENT_MAX,
        .folder_fd = -1,
        .lock_fd = -1,
        .counts = {.in_use = 1},
        .sync_due_ms = CLOCK_NEVER,
    };
    spool->options.folder = folder;
    CDS_INIT_LIST_HEAD(&spool->segments);
    CDS_INIT_LIST_HEAD(&spool->removed);
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
    struct segment *segment, *next;

    if (!spool)
        return;
    pthread_mutex_lock(&spool->lock);
    spool_unlock(spool);
    cds_list_for_each_entry_safe(segment, next, &spool->segments, in_list) segment_free(segment);
    if (spool->lock_fd >= 0)
        close(spool->lock_fd); /* closing unlocks the file */
    if (spool->folder_fd >= 0)
        close(spool->folder_fd);
    pthread_cond_destroy(&spool->changed);
    pthread_mutex_destroy(&spool->lock);
    pthread_mutex_destroy(&spool->append_lock);
    free((char *)(uintptr_t)spool->options.folder);
    free(spool);
}

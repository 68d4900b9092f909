/*
 * The files of a spool.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spool_segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS 16
#define SUFFIX ".spool"
#define NAME   (DIGITS + sizeof(SUFFIX))

static void segment_set_name(char name[NAME], uint64_t number)
{
    (void)snprintf(name, NAME, "%0*" PRIx64 SUFFIX, DIGITS, number);
}

/* Returns false if the name is of another file. */
static bool segment_number(const char *name, uint64_t *number)
{
    char again[NAME];

    *number = strtoull(name, NULL, 16);
    segment_set_name(again, *number);
    return strcmp(again, name) == 0;
}

static bool segments_fail(int cause)
{
    errno = cause;
    return false;
}

/* Keeps the list sorted by number. */
static void segments_insert(struct segments *segments, struct segment *segment)
{
    struct segment **link = &segments->first;

    if (segments->last && segments->last->number < segment->number)
        link = &segments->last->next; /* as nearly always */
    while (*link && (*link)->number < segment->number)
        link = &(*link)->next;
    segment->next = *link;
    *link = segment;
    if (!segment->next)
        segments->last = segment;
}

static bool segments_add_found(struct segments *segments, const char *name, uint64_t number)
{
    struct segment *segment;
    struct stat status;

    if (fstatat(segments->folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT;
    if (!S_ISREG(status.st_mode))
        return true;
    segment = calloc(1, sizeof(*segment));
    if (!segment)
        return segments_fail(ENOMEM);
    segment->fd = -1;
    segment->number = number;
    segment->size = (uint64_t)status.st_size;
    segments->bytes += segment->size;
    segments_insert(segments, segment);
    if (number >= segments->next_number)
        segments->next_number = number + 1;
    return true;
}

bool segments_find(struct segments *segments)
{
    const int fd = openat(segments->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    bool done = true;
    uint64_t number;

    if (!folder) {
        const int cause = errno;

        if (fd >= 0)
            close(fd);
        return segments_fail(cause);
    }
    errno = 0;
    while (done && (entry = readdir(folder)))
        done = !segment_number(entry->d_name, &number) ||
               segments_add_found(segments, entry->d_name, number);
    if (done && errno)
        done = false;
    number = (uint64_t)errno;
    closedir(folder);
    errno = (int)number;
    return done;
}

struct segment *segments_add(struct segments *segments)
{
    struct segment *segment = calloc(1, sizeof(*segment));
    char name[NAME];

    if (!segment) {
        errno = ENOMEM;
        return NULL;
    }
    segment->number = segments->next_number;
    segment_set_name(name, segment->number);
    segment->fd =
        openat(segments->folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (segment->fd < 0) {
        const int cause = errno;

        free(segment);
        errno = cause;
        return NULL;
    }
    segments->next_number++;
    segment->is_own = true;
    segments_insert(segments, segment);
    return segment;
}

bool segment_name(const struct segments *segments, struct segment *segment)
{
    segment->is_named = segment->is_named || fsync(segments->folder_fd) == 0;
    return segment->is_named;
}

bool segment_open(const struct segments *segments, struct segment *segment)
{
    char name[NAME];

    if (segment->fd >= 0)
        return true;
    segment_set_name(name, segment->number);
    segment->fd = openat(segments->folder_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return segment->fd >= 0;
}

void segment_free(struct segment *segment)
{
    if (segment->fd >= 0)
        close(segment->fd);
    free(segment);
}

void segments_remove(struct segments *segments, struct segment *segment)
{
    struct segment **link = &segments->first;
    struct segment *before = NULL;

    while (*link != segment) {
        before = *link;
        link = &before->next;
    }
    *link = segment->next;
    if (segments->last == segment)
        segments->last = before;
    segments->bytes -= segment->size;
    segment->is_removed = true;
    segments_forget(segments, segment);
}

void segments_forget(struct segments *segments, struct segment *segment)
{
    segment->in_flight++;
    segment->next = segments->removed;
    segments->removed = segment;
}

struct segment *segments_begin_reap(struct segments *segments)
{
    struct segment *segment = segments->removed;

    if (segment)
        segments->removed = segment->next;
    return segment;
}

void segment_unlink(const struct segments *segments, struct segment *segment)
{
    char name[NAME];

    if (segment->is_unlinked)
        return;
    segment_set_name(name, segment->number);
    (void)unlinkat(segments->folder_fd, name, 0);
    segment->is_unlinked = true;
}

bool segments_end_reap(struct segment *segment)
{
    return --segment->in_flight == 0;
}

void segments_free(struct segments *segments)
{
    while (segments->first) {
        struct segment *next = segments->first->next;

        segment_free(segments->first);
        segments->first = next;
    }
    segments->last = NULL;
}

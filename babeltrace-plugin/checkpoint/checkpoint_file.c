/*
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "checkpoint_file.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/read_at.h"
#include "babeltrace-plugin/base/store_name.h"
#include "babeltrace-plugin/base/text.h"
#include "babeltrace-plugin/base/write_all.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define VERSION  5
#define SLOT_AT  512
#define SLOTS    2
#define STATE_AT 1536

static const char magic[] = "blkin checkpoint";

/* All numbers little-endian. The last member of each is the CRC of what is before it. */
struct head {
    char magic[16];
    uint32_t version;
    uint32_t kind;
    uint64_t state_length;
    uint64_t written_ns;
    uint32_t state_crc;
    uint32_t crc;
};

struct slot {
    uint64_t serial; /* 0: never written */
    uint64_t settled;
    uint64_t digest;
    uint32_t phase;
    uint32_t length; /* of the name */
    char trace[CHECKPOINT_NAME_MAX + 1];
    uint32_t reserved;
    uint32_t crc;
};

_Static_assert(sizeof(struct head) == 48 && sizeof(struct slot) == 296 &&
                   sizeof(struct slot) <= (STATE_AT - SLOT_AT) / SLOTS,
               "what is in the file has no padding");

static uint32_t crc_of(uint32_t crc, const void *data, size_t length)
{
    return (uint32_t)crc32_z(crc, data, length);
}

/* Of a struct without its last member. */
#define CRC_OF(thing) htole32(crc_of(0, &(thing), offsetof(__typeof__(thing), crc)))

static bool checkpoint_file_error(struct error *error, const struct checkpoint_file *file,
                                  const char *what)
{
    return error_set(error, "checkpoint \"%s\": %s: %s", file->path, what, strerror(errno));
}

/* ---- reading --------------------------------------------------------------------------------- */

static void use_slot(struct checkpoint_file *file, const struct slot *slot)
{
    struct progress *progress = &file->progress;
    const uint32_t length = le32toh(slot->length), phase = le32toh(slot->phase);

    if (slot->crc != CRC_OF(*slot) || le64toh(slot->serial) <= file->serial ||
        length > CHECKPOINT_NAME_MAX || phase > PROGRESS_DONE)
        return;
    file->serial = le64toh(slot->serial);
    progress->phase = (enum progress_phase)phase;
    memcpy(progress->trace, slot->trace, length);
    progress->trace[length] = '\0';
    progress->settled = le64toh(slot->settled);
    progress->digest = le64toh(slot->digest);
}

static enum checkpoint_found damaged(const struct checkpoint_file *file, const char *what,
                                     struct error *error)
{
    error_set(error, "checkpoint \"%s\" is damaged: %s", file->path, what);
    return CHECKPOINT_DAMAGED;
}

static enum checkpoint_found read_slots(struct checkpoint_file *file, struct error *error)
{
    struct slot slot;

    for (int i = 0; i < SLOTS; i++) {
        if (read_at(file->fd, &slot, sizeof(slot), SLOT_AT + i * SLOT_AT) == sizeof(slot))
            use_slot(file, &slot);
    }
    return file->serial ? CHECKPOINT_FOUND : damaged(file, "it has no valid progress", error);
}

static enum checkpoint_found read_state(struct checkpoint_file *file, const struct head *head,
                                        uint64_t size, struct error *error)
{
    const uint64_t length = le64toh(head->state_length);

    if (size < STATE_AT || length != size - STATE_AT)
        return damaged(file, "its length is not the one in its head", error);
    file->state = malloc(length ? length : 1);
    if (!file->state) {
        error_set(error, "checkpoint \"%s\": cannot be read: out of memory", file->path);
        return CHECKPOINT_ERROR;
    }
    if (read_at(file->fd, file->state, length, STATE_AT) < length) {
        (void)checkpoint_file_error(error, file, "cannot be read");
        return CHECKPOINT_ERROR;
    }
    file->state_length = length;
    file->written_ns = (int64_t)le64toh(head->written_ns);
    if (crc_of(0, file->state, length) != le32toh(head->state_crc))
        return damaged(file, "its checksum is wrong", error);
    return read_slots(file, error);
}

static const char *const kind_names[] = {
    [CHECKPOINT_TRACES] = "recorded traces (checkpoint-trace is given)",
    [CHECKPOINT_LIVE] = "a live session (no checkpoint-trace is given)",
};

/* What is no checkpoint at all is somebody's, and stays as it is. */
static enum checkpoint_found read_head(struct checkpoint_file *file, uint64_t size,
                                       struct error *error)
{
    struct head head = {.version = 0};

    if (size == 0)
        return damaged(file, "it is empty", error);
    if (read_at(file->fd, &head, sizeof(head), 0) < (size < sizeof(head) ? size : sizeof(head))) {
        (void)checkpoint_file_error(error, file, "cannot be read");
        return CHECKPOINT_ERROR;
    }
    if (memcmp(head.magic, magic, size < sizeof(head.magic) ? size : sizeof(head.magic)) != 0) {
        error_set(error,
                  "checkpoint \"%s\": exists and is no checkpoint, and is not replaced: choose "
                  "another name",
                  file->path);
        return CHECKPOINT_ERROR;
    }
    if (size < sizeof(head) || head.crc != CRC_OF(head))
        return damaged(file, "its head is not whole", error);
    if (le32toh(head.version) != VERSION) {
        error_set(error,
                  "checkpoint \"%s\": expected version %d, got %" PRIu32
                  ": send its open spans with the release that wrote it (checkpoint-flush=yes), or "
                  "remove it, which loses them",
                  file->path, VERSION, le32toh(head.version));
        return CHECKPOINT_ERROR;
    }
    if (le32toh(head.kind) != file->kind) {
        error_set(error, "checkpoint \"%s\": expected one of %s, got one of %s", file->path,
                  kind_names[file->kind],
                  kind_names[file->kind == CHECKPOINT_LIVE ? CHECKPOINT_TRACES : CHECKPOINT_LIVE]);
        return CHECKPOINT_ERROR;
    }
    return read_state(file, &head, size, error);
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool checkpoint_file_is_at(int fd, const char *path)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

static void set_taken(struct error *error, const struct checkpoint_file *file)
{
    error_set(error,
              "checkpoint \"%s\": another sink uses it: give each sink a file of its own, or wait "
              "until the other one ends",
              file->path);
}

/*
 * Returns a descriptor, or -1 with error set, or -1 without if there is no such file. A file that
 * is written anew takes the name of the one before: what counts is the one that has the name still.
 */
static int open_locked(const struct checkpoint_file *file, const char *path, int flags,
                       struct error *error)
{
    error->text[0] = '\0';
    for (;;) {
        const int fd = open(path, flags | O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);

        if (fd < 0) {
            if (errno != ENOENT || flags & O_CREAT)
                (void)checkpoint_file_error(error, file, "cannot be opened");
            return -1;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            set_taken(error, file);
            close(fd);
            return -1;
        }
        if (checkpoint_file_is_at(fd, path))
            return fd;
        close(fd);
    }
}

static bool checkpoint_file_set_paths(struct checkpoint_file *file, const char *path)
{
    file->path = strdup(path);
    file->temporary = string_joined(path, ".new");
    return file->path && file->temporary;
}

enum checkpoint_found checkpoint_file_open(struct checkpoint_file *file, const char *path,
                                           enum checkpoint_kind kind, struct error *error)
{
    struct stat status;

    *file = (struct checkpoint_file){.fd = -1, .kind = kind};
    if (!checkpoint_file_set_paths(file, path)) {
        error_set(error, "checkpoint \"%s\": out of memory", path);
        return CHECKPOINT_ERROR;
    }
    if (path[0] == '\0') {
        error_set(error, "checkpoint: expected the path of a file, got an empty text");
        return CHECKPOINT_ERROR;
    }
    file->fd = open_locked(file, path, 0, error);
    if (file->fd < 0)
        return error->text[0] ? CHECKPOINT_ERROR : CHECKPOINT_NONE;
    if (fstat(file->fd, &status) < 0 || !S_ISREG(status.st_mode)) {
        error_set(error, "checkpoint \"%s\": expected a regular file", path);
        return CHECKPOINT_ERROR;
    }
    return read_head(file, (uint64_t)status.st_size, error);
}

void checkpoint_file_forget(struct checkpoint_file *file)
{
    free(file->state);
    file->state = NULL;
    file->state_length = 0;
}

void checkpoint_file_close(struct checkpoint_file *file)
{
    checkpoint_file_forget(file);
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file->temporary);
    file->fd = -1;
    file->path = file->temporary = NULL;
}

char *checkpoint_file_put_aside(struct checkpoint_file *file, struct error *error)
{
    char *aside = string_joined(file->path, ".damaged");

    if (!aside)
        return error_null(error, "checkpoint \"%s\": out of memory", file->path);
    if (rename(file->path, aside) < 0) {
        (void)checkpoint_file_error(error, file, "is damaged, and cannot be put aside");
        free(aside);
        return NULL;
    }
    checkpoint_file_forget(file);
    close(file->fd);
    file->fd = -1;
    file->serial = 0;
    file->progress = (struct progress){.phase = PROGRESS_NONE};
    return aside;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A state on its way into the file. */
struct output {
    int fd;
    uint64_t at;
    uint32_t crc;
    size_t length;
    char data[65536];
};

static bool write_out(struct output *output)
{
    const bool is_written = write_all_at(output->fd, output->data, output->length, output->at);

    output->crc = crc_of(output->crc, output->data, output->length);
    output->at += output->length;
    output->length = 0;
    return is_written;
}

static bool output_put(void *context, const void *data, size_t length)
{
    struct output *output = context;
    const char *from = data;

    while (length) {
        const size_t room = sizeof(output->data) - output->length;
        const size_t part = length < room ? length : room;

        memcpy(output->data + output->length, from, part);
        output->length += part;
        from += part;
        length -= part;
        if (part == room && !write_out(output))
            return false;
    }
    return true;
}

static bool write_state(struct output *output, checkpoint_save_fn *save, void *context)
{
    struct state state = {.write = output_put, .context = output};

    save(context, &state);
    return !state.has_failed && write_out(output);
}

static bool write_head(const struct checkpoint_file *file, const struct output *output)
{
    struct head head = {
        .version = htole32(VERSION),
        .kind = htole32(file->kind),
        .state_length = htole64(output->at - STATE_AT),
        .state_crc = htole32(output->crc),
        .written_ns = htole64((uint64_t)wall_clock_ns()),
    };

    memcpy(head.magic, magic, sizeof(head.magic));
    head.crc = CRC_OF(head);
    return write_all_at(output->fd, &head, sizeof(head), 0);
}

static bool write_slot(int fd, uint64_t serial, const struct progress *progress)
{
    const size_t length = strlen(progress->trace);
    struct slot slot = {
        .serial = htole64(serial),
        .settled = htole64(progress->settled),
        .digest = htole64(progress->digest),
        .phase = htole32(progress->phase),
        .length = htole32((uint32_t)length),
    };

    memcpy(slot.trace, progress->trace, length);
    slot.crc = CRC_OF(slot);
    return write_all_at(fd, &slot, sizeof(slot), SLOT_AT + serial % SLOTS * SLOT_AT);
}

static bool write_file(struct checkpoint_file *file, int fd, const struct progress *progress,
                       checkpoint_save_fn *save, void *context)
{
    struct output *output = malloc(sizeof(*output));
    bool is_written;

    if (!output) {
        errno = ENOMEM;
        return false;
    }
    output->fd = fd;
    output->at = STATE_AT;
    output->crc = 0;
    output->length = 0;
    is_written = ftruncate(fd, 0) == 0 && write_state(output, save, context) &&
                 write_head(file, output) && write_slot(fd, file->serial + 1, progress) &&
                 (file->kind == CHECKPOINT_LIVE || fsync(fd) == 0);
    free(output);
    return is_written;
}

/* Nothing is replaced but what was opened. */
static bool is_ours_to_replace(const struct checkpoint_file *file)
{
    struct stat status;

    return file->fd >= 0 ? checkpoint_file_is_at(file->fd, file->path)
                         : lstat(file->path, &status) < 0;
}

bool checkpoint_file_write(struct checkpoint_file *file, const struct progress *progress,
                           checkpoint_save_fn *save, void *context, struct error *error)
{
    const int fd = open_locked(file, file->temporary, O_CREAT, error);

    if (fd < 0)
        return false;
    if (!is_ours_to_replace(file)) {
        set_taken(error, file);
        close(fd);
        return false;
    }
    if (!write_file(file, fd, progress, save, context) || rename(file->temporary, file->path) < 0) {
        (void)checkpoint_file_error(error, file, "cannot be written");
        (void)unlink(file->temporary);
        close(fd);
        return false;
    }
    if (file->fd >= 0)
        close(file->fd);
    file->fd = fd;
    file->serial++;
    file->progress = *progress;
    return file->kind == CHECKPOINT_LIVE || store_name(file->path) ||
           checkpoint_file_error(error, file, "cannot be stored");
}

bool checkpoint_file_note(struct checkpoint_file *file, const struct progress *progress,
                          bool is_to_be_stored)
{
    if (!write_slot(file->fd, file->serial + 1, progress))
        return false;
    file->serial++;
    file->progress = *progress;
    return !is_to_be_stored || fdatasync(file->fd) == 0;
}

/*
 * Dumps rings without the help of the agent, which may hang. The command opens the files in
 * /proc/PID/fd of the agent or of the fdserver. The command needs the rights of the process's user
 * or of root.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "dump_rings.h"

#include "babeltrace-plugin/base/file.h"
#include "tools/base/control.h"
#include "tools/rings/dump.h"
#include "tools/rings/ring_event.h"
#include "tools/rings/fdserver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DUMP_MEMORIES_MAX 4096
#define DUMP_NAME         "/memfd:" MEMORY_NAME

struct dump_list {
    struct memory memories[DUMP_MEMORIES_MAX];
    struct dump_memory list[DUMP_MEMORIES_MAX];
    ino_t inodes[DUMP_MEMORIES_MAX]; /* of all memories, also of those that are left out */
    unsigned count, seen;            /* lengths of `list` and of `inodes` */
    unsigned left_out;               /* number of memories left out, each with a message */
};

static void dump_leave_out(struct dump_list *list, const char *link, uint32_t user, const char *why)
{
    (void)fprintf(stderr, "blkin agent: left out: %s, rings of user %" PRIu32 ": %s\n", link, user,
                  why);
    list->left_out++;
}

/* Returns false if the memory was seen already, as the agent may have several descriptors of it.
 * Also returns false if the memory has no seals: then no program has the memory yet. */
static bool dump_is_new(const struct dump_list *list, int fd, struct stat *status)
{
    unsigned i = 0;

    if (fcntl(fd, F_GET_SEALS) <= 0 || fstat(fd, status) != 0)
        return false;
    while (i < list->seen && list->inodes[i] != status->st_ino)
        i++;
    return i == list->seen;
}

/* user: from the file's name, as programs may have overwritten the number in the memory. */
static void dump_add(struct dump_list *list, const char *link, uint32_t user)
{
    struct memory *memory = &list->memories[list->count];
    const int fd = open(link, O_RDWR | O_CLOEXEC);
    struct error error;
    struct stat status;

    if (fd < 0) {
        if (errno != ENOENT) /* ENOENT: removed in the meantime */
            dump_leave_out(list, link, user, strerror(errno));
    } else if (!dump_is_new(list, fd, &status)) {
        (void)close(fd);
    } else if (list->seen == DUMP_MEMORIES_MAX) {
        (void)close(fd);
        dump_leave_out(list, link, user, "there are too many memories");
    } else {
        list->inodes[list->seen++] = status.st_ino;
        if (memory_open(memory, fd, &error))
            list->list[list->count++] = (struct dump_memory){memory, user};
        else
            dump_leave_out(list, link, user, error.text);
    }
}

/* Returns false with error set. */
static bool dump_open_all(struct dump_list *list, int64_t pid, struct error *error)
{
    char folder[64], link[512], name[128];
    const struct dirent *entry;
    DIR *open_files;

    (void)snprintf(folder, sizeof(folder), "/proc/%" PRId64 "/fd", pid);
    open_files = opendir(folder);
    if (!open_files)
        return error_set(error, "cannot read the agent's rings (%s): %s: run this command as root",
                         folder, strerror(errno));
    while ((entry = readdir(open_files)) != NULL) {
        ssize_t length;

        (void)snprintf(link, sizeof(link), "%s/%.64s", folder, entry->d_name);
        length = readlink(link, name, sizeof(name) - 1);
        name[length > 0 ? length : 0] = '\0';
        if (strncmp(name, DUMP_NAME, strlen(DUMP_NAME)) == 0)
            dump_add(list, link, (uint32_t)strtoul(name + strlen(DUMP_NAME), NULL, 10));
    }
    (void)closedir(open_files);
    return true;
}

static bool dump_of_process(int64_t pid, const struct dump_options *options,
                            struct dump_counts *counts, unsigned *left_out, struct error *error)
{
    struct dump_list *list = calloc(1, sizeof(*list));
    bool is_well = list != NULL;

    if (!is_well)
        error_set(error, "out of memory");
    is_well = is_well && dump_open_all(list, pid, error) &&
              dump_memories(list->list, list->count, options, counts, error);
    *left_out = list ? list->left_out : 0;
    for (unsigned i = 0; list && i < list->count; i++)
        memory_close(&list->memories[i]);
    free(list);
    return is_well;
}

/* Returns the pid of an agent that does not answer, from its lock (control.c); 0: none runs. */
static int64_t dump_locked_pid(const char *folder)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[256];
    GUARD_FD int fd = -1;

    (void)snprintf(path, sizeof(path), "%s/agent.lock", folder);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

/* Returns the pid of the agent or of the fdserver; 0: neither runs. */
static int64_t dump_pid(const struct config *config)
{
    const char *folder = config_text(config, "runtime-dir");
    struct error ignored;
    json_t *status = control_ask(folder, "agent", "status", &ignored);
    int64_t pid = json_integer_value(json_object_get(status, "pid"));
    char fdserver[256];

    json_decref(status);
    (void)snprintf(fdserver, sizeof(fdserver), "%s/rings.fdserver", folder);
    if (pid <= 0)
        pid = fdserver_pid(fdserver);
    return pid > 0 ? pid : dump_locked_pid(folder); /* systemd keeps the rings */
}

int dump_rings(const struct config *config, const char *folder)
{
    const int64_t pid = dump_pid(config);
    char host[254] = "";
    const struct dump_options options = {folder, host, ring_clock_offset()};
    struct dump_counts counts = {.records = 0};
    unsigned left_out;
    struct error error = {"no agent runs, and no process keeps the rings of an agent"};

    (void)gethostname(host, sizeof(host) - 1);
    if (pid <= 0 || !dump_of_process(pid, &options, &counts, &left_out, &error)) {
        (void)fprintf(stderr, "blkin agent: %s\n", error.text);
        return 1;
    }
    printf("%s: %" PRIu64 " events of %u rings; left out: %" PRIu64
           " records; overwritten before: %" PRIu64 " bytes; damaged: %" PRIu64
           " bytes; not written by programs: %" PRIu64 " records\n",
           folder, counts.events, counts.streams, counts.left_out, counts.overwritten_bytes,
           counts.damaged_bytes, counts.not_written);
    return left_out != 0;
}

/*
 * The dump. Neither the recorder, which may hang, nor the process that keeps the rings of one that
 * was killed is asked for them: what it has open is opened once more, which needs its user's
 * rights, or root's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "dump_rings.h"

#include "tools/base/control.h"
#include "tools/base/say.h"
#include "tools/rings/dump.h"
#include "tools/rings/ring_event.h"
#include "tools/rings/vault.h"

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
#define DUMP_NAME         "/memfd:blkin-rings"

struct dump_list {
    struct memory memories[DUMP_MEMORIES_MAX];
    struct dump_memory list[DUMP_MEMORIES_MAX];
    ino_t inodes[DUMP_MEMORIES_MAX];
    unsigned count;
};

/* While a fetch runs, the recorder has two descriptors of each memory. */
static bool dump_has(const struct dump_list *list, ino_t inode)
{
    for (unsigned i = 0; i < list->count; i++) {
        if (list->inodes[i] == inode)
            return true;
    }
    return false;
}

static void dump_add(struct dump_list *list, int fd)
{
    struct memory *memory = &list->memories[list->count];
    struct ring_memory head;
    struct error ignored;
    struct stat status;

    if (fstat(fd, &status) != 0 || dump_has(list, status.st_ino)) {
        close(fd);
        return;
    }
    if (!memory_open(memory, fd, &ignored))
        return;
    memcpy(&head, memory->at, sizeof(head));
    list->inodes[list->count] = status.st_ino;
    list->list[list->count++] = (struct dump_memory){memory, head.user};
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
        return error_set(error, "cannot look at the recorder's rings (%s): %s: run it as root",
                         folder, strerror(errno));
    while ((entry = readdir(open_files)) != NULL && list->count < DUMP_MEMORIES_MAX) {
        ssize_t length;
        int fd;

        (void)snprintf(link, sizeof(link), "%s/%.64s", folder, entry->d_name);
        length = readlink(link, name, sizeof(name) - 1);
        name[length > 0 ? length : 0] = '\0';
        if (strncmp(name, DUMP_NAME, strlen(DUMP_NAME)) != 0)
            continue;
        fd = open(link, O_RDWR | O_CLOEXEC);
        if (fd >= 0)
            dump_add(list, fd);
    }
    (void)closedir(open_files);
    return true;
}

static bool dump_of_process(int64_t pid, const struct dump_options *options,
                            struct dump_counts *counts, struct error *error)
{
    struct dump_list *list = calloc(1, sizeof(*list));
    bool is_well = list != NULL;

    if (!is_well)
        error_set(error, "out of memory");
    is_well = is_well && dump_open_all(list, pid, error) &&
              dump_memories(list->list, list->count, options, counts, error);
    for (unsigned i = 0; list && i < list->count; i++)
        memory_close(&list->memories[i]);
    free(list);
    return is_well;
}

/* Of the recorder, or of who keeps its rings; 0: there is neither. */
static int64_t dump_pid(const struct config *config)
{
    const char *folder = config_text(config, "runtime-dir");
    struct error ignored;
    json_t *status = control_ask(folder, "record", "status", &ignored);
    const int64_t pid = json_integer_value(json_object_get(status, "pid"));
    char vault[256];

    json_decref(status);
    (void)snprintf(vault, sizeof(vault), "%s/rings.vault", folder);
    return pid > 0 ? pid : vault_pid(vault);
}

int dump_rings(const struct config *config, const char *folder)
{
    const int64_t pid = dump_pid(config);
    char host[254] = "";
    const struct dump_options options = {folder, host, ring_clock_offset()};
    struct dump_counts counts = {.records = 0};
    struct error error = {"no recorder answers, and no process keeps the rings of one"};

    (void)gethostname(host, sizeof(host) - 1);
    if (pid <= 0 || !dump_of_process(pid, &options, &counts, &error)) {
        (void)fprintf(stderr, "blkin record: %s\n", error.text);
        return 1;
    }
    printf("%s: %" PRIu64 " events of %u rings; left out: %" PRIu64
           " records; overwritten before: %" PRIu64 " bytes; damaged: %" PRIu64
           " bytes; not written by programs: %" PRIu64 " records\n",
           folder, counts.events, counts.streams, counts.left_out, counts.overwritten_bytes,
           counts.damaged_bytes, counts.not_written);
    return 0;
}

/*
 * Control groups, of version 2: their totals, and the processes of units.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "parts.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <unistd.h>

#define DEPTH_MAX   8
#define FOLDERS_MAX 8192 /* that are looked at; in a fake tree, links could make a circle */

enum {
    GROUP_CPU,
    GROUP_MEMORY,
    GROUP_PROCESSES,
    GROUP_IO,
    GROUP_CPU_PRESSURE,
    GROUP_IO_PRESSURE,
    GROUP_MEMORY_PRESSURE,
    GROUP_FILES
};

static const char *const group_files[GROUP_FILES] = {
    [GROUP_CPU] = "cpu.stat",
    [GROUP_MEMORY] = "memory.current",
    [GROUP_PROCESSES] = "pids.current",
    [GROUP_IO] = "io.stat",
    [GROUP_CPU_PRESSURE] = "cpu.pressure",
    [GROUP_IO_PRESSURE] = "io.pressure",
    [GROUP_MEMORY_PRESSURE] = "memory.pressure",
};

/* ---- values */

static void put_cpu(struct reading *reading)
{
    struct host *const host = reading->host;
    struct piece line;
    struct piece name;
    uint64_t us;

    while (lines_next(&host->lines, &line)) {
        size_t i;

        if (!piece_word(&line, &name))
            continue;
        if (PIECE_IS(name, "user_usec"))
            i = CGROUP_USER;
        else if (PIECE_IS(name, "system_usec"))
            i = CGROUP_SYSTEM;
        else if (PIECE_IS(name, "throttled_usec"))
            i = CGROUP_THROTTLED;
        else
            continue;
        if (piece_next_number(&line, &us))
            put_value(reading, i, times(us, NS_PER_US));
        else
            host->counts.not_understood++;
    }
}

static void put_number(struct reading *reading, size_t i)
{
    struct host *const host = reading->host;
    struct piece line;
    uint64_t value;

    if (!lines_next(&host->lines, &line))
        return;
    if (piece_next_number(&line, &value))
        put_value(reading, i, value);
    else
        host->counts.not_understood++;
}

/* "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0", of each device */
static void put_io(struct reading *reading)
{
    static const struct {
        const char *name;
        size_t i;
    } keys[] = {{"rbytes=", CGROUP_READ_BYTES},
                {"wbytes=", CGROUP_WRITTEN_BYTES},
                {"rios=", CGROUP_READS},
                {"wios=", CGROUP_WRITES}};
    struct host *const host = reading->host;
    struct piece line;
    struct piece word;
    uint64_t value;

    for (size_t key = 0; key < sizeof(keys) / sizeof(keys[0]); key++)
        put_value(reading, keys[key].i, 0);
    while (lines_next(&host->lines, &line)) {
        while (piece_word(&line, &word)) {
            for (size_t key = 0; key < sizeof(keys) / sizeof(keys[0]); key++) {
                const size_t length = strlen(keys[key].name);

                if (!piece_begins(word, keys[key].name, length))
                    continue;
                word.at += length;
                if (piece_number(word, &value))
                    reading->values[keys[key].i] += value;
                else
                    host->counts.not_understood++;
                break;
            }
        }
    }
}

static void put_file(struct reading *reading, int file)
{
    switch (file) {
    case GROUP_CPU:
        put_cpu(reading);
        break;
    case GROUP_MEMORY:
        put_number(reading, CGROUP_MEMORY);
        break;
    case GROUP_PROCESSES:
        put_number(reading, CGROUP_PROCESSES);
        break;
    case GROUP_IO:
        put_io(reading);
        break;
    default:
        read_pressure_lines(reading, CGROUP_PRESSURE + 2 * (size_t)(file - GROUP_CPU_PRESSURE));
    }
}

/* Returns false when the group is no more. */
static bool put_group(struct reading *reading, struct slot *slot)
{
    struct host *const host = reading->host;

    for (int file = 0; file < GROUP_FILES; file++) {
        if (slot->fds[file] < 0)
            continue;
        lines_begin(&host->lines, slot->fds[file], RECORD_WHOLE);
        put_file(reading, file);
        if (!host->lines.error)
            continue;
        if (file == GROUP_CPU) /* every group has it, as long as it is there */
            return false;
        close(slot->fds[file]); /* pressure that is switched off */
        slot->fds[file] = -1;
    }
    return true;
}

void read_cgroups(struct reading *reading)
{
    struct host *const host = reading->host;
    struct each each = each_of(host, HOST_CGROUP);

    for (struct slot *slot; (slot = each_next(host, &each));) {
        reading->monotonic = now_ns();
        if (put_group(reading, slot)) {
            give(reading, slot);
            continue;
        }
        reading->present = 0;
        slot_release(host, HOST_CGROUP, slot);
        host->has_ended = true;
    }
}

/* ---- which there are */

struct walk {
    struct host *host;
    size_t depth; /* of the folder that is looked at; the root's is 0 */
    size_t depth_max;
    size_t folders;
    bool is_in_unit;
    char path[HOST_NAME_BYTES];
};

static struct slot *slot_of_path(struct host *host, const char *path)
{
    struct each each = each_of(host, HOST_CGROUP);

    for (struct slot *slot; (slot = each_next(host, &each));)
        if (strcmp(slot->name, path) == 0)
            return slot;
    return NULL;
}

static void add_group(struct host *host, int folder, const char *path)
{
    struct slot *const slot =
        slot_of_path(host, path)
            ? NULL
            : slot_take(host, HOST_CGROUP, (struct piece){path, path + strlen(path)});

    if (!slot)
        return;
    for (int file = 0; file < GROUP_FILES; file++)
        slot->fds[file] = open_at(folder, group_files[file], false);
    if (slot->fds[GROUP_CPU] < 0)
        slot_release(host, HOST_CGROUP, slot);
}

static void add_processes(struct host *host, int folder)
{
    const int fd = open_at(folder, "cgroup.procs", false);
    uint32_t pids[256];
    size_t count = 0;
    struct piece line;
    uint64_t pid;

    if (fd < 0)
        return;
    lines_begin(&host->lines, fd, RECORD_ANY);
    while (count < sizeof(pids) / sizeof(pids[0]) && lines_next(&host->lines, &line))
        if (piece_next_number(&line, &pid) && pid > 0 && pid <= UINT32_MAX >> 2)
            pids[count++] = (uint32_t)pid;
    close(fd);
    for (size_t i = 0; i < count; i++) /* which uses the buffer of the lines */
        process_add(host, pids[i]);
}

static bool is_wanted(const struct host *host, const char *path, const char *name)
{
    const struct patterns *const patterns = &host->patterns[HOST_CGROUP];

    return host->period[HOST_CGROUP] != 0 &&
           ((patterns_have(patterns, PATTERN_NAME) &&
             patterns_match(patterns, PATTERN_NAME, path, FNM_PATHNAME)) ||
            (patterns_have(patterns, PATTERN_UNIT) &&
             patterns_match(patterns, PATTERN_UNIT, name, 0)));
}

static bool is_unit_of_processes(const struct host *host, const char *name)
{
    const struct patterns *const patterns = &host->patterns[HOST_PROCESS];

    return host->period[HOST_PROCESS] != 0 && patterns_have(patterns, PATTERN_UNIT) &&
           patterns_match(patterns, PATTERN_UNIT, name, 0);
}

static bool look_at(void *context, int parent, const char *name, unsigned char type)
{
    struct walk *const walk = context;
    const size_t length = strlen(walk->path);
    const bool was_in_unit = walk->is_in_unit;
    int folder;

    if (type != DT_DIR)
        return true;
    if (++walk->folders > FOLDERS_MAX)
        return false;
    if (length + 1 + strlen(name) >= sizeof(walk->path)) {
        walk->host->counts.no_room++;
        return true;
    }
    folder = open_at(parent, name, true);
    if (folder < 0)
        return true;
    (void)snprintf(walk->path + length, sizeof(walk->path) - length, "%s%s", length ? "/" : "",
                   name);
    walk->is_in_unit = was_in_unit || is_unit_of_processes(walk->host, name);
    if (is_wanted(walk->host, walk->path, name))
        add_group(walk->host, folder, walk->path);
    if (walk->is_in_unit)
        add_processes(walk->host, folder);
    if (++walk->depth < walk->depth_max)
        entries(folder, look_at, walk);
    walk->depth--;
    walk->is_in_unit = was_in_unit;
    walk->path[length] = '\0';
    close(folder);
    return true;
}

/* As deep as the patterns go. */
static size_t depth_of(const struct patterns *patterns)
{
    size_t depth = 0;

    for (size_t i = 0; i < patterns->count; i++) {
        const struct pattern *const pattern = &patterns->list[i];
        size_t own = 1;

        if (pattern->takes_away || pattern->kind == PATTERN_PID)
            continue;
        for (const char *at = pattern->text; pattern->kind == PATTERN_NAME && *at; at++)
            own += *at == '/';
        if (pattern->kind == PATTERN_UNIT)
            own = DEPTH_MAX;
        depth = own > depth ? own : depth;
    }
    return depth < DEPTH_MAX ? depth : DEPTH_MAX;
}

void find_cgroups(struct host *host)
{
    struct walk walk = {.host = host};

    if (host->cgroup < 0)
        return;
    if (host->period[HOST_CGROUP] != 0)
        walk.depth_max = depth_of(&host->patterns[HOST_CGROUP]);
    if (host->period[HOST_PROCESS] != 0 &&
        patterns_have(&host->patterns[HOST_PROCESS], PATTERN_UNIT))
        walk.depth_max = DEPTH_MAX;
    if (walk.depth_max > 0)
        entries(host->cgroup, look_at, &walk);
}

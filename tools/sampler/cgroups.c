/*
 * Control groups: finds the wanted groups, and reads their files. Also finds the processes of
 * units.
 *
 * In version 2, a group is one folder. Version 1 has a tree of folders for each controller, with
 * the same path in each. A host may have both, but a controller is in one version only. So a group
 * looks for each file at version 1's path, then at version 2's. In version 2, CPU time and pressure
 * need no controller.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sample_parts.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <unistd.h>

#define CGROUP_DEPTH_MAX 8
#define FOLDERS_MAX      8192 /* searched folders: a limit for huge trees */

enum group_file {
    GROUP_CPU,
    GROUP_THROTTLED,
    GROUP_MEMORY,
    GROUP_PROCESSES,
    GROUP_IO,
    GROUP_OPERATIONS,
    GROUP_CPU_PRESSURE,
    GROUP_IO_PRESSURE,
    GROUP_MEMORY_PRESSURE,
    GROUP_FILES
};
_Static_assert(GROUP_FILES <= SLOT_FILES, "a slot has room for all files of a group");

/* Folders below sys/fs/cgroup. On a host with both versions, version 2 is in "unified". */
static const char *const trees[CGROUP_TREES] = {
    [CGROUP_V2] = "unified",         [CGROUP_V1_CPU] = "cpu",   [CGROUP_V1_CPUACCT] = "cpuacct",
    [CGROUP_V1_MEMORY] = "memory",   [CGROUP_V1_PIDS] = "pids", [CGROUP_V1_BLKIO] = "blkio",
    [CGROUP_V1_SYSTEMD] = "systemd",
};

/* ---- values: the form of the lines tells the version */

static void put_times(struct group_reading *reading, size_t i)
{
    const uint64_t ns_per_tick = NS_PER_S / reading->host->ticks_per_s;
    const struct field fields[] = {
        FIELD("user_usec", CGROUP_USER, NS_PER_US),
        FIELD("system_usec", CGROUP_SYSTEM, NS_PER_US),
        FIELD("throttled_usec", CGROUP_THROTTLED, NS_PER_US),
        FIELD("user", CGROUP_USER, ns_per_tick),
        FIELD("system", CGROUP_SYSTEM, ns_per_tick),
        FIELD("throttled_time", CGROUP_THROTTLED, 1),
    };

    (void)i;
    read_named_fields(reading, FIELDS(fields));
}

static void put_number(struct group_reading *reading, size_t i)
{
    struct host_reader *const host = reading->host;
    struct text line;
    uint64_t value;

    if (!lines_next(&host->lines, &line))
        return;
    if (line_number(&line, &value))
        reading_put(reading, i, value);
    else
        host->counts.not_understood++;
}

static void add_value(struct group_reading *reading, size_t i, struct text number)
{
    uint64_t value;

    if (text_read_number(number, &value))
        reading_put(reading, i, (reading->present >> i & 1 ? reading->values[i] : 0) + value);
    else
        reading->host->counts.not_understood++;
}

/* Adds "rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0", the rest of a line after the device. */
static void add_io(struct group_reading *reading, struct text line)
{
    static const struct {
        const char *name;
        size_t i;
    } keys[] = {{"rbytes=", CGROUP_READ_BYTES},
                {"wbytes=", CGROUP_WRITTEN_BYTES},
                {"rios=", CGROUP_READS},
                {"wios=", CGROUP_WRITES}};
    struct text word;

    while (line_word(&line, &word)) {
        for (size_t key = 0; key < sizeof(keys) / sizeof(keys[0]); key++) {
            if (text_begins(word, keys[key].name))
                add_value(reading, keys[key].i, text_after(word, strlen(keys[key].name)));
        }
    }
}

/* Sums all devices. Without any I/O, a file of version 2 is empty: the sums are 0. A file of
 * version 1 has only "Total 0" without any I/O, and also if the kernel does not count: then the
 * sums are unknown. reads: the index of the value of "Read" lines of version 1. */
static void cgroup_put_io(struct group_reading *reading, size_t reads)
{
    struct host_reader *const host = reading->host;
    bool is_v1 = reads == CGROUP_READS; /* version 2 has one file for bytes and operations */
    struct text line;
    struct text device;

    while (lines_next(&host->lines, &line)) {
        struct text rest;
        struct text word;

        if (!line_word(&line, &device))
            continue;
        rest = line;
        if (!line_word(&rest, &word) || text_is(device, "Total")) {
            is_v1 = is_v1 || text_is(device, "Total");
        } else if (memchr(word.data, '=', word.length)) {
            add_io(reading, line);
        } else {
            const bool is_read = text_is(word, "Read"); /* "Read 1" or "Write 2" */

            is_v1 = true;
            if ((is_read || text_is(word, "Write")) && line_word(&rest, &word))
                add_value(reading, reads + !is_read, word);
        }
    }
    for (size_t i = CGROUP_READ_BYTES; i <= CGROUP_WRITES && !is_v1 && !host->lines.error; i++)
        if (!(reading->present >> i & 1))
            reading_put(reading, i, 0);
}

static const struct {
    const char *v2; /* NULL: none */
    enum cgroup_tree tree;
    const char *v1;
    void (*put)(struct group_reading *reading, size_t i);
    size_t i; /* the index of the first value */
} files[GROUP_FILES] = {
    [GROUP_CPU] = {"cpu.stat", CGROUP_V1_CPUACCT, "cpuacct.stat", put_times, 0},
    [GROUP_THROTTLED] = {NULL, CGROUP_V1_CPU, "cpu.stat", put_times, 0},
    [GROUP_MEMORY] = {"memory.current", CGROUP_V1_MEMORY, "memory.usage_in_bytes", put_number,
                      CGROUP_MEMORY},
    [GROUP_PROCESSES] = {"pids.current", CGROUP_V1_PIDS, "pids.current", put_number,
                         CGROUP_PROCESSES},
    /* includes the groups below, as version 2 does */
    [GROUP_IO] = {"io.stat", CGROUP_V1_BLKIO, "blkio.throttle.io_service_bytes_recursive",
                  cgroup_put_io, CGROUP_READ_BYTES},
    [GROUP_OPERATIONS] = {NULL, CGROUP_V1_BLKIO, "blkio.throttle.io_serviced_recursive",
                          cgroup_put_io, CGROUP_READS},
    [GROUP_CPU_PRESSURE] = {"cpu.pressure", CGROUP_V2, NULL, read_pressure_lines, CGROUP_PRESSURE},
    [GROUP_IO_PRESSURE] = {"io.pressure", CGROUP_V2, NULL, read_pressure_lines,
                           CGROUP_PRESSURE + 2},
    [GROUP_MEMORY_PRESSURE] = {"memory.pressure", CGROUP_V2, NULL, read_pressure_lines,
                               CGROUP_PRESSURE + 4},
};

/* ---- trees and files */

void cgroups_open(struct host_reader *host, int folder)
{
    const int root = host_open_at(folder, "sys/fs/cgroup", true);
    const int controllers = root < 0 ? -1 : host_open_at(root, "cgroup.controllers", false);
    bool has_tree = false;

    if (root < 0)
        return;
    for (int tree = 0; tree < CGROUP_TREES && controllers < 0; tree++) {
        host->cgroups[tree] = host_open_at(root, trees[tree], true);
        has_tree = has_tree || host->cgroups[tree] >= 0;
    }
    if (controllers >= 0)
        close(controllers);
    if (has_tree)
        close(root);
    else
        host->cgroups[CGROUP_V2] = root;
}

void cgroups_close(struct host_reader *host)
{
    for (int tree = 0; tree < CGROUP_TREES; tree++)
        if (host->cgroups[tree] >= 0)
            close(host->cgroups[tree]);
}

static int open_file(const struct host_reader *host, enum cgroup_tree tree, const char *path,
                     const char *file)
{
    char name[HOST_NAME_BYTES + 64];

    if (!file || host->cgroups[tree] < 0)
        return -1;
    (void)snprintf(name, sizeof(name), "%s/%s", path, file);
    return host_open_at(host->cgroups[tree], name, false);
}

/* Opens the files of the group with the slot's name. Returns false without any file. */
static bool cgroup_open(const struct host_reader *host, struct slot *slot)
{
    bool has_any = false;

    for (int i = 0; i < GROUP_FILES; i++) {
        slot->fds[i] = open_file(host, files[i].tree, slot->name, files[i].v1);
        if (slot->fds[i] < 0)
            slot->fds[i] = open_file(host, CGROUP_V2, slot->name, files[i].v2);
        has_any = has_any || slot->fds[i] >= 0;
    }
    return has_any;
}

/* Returns false when the group has ended. */
static bool cgroup_put(struct group_reading *reading, struct slot *slot)
{
    struct host_reader *const host = reading->host;
    bool is_there = false;

    for (int file = 0; file < GROUP_FILES; file++) {
        if (slot->fds[file] < 0)
            continue;
        lines_begin(&host->lines, slot->fds[file]);
        files[file].put(reading, files[file].i);
        if (!host->lines.error) {
            is_there = true;
            continue;
        }
        close(slot->fds[file]); /* the group has ended, or the kernel has pressure switched off */
        slot->fds[file] = -1;
    }
    return is_there;
}

void read_cgroups(struct group_reading *reading)
{
    slots_read(reading, cgroup_put);
}

/* ---- search */

struct walk {
    struct host_reader *host;
    size_t depth; /* the current folder's; the root's is 0 */
    size_t depth_max;
    size_t folders;
    bool is_in_unit;
    char path[HOST_NAME_BYTES];
};

static void add_group(struct host_reader *host, const char *path)
{
    struct slot *slot = NULL;

    while ((slot = slot_next(host, HOST_CGROUP, slot)))
        if (strcmp(slot->name, path) == 0)
            return;
    slot = slot_take(host, HOST_CGROUP, text_of(path));
    if (slot && !cgroup_open(host, slot))
        slot_release(host, HOST_CGROUP, slot);
}

static void add_processes(struct host_reader *host, int folder)
{
    const int fd = host_open_at(folder, "cgroup.procs", false);
    uint32_t pids[256];
    size_t count = 0;
    struct text line;
    uint64_t pid;

    if (fd < 0)
        return;
    lines_begin(&host->lines, fd);
    while (count < sizeof(pids) / sizeof(pids[0]) && lines_next(&host->lines, &line))
        if (line_number(&line, &pid) && pid > 0 && pid <= UINT32_MAX >> 2)
            pids[count++] = (uint32_t)pid;
    close(fd);
    for (size_t i = 0; i < count; i++) /* process_add() uses the buffer of the lines, too */
        process_add(host, pids[i], false);
}

/* Returns true if patterns of units want the name. */
static bool is_unit_of(const struct host_reader *host, enum host_kind kind, const char *name)
{
    return host->period[kind] != 0 && patterns_have(&host->patterns[kind], PATTERN_UNIT) &&
           patterns_match(&host->patterns[kind], PATTERN_UNIT, name, 0);
}

static bool cgroup_is_wanted(const struct host_reader *host, const char *path, const char *name)
{
    const struct patterns *const patterns = &host->patterns[HOST_CGROUP];

    return is_unit_of(host, HOST_CGROUP, name) ||
           (host->period[HOST_CGROUP] != 0 && patterns_have(patterns, PATTERN_NAME) &&
            patterns_match(patterns, PATTERN_NAME, path, FNM_PATHNAME));
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
    folder = host_open_at(parent, name, true);
    if (folder < 0)
        return true;
    (void)snprintf(walk->path + length, sizeof(walk->path) - length, "%s%s", length ? "/" : "",
                   name);
    walk->is_in_unit = was_in_unit || is_unit_of(walk->host, HOST_PROCESS, name);
    if (cgroup_is_wanted(walk->host, walk->path, name))
        add_group(walk->host, walk->path);
    if (walk->is_in_unit)
        add_processes(walk->host, folder);
    if (++walk->depth < walk->depth_max)
        folder_list(folder, look_at, walk);
    walk->depth--;
    walk->is_in_unit = was_in_unit;
    walk->path[length] = '\0';
    close(folder);
    return true;
}

/* Returns the depth of the deepest pattern. */
static size_t depth_of(const struct patterns *patterns)
{
    size_t depth = 0;

    for (size_t i = 0; i < patterns->count; i++) {
        const struct pattern *const pattern = &patterns->list[i];
        size_t own = 1;

        if (pattern->excludes || pattern->kind == PATTERN_PID)
            continue;
        for (const char *at = pattern->text; pattern->kind == PATTERN_NAME && *at; at++)
            own += *at == '/';
        if (pattern->kind == PATTERN_UNIT)
            own = CGROUP_DEPTH_MAX;
        depth = own > depth ? own : depth;
    }
    return depth < CGROUP_DEPTH_MAX ? depth : CGROUP_DEPTH_MAX;
}

void cgroups_find(struct host_reader *host)
{
    size_t depth = 0;

    if (host->period[HOST_CGROUP] != 0)
        depth = depth_of(&host->patterns[HOST_CGROUP]);
    if (host->period[HOST_PROCESS] != 0 &&
        patterns_have(&host->patterns[HOST_PROCESS], PATTERN_UNIT))
        depth = CGROUP_DEPTH_MAX;
    for (int tree = 0; tree < CGROUP_TREES && depth > 0; tree++) {
        struct walk walk = {.host = host, .depth_max = depth};

        if (host->cgroups[tree] >= 0)
            folder_list(host->cgroups[tree], look_at, &walk);
    }
}

/*
 * Control groups: which are wanted, and the processes of units.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sample_parts.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <unistd.h>

#define DEPTH_MAX   8
#define FOLDERS_MAX 8192 /* that are looked at; in a fake tree, links could make a circle */

void read_cgroups(struct reading *reading)
{
    struct host *const host = reading->host;
    struct each each = each_of(host, HOST_CGROUP);

    for (struct slot *slot; (slot = each_next(host, &each));) {
        reading->monotonic = now_ns();
        if (cgroup_put(reading, slot)) {
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

static void add_group(struct host *host, const char *path)
{
    struct slot *const slot =
        slot_of_path(host, path)
            ? NULL
            : slot_take(host, HOST_CGROUP, (struct piece){path, path + strlen(path)});

    if (slot && !cgroup_open(host, slot))
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

static bool cgroup_is_wanted(const struct host *host, const char *path, const char *name)
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
    if (cgroup_is_wanted(walk->host, walk->path, name))
        add_group(walk->host, walk->path);
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
    size_t depth = 0;

    if (host->period[HOST_CGROUP] != 0)
        depth = depth_of(&host->patterns[HOST_CGROUP]);
    if (host->period[HOST_PROCESS] != 0 &&
        patterns_have(&host->patterns[HOST_PROCESS], PATTERN_UNIT))
        depth = DEPTH_MAX;
    for (int tree = 0; tree < CGROUP_TREES && depth > 0; tree++) {
        struct walk walk = {.host = host, .depth_max = depth};

        if (host->cgroups[tree] >= 0)
            entries(host->cgroups[tree], look_at, &walk);
    }
}

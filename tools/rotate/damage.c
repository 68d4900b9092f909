/*
 * Finds the files of a chunk that babeltrace2 cannot read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "damage.h"
#include "nothing.h"

#include "tools/base/say.h"
#include "tools/reader/graph.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* So long it may take to read a file that some corrupted byte may have made endless. */
#define READ_TIME_S   20
#define READ_PER_S    (UINT64_C(4) << 20)
#define READ_TIME_MAX 600

/* ---- can it be read? ------------------------------------------------------------------------- */

/* By the whole sink, into nothing. It is ended by an alarm. */
static int damage_read_all(const void *trace, size_t size)
{
    const uint64_t time_s = READ_TIME_S + tree_bytes(trace) / READ_PER_S;
    const char *const traces[] = {trace, NULL};
    json_t *params = json_pack("{ss}", "endpoint", "file:/dev/null");
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int status = 0;

    (void)size;
    (void)alarm((unsigned)(time_s < READ_TIME_MAX ? time_s : READ_TIME_MAX));
    if (nothing >= 0)
        (void)dup2(nothing, STDERR_FILENO);
    if (params) /* else it is no fault of the trace's */
        status = (int)graph_run(&(struct graph_spec){
            .traces = traces, .sink_params = params, .level = BT_LOGGING_LEVEL_NONE});
    json_decref(params);
    return status;
}

const struct job damage_read_job = {.name = "rotate-probe", .run = damage_read_all};

static bool damage_is_readable(const char *trace)
{
    int status;

    return !child_run(&damage_read_job, trace, strlen(trace) + 1, &status) || status == 0;
}

/* ---- moving ---------------------------------------------------------------------------------- */

struct look {
    const struct damage_order *order;
    struct damage_result *result;
    char chunk[PATH_ROOM];
    char probe[PATH_ROOM]; /* a trace of one stream */
};

static bool link_into(const char *folder, const char *name, const char *to)
{
    char from[PATH_ROOM], path[PATH_ROOM];

    path_set(from, "%s/%s", folder, name);
    path_set(path, "%s/%s", to, name);
    return link(from, path) == 0;
}

static void move_index(const char *trace, const char *name, const char *to)
{
    char from[PATH_ROOM], path[PATH_ROOM];

    path_set(path, "%s/index", to);
    (void)mkdir(path, 0700);
    path_set(path, "%s/index/%s.idx", to, name);
    path_set(from, "%s/index/%s.idx", trace, name);
    (void)rename(from, path);
}

static void note_moved(const struct look *look, const char *path, uint64_t bytes)
{
    look->result->files++;
    look->result->bytes += bytes;
    say(BK3024,
        "cannot be read, and was put aside: %s, %" PRIu64 " bytes: the spans in it are lost", path,
        bytes);
}

/* The stream and what is needed to read it. */
static void move_stream(const struct look *look, const char *trace, const char *name)
{
    const struct damage_order *order = look->order;
    char from[PATH_ROOM], to[PATH_ROOM], path[PATH_ROOM];
    struct stat status;

    path_set(from, "%s/%s", trace, name);
    path_set(to, "%s/damaged/%s.%s%s", order->store.output, order->chunk.place, order->chunk.name,
             trace + strlen(look->chunk));
    path_set(path, "%s/%s", to, name);
    if (lstat(from, &status) != 0 || !folder_make(to))
        return;
    (void)link_into(trace, "metadata", to);
    if (rename(from, path) != 0)
        return;
    move_index(trace, name, to);
    note_moved(look, path, (uint64_t)status.st_size);
}

static bool damage_is_stream(const char *name)
{
    return name[0] != '.' && strcmp(name, "metadata") != 0 && strcmp(name, "index") != 0;
}

static bool stream_is_readable(const struct look *look, const char *trace, const char *name)
{
    bool is_linked = tree_remove(look->probe) && folder_make(look->probe) &&
                     link_into(trace, "metadata", look->probe) &&
                     link_into(trace, name, look->probe);

    return !is_linked || damage_is_readable(look->probe);
}

static void look_at_trace(const struct look *look, const char *trace)
{
    const struct dirent *entry;
    DIR *folder = opendir(trace);

    while (folder && (entry = readdir(folder)) != NULL) {
        if (damage_is_stream(entry->d_name) && !stream_is_readable(look, trace, entry->d_name))
            move_stream(look, trace, entry->d_name);
    }
    if (folder)
        closedir(folder);
    (void)tree_remove(look->probe);
}

/* The metadata itself, or only all streams together: nothing of it can be had. */
static void move_trace(const struct look *look, const char *trace)
{
    const struct damage_order *order = look->order;
    const uint64_t bytes = tree_bytes(trace);
    char to[PATH_ROOM], parent[PATH_ROOM];

    path_set(to, "%s/damaged/%s.%s%s", order->store.output, order->chunk.place, order->chunk.name,
             trace + strlen(look->chunk));
    path_set(parent, "%.*s", (int)(strrchr(to, '/') - to), to);
    if (!tree_remove(to) || !folder_make(parent) || rename(trace, to) != 0)
        return;
    note_moved(look, to, bytes);
}

/* ---- the folder damaged is bounded ----------------------------------------------------------- */

static bool oldest_of(const char *damaged, char oldest[CHUNK_MAX + PLACE_MAX])
{
    const struct dirent *entry;
    DIR *folder = opendir(damaged);

    oldest[0] = '\0';
    while (folder && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < CHUNK_MAX + PLACE_MAX &&
            (!oldest[0] || strcmp(entry->d_name, oldest) < 0))
            (void)snprintf(oldest, CHUNK_MAX + PLACE_MAX, "%s", entry->d_name);
    }
    if (folder)
        closedir(folder);
    return oldest[0] != '\0';
}

static void bound_damaged(const struct damage_order *order)
{
    char damaged[PATH_ROOM], path[PATH_ROOM], oldest[CHUNK_MAX + PLACE_MAX];

    path_set(damaged, "%s/damaged", order->store.output);
    while (tree_bytes(damaged) > order->max_bytes && oldest_of(damaged, oldest)) {
        path_set(path, "%s/%s", damaged, oldest);
        if (!tree_remove(path))
            return;
        say(BK3025, "%s is removed, to keep the folder damaged below %" PRIu64 " bytes", path,
            order->max_bytes);
    }
}

/* It may be the reader's fault: its plugin is not installed, or the disk or the memory is full. */
static bool can_read(const struct look *look)
{
    const bool can = nothing_make(look->probe, 1) && damage_is_readable(look->probe);

    (void)tree_remove(look->probe);
    return can;
}

static bool damage_look(const void *argument, void *result)
{
    struct look look = {argument, result, "", ""};
    char **traces;
    size_t count;

    store_chunk_path(&look.order->store, &look.order->chunk, look.chunk);
    path_set(look.probe, "%s/trash/probe", look.order->store.output);
    if (!can_read(&look)) {
        look.result->reads_nothing = true;
        return true;
    }
    traces = trace_folders(look.chunk, &count);
    for (size_t i = 0; traces && i < count; i++) {
        if (damage_is_readable(traces[i]))
            continue;
        look_at_trace(&look, traces[i]);
        if (!damage_is_readable(traces[i]))
            move_trace(&look, traces[i]);
    }
    trace_folders_free(traces);
    if (look.result->files)
        bound_damaged(look.order);
    return true;
}

const struct job damage_job = {
    .name = "rotate-damage", .fill = damage_look, .result_size = sizeof(struct damage_result)};

/*
 * A snapshot that lacks the newest packet of a CPU, as a thread was just recording there, is taken
 * once more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/lttng/session.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/record/fetch.h"
#include "ring.h"
#include "tools/base/folders.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define S INT64_C(1000000000)

static const uint64_t id = 0x1122334455667788;
static int snapshots;         /* taken so far */
static int until_it_is_there; /* so many of them lack the newest packet of the second CPU */
static int64_t others_end_ns; /* the end of the packet before it */

/* Two CPUs; the trace is in the newest packet of the second one. */
bool __wrap_session_snapshot(const char *name, const char *folder, uint64_t max_bytes,
                             struct error *error);
bool __wrap_session_snapshot(const char *name, const char *folder, uint64_t max_bytes,
                             struct error *error)
{
    const uint64_t now = (uint64_t)clock_ns(), before = (uint64_t)others_end_ns;

    (void)name;
    (void)folder;
    (void)max_bytes;
    (void)error;
    ring_append("record/snapshot/trace/metadata", "", 0);
    ring_add("record/snapshot/trace/blkin_0", &(struct ring_packet){.begin = 1, .end = now});
    ring_add("record/snapshot/trace/blkin_1", &(struct ring_packet){.begin = 1, .end = before});
    if (++snapshots > until_it_is_there)
        ring_add(
            "record/snapshot/trace/blkin_1",
            &(struct ring_packet){
                .begin = before, .end = now, .number = 1, .content = &id, .length = sizeof(id)});
    return true;
}

/* ---- what is on disk: the inodes that were synced */

static ino_t synced[64];
static size_t synced_count;

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    struct stat status;

    CHECK(fstat(fd, &status) == 0);
    synced[synced_count++ % 64] = status.st_ino;
    return __real_fsync(fd);
}

static bool is_synced(void *context, const char *folder, const char *name)
{
    char path[PATH_ROOM];
    struct stat status;

    (void)context;
    path_set(path, "%s/%s", folder, name);
    CHECK(stat(path, &status) == 0);
    for (size_t i = 0; i < synced_count && i < 64; i++) {
        if (synced[i] == status.st_ino)
            return true;
    }
    return false;
}

/* A kept folder gets its name when each of its files is on disk. */
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    const char *name = strrchr(to, '/');

    if (name && strncmp(name, "/kept-", 6) == 0)
        CHECK(tree_files(from, is_synced, NULL));
    return __real_rename(from, to);
}

/* Returns whether the trace was there. */
static bool fetch_when(int lacking, int64_t ago_ns, const struct request *requests)
{
    static uint64_t number;
    struct fetch_result result = {.is_kept = false};
    char folder[300];
    const struct fetch_order order = {.session = "record",
                                      .folder = folder,
                                      .number = number++,
                                      .requests = requests,
                                      .fetched = fetched_new()};
    const struct trace_id other = {9, 9};
    struct fetch_order given;
    char *bytes;
    size_t size;

    (void)snprintf(folder, sizeof(folder), "%s/record", ring_folder);
    snapshots = 0;
    until_it_is_there = lacking;
    others_end_ns = clock_ns() - ago_ns;
    fetched_note((struct fetched *)(uintptr_t)order.fetched, other, 5 * S, 7 * S);
    bytes = fetch_order_bytes(&order, &size); /* as the task gets it */
    CHECK(bytes && fetch_order_read(bytes, &given));
    CHECK(fetched_find(given.fetched, other)->until_ns == 5 * S);
    fetch(&given, &result);
    free(bytes);
    requests_free((struct request *)(uintptr_t)given.requests);
    fetched_free((struct fetched *)(uintptr_t)given.fetched);
    CHECK_TEXT(result.error.text, "");
    fetched_free((struct fetched *)(uintptr_t)order.fetched);
    return result.is_kept;
}

int main(void)
{
    struct request *request = request_new("a:1:1", "a");

    (void)ring_begin("test-fetch");
    (void)ring_path("record/x");
    CHECK(request_add(request, (struct trace_id){0, id}, 0, "why"));
    CHECK(fetch_when(0, S, request) && snapshots == 1);
    CHECK(fetch_when(1, S, request) && snapshots == 2);
    /* who does not end with it was killed, perhaps: the next one is for another time */
    CHECK(!fetch_when(9, S, request) && snapshots == 2);
    /* and one that is stalled never has it */
    CHECK(!fetch_when(9, STALLED_NS + S, request) && snapshots == 1);
    /* it is only looked at */
    CHECK(!fetch_when(1, S, NULL) && snapshots == 1);
    requests_free(request);
    ring_end();
    return check_status();
}

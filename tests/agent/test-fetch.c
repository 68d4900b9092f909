/*
 * A kept folder gets its name when each of its files is on disk, and has all that the agent reads
 * from it. Without records there is none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "copying.h"
#include "tools/base/child.h"
#include "tools/base/folders.h"

#include <dirent.h>
#include <sys/stat.h>

#define S INT64_C(1000000000)

static struct copying copying;
static char folder[300];
static unsigned renamed;

/* ---- what is on disk: the inodes that were synced -------------------------------------------- */

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

static bool is_synced(void *context, const char *in, const char *name)
{
    char path[PATH_ROOM];
    struct stat status;

    (void)context;
    path_set(path, "%s/%s", in, name);
    CHECK(stat(path, &status) == 0);
    for (size_t i = 0; i < synced_count && i < 64; i++) {
        if (synced[i] == status.st_ino)
            return true;
    }
    return false;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    const char *name = strrchr(to, '/');

    if (name && strncmp(name, "/kept-", 6) == 0) {
        CHECK(tree_files(from, is_synced, NULL));
        renamed++;
    }
    return __real_rename(from, to);
}

/* ---- fetches --------------------------------------------------------------------------------- */

static struct fetch_result fetch_now(uint64_t number)
{
    const struct fetch_result result = copying_keep(&copying, folder, number);

    CHECK_TEXT(result.error.text, "");
    return result;
}

static unsigned entries(void)
{
    DIR *list = opendir(folder);
    unsigned count = 0;

    if (!list)
        exit(2);
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(list);
    return count;
}

static void test_kept(void)
{
    const struct writer writer = copying_writer(&copying, 0, 0);
    struct fetch_result result;
    struct request *requests;
    int64_t until_ns, held_ns;
    char path[PATH_ROOM];

    copying_want(&copying, (const uint64_t[]){5, 0});
    result = fetch_now(7);
    CHECK(result.has_copied && !result.is_kept && renamed == 0 && entries() == 0);

    copying_put(&writer, 5, 1, clock_ns());
    result = fetch_now(7);
    CHECK(result.has_copied && result.is_kept && result.records_kept == 1 && renamed == 1);
    CHECK(entries() == 1);
    path_set(path, "%s/kept-7", folder);
    requests = fetch_requests(path, &until_ns, &held_ns);
    CHECK(until_ns == copying.order.until_mono_ns && held_ns == result.held_from_ns);
    CHECK(requests && requests->count == 1 && requests->traces[0].id.low == 5 && !requests->next);
    CHECK_TEXT(requests ? requests->traces[0].why : "", "why");
    requests_free(requests);
}

/* "ID FROM UNTIL WHY" of each trace: of one that was fetched before, by time or by place. */
static void test_only(void)
{
    const struct writer writer = copying_writer(&copying, 0, 1);
    const int64_t before_ns = clock_ns() - S;
    char path[PATH_ROOM], text[1000] = "", expected[200];
    struct fetch_result result;
    FILE *file;

    fetched_note(copying.fetched, (struct trace_id){0, 5}, before_ns,
                 0); /* by an earlier process */
    fetched_note(copying.fetched, (struct trace_id){0, 6}, before_ns,
                 places_take(copying.places, &copying.held[0]));
    copying_want(&copying, (const uint64_t[]){5, 6, 0});
    copying_put(&writer, 6, 1, clock_ns());
    result = fetch_now(8);
    CHECK(result.is_kept);
    path_set(path, "%s/kept-8/only", folder);
    file = fopen(path, "re");
    CHECK(file && fread(text, 1, sizeof(text) - 1, file) > 0);
    if (file)
        (void)fclose(file);
    (void)snprintf(expected, sizeof(expected), "00000000000000000000000000000005 %lld 0 why\n",
                   (long long)before_ns + COPYING_OFFSET);
    CHECK(strstr(text, expected) != NULL);
    CHECK(strstr(text, "00000000000000000000000000000006 0 0 why\n") != NULL);
}

/* Spans of other SDKs are a reason to keep a folder where the rings have nothing. */
static void test_foreign(void)
{
    char path[PATH_ROOM], text[20] = "";
    FILE *file;

    copying_want(&copying, (const uint64_t[]){77, 0});
    copying.foreign = text_of("spans");
    CHECK(fetch_now(10).is_kept);
    copying.foreign = text_of("");
    path_set(path, "%s/kept-10/foreign", folder);
    file = fopen(path, "re");
    CHECK(file && fgets(text, sizeof(text), file));
    if (file)
        (void)fclose(file);
    CHECK_TEXT(text, "spans");
}

/* What a fetch that was killed has left is in the way of nothing. */
static void test_left(void)
{
    char path[PATH_ROOM];

    path_set(path, "%s/kept-9.new/deep", folder);
    path[strlen(path) - 5] = '\0';
    CHECK(mkdir(path, 0700) == 0);
    path_set(path, "%s/kept-9.new/deep", folder);
    CHECK(mkdir(path, 0700) == 0);
    copying_want(&copying, (const uint64_t[]){6, 0});
    CHECK(fetch_now(9).is_kept && entries() == 3);
}

int main(void)
{
    const char *where = getenv("TMPDIR");

    (void)snprintf(folder, sizeof(folder), "%s/test-fetch.%ld", where ? where : "/tmp",
                   (long)getpid());
    CHECK(mkdir(folder, 0700) == 0);
    copying_begin(&copying);
    copying_add(&copying, 1, clock_ns() - S);
    test_kept();
    test_only();
    test_left();
    test_foreign();
    copying_end(&copying);
    CHECK(tree_remove(folder));
    return check_status();
}

/*
 * Which chunks `blkin rotate` drops when the file system is nearly full: as many as make room, also
 * while the saver has not deleted them yet. The file system is one of this test's own invention.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "in_loop.h"
#include "tools/base/saver.h"
#include "tools/rotate/room.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define CHUNKS      20
#define CHUNK_BYTES 65536
#define ALL_BYTES   (UINT64_C(100) << 20)
#define WANTED      (ALL_BYTES / 20) /* 5 % are to be free */

static uint64_t free_bytes = WANTED;

int statvfs(const char *path, struct statvfs *status)
{
    (void)path;
    *status = (struct statvfs){.f_frsize = 1, .f_blocks = ALL_BYTES, .f_bavail = free_bytes};
    return 0;
}

static char output[] = "/tmp/room.XXXXXX";
static struct store store;
static struct rotate_totals totals;
static struct chunk at_hand;
static struct room room = {.store = &store, .totals = &totals, .at_hand = &at_hand};

static void make_chunks(void)
{
    char command[512];

    for (int i = 0; i < CHUNKS; i++) {
        (void)snprintf(command, sizeof(command),
                       "mkdir -p %s/000001-a/archives/x-%d && head -c %d /dev/zero "
                       ">%s/000001-a/archives/x-%d/stream",
                       output, i, CHUNK_BYTES, output, i);
        CHECK(system(command) == 0);
    }
    CHECK(store_scan(&store) && store.count == CHUNKS);
}

static void test_as_many_as_needed(void)
{
    free_bytes = WANTED - 2 * CHUNK_BYTES;
    CHECK(room_make(&room, 0));
    CHECK(totals.chunks_dropped > 0 && totals.chunks_dropped <= 2);
    CHECK(totals.bytes_dropped >= 2 * CHUNK_BYTES - 4096);
    CHECK(store.count == CHUNKS - totals.chunks_dropped);
    CHECK(store.count && store.chunks[0].number == totals.chunks_dropped); /* the oldest */
}

/* The next scan, before what was dropped is deleted; and with still less room. */
static void test_before_it_is_deleted(void)
{
    const uint64_t before = totals.chunks_dropped;

    CHECK(store_scan(&store) && store.count == CHUNKS - before);
    CHECK(!room_make(&room, 0) && totals.chunks_dropped == before);
    free_bytes -= CHUNK_BYTES;
    CHECK(room_make(&room, 0) && totals.chunks_dropped == before + 1);
}

/* The saver tells: what is free then counts alone. */
static void wait_for_saver(void)
{
    for (int i = 0; room.leaving.bytes && i < 500; i++)
        run_for(20);
    CHECK(room.leaving.bytes == 0);
}

static void test_after_that(void)
{
    const uint64_t before = totals.chunks_dropped;

    wait_for_saver();
    free_bytes = WANTED;
    CHECK(!room_make(&room, 0) && totals.chunks_dropped == before);
    CHECK(room_make(&room, store.bytes - 1) && totals.chunks_dropped == before + 1);
    free_bytes = 0; /* no deletion makes room: all chunks go, but for the one at hand */
    at_hand = store.chunks[2];
    CHECK(room_make(&room, 0) && store.count == 1 && store.chunks[0].number == at_hand.number);
    wait_for_saver();
}

int main(void)
{
    struct error error = {""};
    char command[64];

    loop = loop_new(&signals);
    CHECK(loop && saver_open(loop) && mkdtemp(output));
    CHECK(store_open(&store, output, "", &error));
    make_chunks();
    test_as_many_as_needed();
    test_before_it_is_deleted();
    test_after_that();
    CHECK(saver_finish(10000));
    store_close(&store);
    (void)snprintf(command, sizeof(command), "rm -rf %s", output);
    CHECK(system(command) == 0);
    loop_free(loop);
    return check_status();
}

/*
 * A program without a reader: the service was killed together with the fdserver. A service that
 * does not answer for a while: libblkin-ring/test-agent.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/blkin.h"
#include "libblkin/ring/ring_find.h"
#include "served.h"
#include "waits.h"

#include <sys/mman.h>

#define BEATS_EVENT_BYTES (UINT64_C(1) << 22) /* a ring that holds spans of some seconds */

/* The notes of the program for the test. */
struct beats_shared {
    uint64_t recorded; /* recorded spans */
    uint64_t memories; /* memories that the program has had */
    uint64_t must_end;
};

static struct beats_shared *shared;
static struct served served;
static struct error error;

static void set(uint64_t *value, uint64_t to)
{
    __atomic_store_n(value, to, __ATOMIC_RELEASE);
}

/* ---- the program ----------------------------------------------------------------------------- */

static int record(int fd)
{
    const struct ring_map *before = NULL;

    shared = served_share(fd, sizeof(*shared));
    while (!get(&shared->must_end)) {
        struct blkin_span span;

        blkin_span_begin(&span, "request", BLKIN_SERVER, NULL);
        set(&shared->recorded, get(&shared->recorded) + (uint64_t)blkin_span_is_recorded(&span));
        blkin_span_end(&span);
        if (ring_map() != before)
            set(&shared->memories, get(&shared->memories) + 1);
        before = ring_map();
        pause_us(500);
    }
    return 0;
}

/* ---- contents of the memory ------------------------------------------------------------------ */

static uint64_t spans_found;
static unsigned memories_found;

static void count_spans(void *context, int fd, const char *name)
{
    struct memory memory;
    uint64_t overwritten = 0;

    (void)context, (void)name;
    if (!memory_open(&memory, fd, &error))
        return;
    memories_found += memory.size.event_bytes == BEATS_EVENT_BYTES;
    for (uint32_t i = 0; i < memory.size.cpus; i++)
        spans_found += served_spans(memory_ring(&memory, i), &overwritten);
    CHECK(overwritten == 0);
    memory_close(&memory);
}

/* Returns the number of spans in the fdserver's memory, after the service was killed. */
static uint64_t spans_kept(void)
{
    spans_found = memories_found = 0;
    CHECK(served_kept(&served, count_spans, NULL));
    CHECK(memories_found == 1);
    return spans_found;
}

/* Only the program has the memory now: the program takes the memory of the next service. */
static void test_killed(int fd, const char *folder)
{
    char number[16];
    int64_t begin_ms;
    uint64_t recorded;
    int status = 1;
    pid_t pid;

    (void)snprintf(number, sizeof(number), "%d", fd);
    served_begin(&served, folder, BEATS_EVENT_BYTES);
    CHECK(served_await_all(&served, BEATS_EVENT_BYTES));
    pid = served_program(&served, (char *[]){"test-beats", number, NULL});
    WAIT_UNTIL(get(&shared->recorded) > 100);
    served_kill_service(&served);
    served_kill_keeper(&served);
    served_begin(&served, folder, BEATS_EVENT_BYTES);
    CHECK(served_await_all(&served, BEATS_EVENT_BYTES));
    begin_ms = clock_ms();
    WAIT_UNTIL(get(&shared->memories) == 2);
    printf("another memory %lld ms after the kill\n", (long long)(clock_ms() - begin_ms));
    recorded = get(&shared->recorded);
    WAIT_UNTIL(get(&shared->recorded) > recorded + 1000);
    set(&shared->must_end, 1);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    served_kill_service(&served);
    CHECK(spans_kept() >= 1000);
    served_kill_keeper(&served);
}

int main(int argc, char *argv[])
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    int fd;

    setenv("BLKIN_LTTNG", "no", 1);
    if (argc > 1)
        return record(atoi(argv[1]));
    fd = memfd_create("shared", 0);
    if (fd < 0 || ftruncate(fd, sizeof(*shared)) != 0)
        return 1;
    shared = served_share(fd, sizeof(*shared));
    test_killed(fd, folder);
    return check_status();
}

/*
 * Programs without a reader: the service was killed together with the fdserver, or stopped.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/blkin.h"
#include "libblkin/ring/ring_find.h"
#include "served.h"
#include "waits.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define BEATS_EVENT_BYTES (UINT64_C(1) << 22) /* a ring that holds spans of some seconds */

/* The notes of the program for the test. */
struct beats_shared {
    uint64_t asked;    /* how often the program waited for an answer while it had a memory */
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
        if (ring_map() && ring_find_state() == RING_SOON)
            set(&shared->asked, get(&shared->asked) + 1);
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

/* ---- */

static pid_t begin(int fd, const char *folder)
{
    char number[16];
    pid_t pid;

    memset(shared, 0, sizeof(*shared));
    (void)snprintf(number, sizeof(number), "%d", fd);
    served_begin(&served, folder, BEATS_EVENT_BYTES);
    CHECK(served_await_all(&served, BEATS_EVENT_BYTES));
    pid = served_program(&served, (char *[]){"test-beats", number, NULL});
    WAIT_UNTIL(get(&shared->recorded) > 100);
    return pid;
}

static void end(pid_t pid)
{
    int status = 1;

    set(&shared->must_end, 1);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* Only the program has the memory now: the program takes the memory of the next service. */
static void test_killed(int fd, const char *folder)
{
    const pid_t pid = begin(fd, folder);
    int64_t begin_ms;
    uint64_t recorded;

    served_kill_service(&served);
    served_kill_keeper(&served);
    served_begin(&served, folder, BEATS_EVENT_BYTES);
    CHECK(served_await_all(&served, BEATS_EVENT_BYTES));
    begin_ms = clock_ms();
    WAIT_UNTIL(get(&shared->memories) == 2);
    printf("another memory %lld ms after the kill\n", (long long)(clock_ms() - begin_ms));
    recorded = get(&shared->recorded);
    WAIT_UNTIL(get(&shared->recorded) > recorded + 1000);
    end(pid);
    served_kill_service(&served);
    CHECK(spans_kept() >= 1000);
    served_kill_keeper(&served);
}

/* The program asks without an answer, then gets the same memory: all its records are in that
 * memory.
 */
static void test_stopped(int fd, const char *folder)
{
    const pid_t pid = begin(fd, folder);
    uint64_t asked;

    CHECK(kill(served.service, SIGSTOP) == 0);
    WAIT_UNTIL(get(&shared->asked) > 0);
    CHECK(kill(served.service, SIGCONT) == 0);
    asked = get(&shared->recorded);
    WAIT_UNTIL(get(&shared->recorded) > asked + 2000);
    end(pid);
    served_kill_service(&served);
    CHECK(get(&shared->memories) == 1);
    CHECK(spans_kept() == get(&shared->recorded)); /* and no span is in another memory */
    served_kill_keeper(&served);
}

/* Each test has its own programs and service, as each test waits until a reader counts as away. */
static pid_t play(void (*test)(int fd, const char *folder), const char *name)
{
    const char *where = getenv("TMPDIR");
    const pid_t pid = fork();
    char folder[150];
    int fd;

    if (pid)
        return pid;
    (void)snprintf(folder, sizeof(folder), "%s/%s", where ? where : "/tmp", name);
    fd = memfd_create("shared", 0);
    if (fd < 0 || ftruncate(fd, sizeof(*shared)) != 0 || mkdir(folder, 0700) != 0)
        exit(1);
    shared = served_share(fd, sizeof(*shared));
    test(fd, folder);
    CHECK(rmdir(folder) == 0);
    exit(check_status());
}

int main(int argc, char *argv[])
{
    pid_t pids[2];
    int status;

    setenv("BLKIN_LTTNG", "no", 1);
    if (argc > 1)
        return record(atoi(argv[1]));
    pids[0] = play(test_killed, "killed");
    pids[1] = play(test_stopped, "stopped");
    for (unsigned i = 0; i < 2; i++)
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    return check_status();
}

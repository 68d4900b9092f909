/*
 * A program of a thousand threads and two hundred other programs record at the same time. All
 * programs share the one memory of their user, which has exactly the configured size. The memory
 * has each record, or counts the record as lost.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/blkin.h"
#include "libblkin/ring/ring_find.h"
#include "served.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define CROWD_THREADS 1000
#define PROGRAMS      200
#define OTHERS        200                 /* other processes and threads that the user may have */
#define CROWD_EACH    25                  /* number of spans that a writer records */
#define SPAN_MAX      128                 /* the most bytes of a span in a ring */
#define CROWD_MEMORY  (UINT64_C(8) << 20) /* all rings of events: the first memory has this size */

/* The notes of the programs for the test. */
struct crowd_shared {
    uint64_t ready; /* programs that have a memory, and all of their threads */
    uint64_t must_begin;
    uint64_t recorded; /* recorded spans */
};

static struct crowd_shared *shared;
static struct error error;

static void add(uint64_t *value, uint64_t more)
{
    (void)__atomic_add_fetch(value, more, __ATOMIC_RELEASE);
}

/* ---- the programs ---------------------------------------------------------------------------- */

static void record(void)
{
    struct blkin_span span;

    blkin_span_begin(&span, "request", BLKIN_SERVER, NULL);
    add(&shared->recorded, (uint64_t)blkin_span_is_recorded(&span));
    blkin_span_end(&span);
}

static void record_each(void)
{
    for (unsigned i = 0; i < CROWD_EACH; i++)
        record();
}

/* A program asks when it records something. */
static bool has_memory(void)
{
    record();
    return ring_map() != NULL;
}

static pthread_barrier_t barrier;

static void *thread(void *unused)
{
    (void)pthread_barrier_wait(&barrier);
    record_each();
    return unused;
}

static int write_with(unsigned threads)
{
    static pthread_t ids[CROWD_THREADS];

    (void)pthread_barrier_init(&barrier, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, thread, NULL) != 0)
            return 1;
    }
    blkin_init();
    WAIT_UNTIL(has_memory());
    add(&shared->ready, 1);
    WAIT_UNTIL(get(&shared->must_begin));
    (void)pthread_barrier_wait(&barrier);
    record_each();
    for (unsigned i = 0; i < threads; i++)
        (void)pthread_join(ids[i], NULL);
    return check_status();
}

/* ---- contents of the memory ------------------------------------------------------------------ */

struct crowd_found {
    unsigned memories;
    struct memory_size size; /* the configured size */
    uint64_t spans, lost, overwritten;
};

static void count(void *context, int fd, const char *name)
{
    struct crowd_found *found = context;
    struct memory memory;
    struct stat status;

    (void)name;
    found->memories++;
    if (!memory_open(&memory, fd, &error)) {
        CHECK_TEXT(error.text, "");
        return;
    }
    CHECK(memory_is_of_size(&memory, &found->size) && memory.bytes == memory_bytes(&found->size));
    CHECK(fstat(memory.fd, &status) == 0);
    CHECK((uint64_t)status.st_blocks * 512 < memory.bytes + RING_HUGE);
    found->lost += memory_lost(&memory);
    for (uint32_t i = 0; i < memory.size.cpus; i++)
        found->spans += served_spans(memory_ring(&memory, i), &found->overwritten);
    memory_close(&memory);
}

/* ---- */

/* Returns the number of threads or processes that the user may have; `wanted` at most. */
static unsigned allowed(unsigned wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur >= CROWD_THREADS + PROGRAMS + OTHERS)
        return wanted;
    printf("not %u at once: ulimit -u is %llu\n", wanted, (unsigned long long)limit.rlim_cur);
    return wanted / 10;
}

static uint64_t event_bytes(void)
{
    uint64_t bytes = CROWD_MEMORY;

    while (bytes > RING_BYTES_MIN && bytes * memory_host_cpus() > CROWD_MEMORY)
        bytes /= 2;
    return bytes;
}

static void test_crowd(int fd, const char *folder)
{
    const unsigned threads = allowed(CROWD_THREADS), programs = allowed(PROGRAMS);
    const uint64_t least = (threads + 1 + programs) * CROWD_EACH;
    struct crowd_found found = {.size = {memory_host_cpus(), event_bytes(), RING_BYTES_MIN}};
    struct served served;
    pid_t pids[PROGRAMS + 1];
    char descriptor[16], number[16];
    int status;

    (void)snprintf(descriptor, sizeof(descriptor), "%d", fd);
    served_begin(&served, folder, found.size.event_bytes);
    for (unsigned i = 0; i <= programs; i++) {
        (void)snprintf(number, sizeof(number), "%u", i ? 0 : threads);
        pids[i] = served_program(&served, (char *[]){"test-crowd", descriptor, number, NULL});
    }
    WAIT_UNTIL(get(&shared->ready) == programs + 1);
    add(&shared->must_begin, 1);
    for (unsigned i = 0; i <= programs; i++)
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    served_kill_service(&served);
    CHECK(served_kept(&served, count, &found));
    served_kill_keeper(&served);
    printf("%u threads and %u programs: %llu spans recorded, %llu in the rings, %llu lost, "
           "%llu bytes overwritten, of %u memories\n",
           threads, programs, (unsigned long long)get(&shared->recorded),
           (unsigned long long)found.spans, (unsigned long long)found.lost,
           (unsigned long long)found.overwritten, found.memories);
    CHECK(found.memories == 1);
    CHECK(get(&shared->recorded) >= least);
    CHECK(found.spans <= get(&shared->recorded));
    /* lost events include others than spans; with more than two CPUs, a ring has no room for all */
    CHECK(found.spans + found.lost >= get(&shared->recorded) ||
          (found.overwritten && found.size.event_bytes < get(&shared->recorded) * SPAN_MAX));
}

int main(int argc, char *argv[])
{
    const char *where = getenv("TMPDIR");
    const int fd = argc > 1 ? -1 : memfd_create("shared", 0);

    setenv("BLKIN_LTTNG", "no", 1);
    if (argc > 2) {
        shared = served_share(atoi(argv[1]), sizeof(*shared));
        return write_with((unsigned)atoi(argv[2]));
    }
    if (fd < 0 || ftruncate(fd, sizeof(*shared)) != 0)
        return 1;
    shared = served_share(fd, sizeof(*shared));
    test_crowd(fd, where ? where : "/tmp");
    return check_status();
}

/*
 * The cost of a span in the agent's ring, and of a span that the provider discards. The difference
 * is what the ring adds. There is neither a session nor an agent. For the modes, see usage().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>

#include "batch.h"
#include "libblkin/base/provider.h"
#include "libblkin/ring/ring_find.h"
#include "libblkin/ring/ring_provider.h"
#include "libblkin/ring/ring_write.h"
#include "libblkin-ring/parts/rings.h"
#include "spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING (1 << 24)

#ifndef MADV_COLLAPSE /* for C library headers that are older than the kernel */
#define MADV_COLLAPSE 25
#endif

static struct rings memory;
static struct blkin_provider nowhere;
static const struct ring_map *map;

/* ---- where events go ---- */

static void record_nowhere(struct packed_event *event, const void *payload, size_t length,
                           void **thread_slot)
{
    (void)event;
    (void)payload;
    (void)length;
    (void)thread_slot;
}

/* Sets the provider. The periodic work puts the rings' table back, once a second. */
static void go_to(const struct blkin_provider *provider)
{
    __atomic_store_n(&blkin_provider_table, provider, __ATOMIC_RELEASE);
}

static void go_to_ring(void)
{
    go_to(ring_provider_use_over(&blkin_no_provider));
}

static void go_nowhere(void)
{
    go_to(&nowhere);
}

static void prepare(void)
{
    const char *wrong = "no restartable sequences here";

    setenv("BLKIN_LTTNG", "no", 1);
    setenv(RING_VARIABLE, "none", 1);
    blkin_init();
    rings_make(&memory, RING, RING_BYTES_MIN);
    map = ring_write_init() ? ring_map_new(memory.descriptor, memory.bytes, &wrong) : NULL;
    if (!map) {
        fprintf(stderr, "bench-ring: %s\n", wrong);
        exit(1);
    }
    if (madvise(map->memory, map->bytes, MADV_COLLAPSE) != 0) /* as the agent does it */
        perror("bench-ring: no huge pages");
    memcpy(&nowhere, ring_provider_use_over(&blkin_no_provider), sizeof(nowhere));
    nowhere.record = record_nowhere;
    ring_process.map = map;
    go_to_ring();
    blkin_gate_ = nowhere.events[BLKIN_EVENT_SPAN].enabled;
    blkin_set_service("osd.12", "10.0.0.1", 6800);
    blkin_init_thread();
    blkin_span_begin(&root, "client request", BLKIN_CLIENT, NULL);
    if (!blkin_span_is_recorded(&root))
        abort();
}

/* ---- warm ---- */

SUBJECT(run_nowhere, go_nowhere(), run_child_span)
SUBJECT(run_ring, go_to_ring(), run_child_span)

static void mode_warm(void)
{
    static const struct subject subjects[] = {
        {"nowhere_span", run_nowhere},
        {"ring_span", run_ring},
    };

    measure(&usual_batches, subjects, sizeof(subjects) / sizeof(subjects[0]));
}

/* ---- without an agent ---- */

BARE_SPANS(run_bare_root_span, BEGIN_ROOT)

static void mode_off(const char *name, const char *path)
{
    const struct subject subjects[] = {{"empty", run_empty}, {name, run_bare_root_span}};

    setenv("BLKIN_LTTNG", "no", 1);
    setenv(RING_VARIABLE, path, 1);
    blkin_init();
    measure(&usual_batches, subjects, 2);
}

/* ---- cold ---- */

#if defined(__x86_64__)
#include <x86intrin.h>

#define COLD_SPANS 5000
#define COLD_DATA  (3 << 19) /* more than a usual second level cache */
#define COLD_CODE  (128 << 10)

/* Touches data and code, as a server does between two requests. */
static void walk(volatile char *data, char *code)
{
    for (size_t i = 0; i < COLD_DATA; i += 64)
        data[i]++;
    for (size_t i = 0; i < COLD_CODE; i += 64)
        ((void (*)(void))(void *)(code + i))();
}

static char *make_code(void)
{
    char *code = mmap(NULL, COLD_CODE, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    for (size_t i = 0; i < COLD_CODE; i++)
        code[i] = (char)(i % 64 == 40 ? 0xc3 : 0x90); /* ret, nop */
    return code;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The mean of the middle half, because the counter of a virtual machine has steps of 10 ns. */
static double middle(uint64_t *ticks, size_t count)
{
    double sum = 0;

    qsort(ticks, count, sizeof(*ticks), compare);
    for (size_t i = count / 4; i < count * 3 / 4; i++)
        sum += (double)ticks[i];
    return sum / (double)(count / 2);
}

/* Both kinds run in one process, in random order. Two processes differ by more than the kinds do,
 * because their pages fall into different sets of the cache. */
static void mode_cold(void)
{
    enum { RING_BENCH_KINDS = 2, RING_BENCH_RUNS = 2 * RING_BENCH_KINDS };
    static const struct {
        const char *name;
        void (*where)(void);
    } kinds[RING_BENCH_KINDS] = {{"nowhere_cold", go_nowhere}, {"ring_cold", go_to_ring}};
    static uint64_t ticks[RING_BENCH_RUNS][COLD_SPANS];
    size_t taken[RING_BENCH_RUNS] = {0};
    const char *seed_text = getenv("BENCH_SEED");
    unsigned seed = seed_text ? (unsigned)atoi(seed_text) : 1, cpu;
    char *data = mmap(NULL, COLD_DATA, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    char *code = make_code();
    uint64_t own = UINT64_MAX, first_ns, first;
    double ns;

    go_to_ring();
    run_child_span(200000);
    for (unsigned i = 0; i < 1000; i++) {
        const uint64_t begin = __rdtscp(&cpu), took = __rdtscp(&cpu) - begin;

        own = took < own ? took : own;
    }
    first_ns = now_ns();
    first = __rdtsc();
    for (unsigned i = 0; i < RING_BENCH_RUNS * COLD_SPANS; i++) {
        unsigned run = (unsigned)rand_r(&seed) % RING_BENCH_RUNS;
        uint64_t begin;

        while (taken[run] == COLD_SPANS)
            run = (run + 1) % RING_BENCH_RUNS;
        kinds[run % RING_BENCH_KINDS].where();
        walk(data, code);
        begin = __rdtscp(&cpu);
        run_child_span(1);
        ticks[run][taken[run]++] = __rdtscp(&cpu) - begin - own;
    }
    ns = (double)(now_ns() - first_ns) / (double)(__rdtsc() - first);
    for (unsigned run = 0; run < RING_BENCH_RUNS; run++)
        printf("run 0 %u %s %.4f\n", run / RING_BENCH_KINDS, kinds[run % RING_BENCH_KINDS].name,
               ns * middle(ticks[run], COLD_SPANS));
}
#endif

/* ---- */

static int usage(void)
{
    fprintf(stderr,
            "usage: bench-ring MODE\n"
            "  warm                 ns per span: in a ring, and discarded (nowhere), in turns\n"
            "  cold                 the same, with the caches overwritten before each span\n"
            "  off PATH             ns per span without an agent; PATH: a socket that does not\n"
            "                       exist, or none\n"
            "  count KIND CALLS     no measurement, only calls; KIND: nowhere or ring\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
    if (strcmp(mode, "off") == 0 && argc == 3) {
        mode_off(strcmp(argv[2], "none") == 0 ? "off_span" : "awaiting_span", argv[2]);
        return 0;
    }
    prepare();
    if (strcmp(mode, "warm") == 0) {
        mode_warm();
    } else if (strcmp(mode, "count") == 0 && argc == 4) {
        void (*run)(unsigned) = strcmp(argv[2], "nowhere") == 0 ? run_nowhere : run_ring;

        run(0);
        run((unsigned)atoi(argv[3]));
#if defined(__x86_64__)
    } else if (strcmp(mode, "cold") == 0) {
        mode_cold();
#endif
    } else {
        return usage();
    }
    return 0;
}

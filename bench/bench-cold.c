/*
 * The time of a span where caches are cold, as in a daemon that does much else for each request.
 *
 *     bench-cold TURNS KIB SEED
 *
 * Before each span the program reads and writes KIB of data, its cache lines in random order, and
 * runs 128 KiB of code; not with 0 KIB. A turn is one span of each kind, in random order: whole
 * ones (begin, two annotations, two tags, end) and bare ones (begin, end), each in structs of the
 * usual size and in larger ones, and each of these twice. There are 128 structs of each, used in
 * turn, and never one after its neighbour.
 *
 * Prints a line for each: "run SEED PASS NAME NS". NS is the median over the turns: the mean of the
 * middle fifth, because some processors count time in steps of 10 ns.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "batch.h"
#include "spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

#define LINE       64 /* bytes */
#define CODE       (128 << 10)
#define RETURN     0xc3 /* an instruction */
#define STRUCTS    128
#define STRIDE     37   /* from one struct to the next that is used */
#define SIZE_LARGE 1152 /* that of all spans before 0.9 */

struct line {
    uint32_t next;
    uint32_t count;
    char rest[LINE - 8];
};

struct structs {
    size_t size; /* of one */
    char *memory;
    unsigned next;
};

struct kind {
    const char *name;
    uint64_t (*run)(void *room, size_t size); /* ticks */
    struct structs *structs;
    unsigned pass;
    double *ticks; /* by turns */
};

static struct structs usual[] = {{.size = sizeof(struct blkin_span)},
                                 {.size = sizeof(struct blkin_span)}};
static struct structs large[] = {{.size = SIZE_LARGE}, {.size = SIZE_LARGE}};

/* ---- what makes caches cold ---- */

static struct line *lines;
static char *code;

static void *map(size_t size, int protection)
{
    void *memory = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (memory == MAP_FAILED) {
        perror("bench-cold: mmap");
        exit(1);
    }
    return memory;
}

/* One ring of all lines in random order (Sattolo's shuffle). */
static void make_lines(uint32_t count)
{
    lines = map(count * sizeof(*lines), PROT_READ | PROT_WRITE);
    for (uint32_t i = 0; i < count; i++)
        lines[i].next = i;
    for (uint32_t i = count - 1; i > 0; i--) {
        const uint32_t other = (uint32_t)random() % i, next = lines[i].next;

        lines[i].next = lines[other].next;
        lines[other].next = next;
    }
}

static void make_cold(void)
{
    uint32_t at = 0;

    if (!lines)
        return;
    do {
        lines[at].count++;
        at = lines[at].next;
    } while (at != 0);
    for (size_t i = 0; i < CODE; i += LINE)
        ((void (*)(void))(uintptr_t)(code + i))();
}

/* ---- spans ---- */

static uint64_t ticks(void)
{
    unsigned cpu;
    uint64_t now;

    FORGET();
    now = __rdtscp(&cpu);
    FORGET();
    return now;
}

static uint64_t run_whole(void *room, size_t size)
{
    const uint64_t start = ticks();
    struct blkin_span *span =
        blkin_span_begin_in(room, size, "osd_op write", BLKIN_INTERNAL, &root);

    REST_OF_SPAN(span, 4096);
    return ticks() - start;
}

static uint64_t run_bare(void *room, size_t size)
{
    const uint64_t start = ticks();
    struct blkin_span *span =
        blkin_span_begin_in(room, size, "osd_op write", BLKIN_INTERNAL, &root);

    FORGET();
    blkin_span_end(span);
    return ticks() - start;
}

static struct kind kinds[] = {
    {"whole", run_whole, &usual[0], 0, NULL},       {"whole", run_whole, &usual[1], 1, NULL},
    {"whole_large", run_whole, &large[0], 0, NULL}, {"whole_large", run_whole, &large[1], 1, NULL},
    {"bare", run_bare, &usual[0], 0, NULL},         {"bare", run_bare, &usual[1], 1, NULL},
    {"bare_large", run_bare, &large[0], 0, NULL},   {"bare_large", run_bare, &large[1], 1, NULL},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static double run(const struct kind *kind)
{
    struct structs *structs = kind->structs;

    make_cold();
    return (double)kind->run(structs->memory + structs->next++ * STRIDE % STRUCTS * structs->size,
                             structs->size);
}

/* In random order, for a span is faster soon after another one in the same structs. */
static void run_turn(unsigned turn)
{
    struct kind *order[KINDS] = {NULL};

    for (size_t i = 0; i < KINDS; i++) {
        const size_t other = (size_t)random() % (i + 1);

        order[i] = order[other];
        order[other] = &kinds[i];
    }
    for (size_t i = 0; i < KINDS; i++)
        order[i]->ticks[turn] = run(order[i]);
}

/* What two readings of the counter take. */
static double least_ticks(void)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < 1000; i++) {
        const uint64_t start = ticks(), took = ticks() - start;

        least = took < least ? took : least;
    }
    return (double)least;
}

/* ---- figures ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *of, unsigned turns)
{
    const unsigned from = turns * 2 / 5, to = turns - from;
    double sum = 0;

    qsort(of, turns, sizeof(*of), compare);
    for (unsigned i = from; i < to; i++)
        sum += of[i];
    return sum / (to - from);
}

static void print(const char *seed, unsigned turns, double own, double ns)
{
    for (size_t i = 0; i < KINDS; i++)
        printf("run %s %u %s %.1f\n", seed, kinds[i].pass, kinds[i].name,
               (median(kinds[i].ticks, turns) - own) * ns);
}

static void prepare(unsigned turns, uint32_t kib)
{
    struct structs *const all[] = {&usual[0], &usual[1], &large[0], &large[1]};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        all[i]->memory = map(STRUCTS * all[i]->size, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < KINDS; i++)
        kinds[i].ticks = map(turns * sizeof(double), PROT_READ | PROT_WRITE);
    for (unsigned i = 0; i < 10 * STRUCTS; i++) /* still warm: the ring's pages are there */
        (void)run(&kinds[i % KINDS]);
    if (kib > 0)
        make_lines(kib * (1024 / LINE));
    code = map(CODE, PROT_READ | PROT_WRITE | PROT_EXEC);
    memset(code, RETURN, CODE);
}

int main(int argc, char **argv)
{
    const unsigned turns = argc == 4 ? (unsigned)atoi(argv[1]) : 0;
    uint64_t start_ns, start_ticks;
    double own;

    if (turns == 0) {
        fprintf(stderr, "usage: bench-cold TURNS KIB SEED\n");
        return 2;
    }
    pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
    blkin_init();
    blkin_span_begin(&root, "client request", BLKIN_CLIENT, NULL);
    if (!blkin_span_is_recorded(&root)) {
        fprintf(stderr, "bench-cold: no session is on\n");
        return 1;
    }
    srandom((unsigned)atoi(argv[3]));
    prepare(turns, (uint32_t)atoi(argv[2]));
    own = least_ticks();
    start_ns = now_ns();
    start_ticks = ticks();
    for (unsigned i = 0; i < turns; i++)
        run_turn(i);
    print(argv[3], turns, own, (double)(now_ns() - start_ns) / (double)(ticks() - start_ticks));
    return 0;
}

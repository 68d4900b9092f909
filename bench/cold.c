/*
 * Cold caches.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "cold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CODE   (128 << 10)
#define RETURN 0xc3 /* an instruction */

struct line {
    uint32_t next;
    uint32_t count;
    char rest[COLD_LINE - 8];
};

static struct line *lines;
static char *code;

double ticks_least(void)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < 1000; i++) {
        const uint64_t start = ticks(), took = ticks() - start;

        least = took < least ? took : least;
    }
    return (double)least;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double ticks_median(double *of, unsigned count)
{
    const unsigned from = count * 2 / 5, to = count - from;
    double sum = 0;

    qsort(of, count, sizeof(*of), compare);
    for (unsigned i = from; i < to; i++)
        sum += of[i];
    return sum / (to - from);
}

void *cold_map(size_t size, int protection)
{
    void *memory = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (memory == MAP_FAILED) {
        perror("bench: mmap");
        exit(1);
    }
    return memory;
}

/* One ring of all lines in random order (Sattolo's shuffle). */
static void make_lines(uint32_t count)
{
    lines = cold_map(count * sizeof(*lines), PROT_READ | PROT_WRITE);
    for (uint32_t i = 0; i < count; i++)
        lines[i].next = i;
    for (uint32_t i = count - 1; i > 0; i--) {
        const uint32_t other = (uint32_t)random() % i, next = lines[i].next;

        lines[i].next = lines[other].next;
        lines[other].next = next;
    }
}

void cold_prepare(uint32_t kib)
{
    if (kib == 0)
        return;
    make_lines(kib * (1024 / COLD_LINE));
    code = cold_map(CODE, PROT_READ | PROT_WRITE | PROT_EXEC);
    memset(code, RETURN, CODE);
}

void cold(void)
{
    uint32_t at = 0;

    if (!lines)
        return;
    do {
        lines[at].count++;
        at = lines[at].next;
    } while (at != 0);
    for (size_t i = 0; i < CODE; i += COLD_LINE)
        ((void (*)(void))(uintptr_t)(code + i))();
}

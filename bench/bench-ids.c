/*
 * Are ids unique? 10^9 of them, from 8 threads in each of 5 processes: a parent, three children
 * that are forked when it has ids already, and a grandchild. Takes 9 GB of memory, and some
 * minutes.
 *
 * Ids go to buckets by their top bits, each thread has its own part of a bucket; equal ids are in
 * the same bucket, which is sorted. Prints "ids_unique DUPLICATES IDS 0".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <zipkin_c.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 5
#define THREADS   8
#define MAKERS    (PROCESSES * THREADS)
#define IDS_EACH  (1000000000 / MAKERS)
#define BUCKETS   256
#define PART      (IDS_EACH / BUCKETS + 4096) /* 13 standard deviations above the mean */

struct part {
    uint32_t count;
    uint64_t ids[PART];
};

static struct part (*parts)[MAKERS]; /* [BUCKETS][MAKERS], shared by the processes */

static void *make_ids(void *argument)
{
    const size_t maker = (size_t)(uintptr_t)argument;
    struct blkin_trace_info info;

    for (unsigned i = 0; i < IDS_EACH; i++) {
        struct part *part;

        blkin_init_trace_info(&info);
        part = &parts[(uint64_t)info.trace_id >> 56][maker];
        if (part->count == PART) {
            fprintf(stderr, "bench-ids: the ids are not evenly distributed\n");
            _exit(1);
        }
        part->ids[part->count++] = (uint64_t)info.trace_id;
    }
    return NULL;
}

/* The share of process number n; one fork before its own ids, and one after the first. */
static void make_process_ids(size_t process)
{
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, make_ids,
                           (void *)(uintptr_t)(process * THREADS + i)) != 0)
            _exit(1);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void fork_one(size_t process, int has_child)
{
    int status = 0;
    const pid_t pid = fork();

    if (pid == 0) {
        if (has_child)
            fork_one(process + 1, 0);
        make_process_ids(process);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "bench-ids: a child failed\n");
        _exit(1);
    }
}

/* ---- duplicates ---- */

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static uint64_t duplicates_in(struct part bucket[MAKERS], uint64_t *ids, uint64_t *all)
{
    uint64_t found = 0;
    size_t count = 0;

    for (size_t i = 0; i < MAKERS; i++) {
        memcpy(ids + count, bucket[i].ids, bucket[i].count * sizeof(*ids));
        count += bucket[i].count;
    }
    qsort(ids, count, sizeof(*ids), compare);
    for (size_t i = 1; i < count; i++)
        found += ids[i] == ids[i - 1];
    *all += count;
    return found;
}

int main(void)
{
    const size_t size = sizeof(struct part) * BUCKETS * MAKERS;
    uint64_t *ids = malloc(sizeof(uint64_t) * PART * MAKERS);
    uint64_t found = 0, all = 0;
    struct blkin_trace_info info;

    parts =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (parts == MAP_FAILED || !ids) {
        perror("bench-ids: memory");
        return 1;
    }
    blkin_init_trace_info(&info);
    fork_one(1, 0);
    fork_one(2, 0);
    fork_one(3, 1);
    make_process_ids(0);
    for (size_t i = 0; i < BUCKETS; i++)
        found += duplicates_in(parts[i], ids, &all);
    printf("ids_unique %llu %llu 0\n", (unsigned long long)found, (unsigned long long)all);
    return all == (uint64_t)IDS_EACH * MAKERS ? 0 : 1;
}

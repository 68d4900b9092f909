/*
 * Many writers of one memory. No record is torn.
 *
 * Kills: processes that write are killed at random moments, again and again. All finished records
 * are in the rings, and the next processes can write.
 *
 * Writers: eight threads and three processes write at once, while a reader copies the rings all the
 * time. A round fits into a ring. After each round, each of its records is in the rings once.
 *
 * SEED=N repeats a run. ROUNDS=N sets the number of rounds of kills, and RECORDS=N the number of
 * records of the writers, such as 1000000000.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "waits.h"
#include "libblkin/ring/ring_write.h"
#include "libblkin-ring/parts/numbered.h"
#include "libblkin-ring/parts/rings.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct rings memory;
static const struct ring_map *map;

static void open_rings(uint64_t room)
{
    const char *wrong;

    rings_make(&memory, room, RING_BYTES_MIN);
    map = ring_map_new(memory.descriptor, memory.bytes, &wrong);
}

/* ---- kills ---- */

#define KILLS_WRITERS 3
#define ROOM          (1 << 24) /* bytes of a ring */
#define KILLS_USUAL   60        /* rounds */

static uint64_t *finished; /* the last record that each writer has finished */

static void write_on(uint64_t writer)
{
    uint64_t state = UINT64_C(88172645463325252) + writer;
    struct numbered record;

    ring_write_after_fork();
    for (uint64_t number = 1;; number++) {
        const size_t length = numbered_make(&record, writer, number, &state);

        if (ring_write(map, RING_EVENTS, ring_kind(1), &record, length))
            __atomic_store_n(&finished[writer], number, __ATOMIC_RELEASE);
    }
}

struct kills_seen {
    uint64_t torn;
    uint64_t first_at[RING_CPUS_MAX]; /* by ring; older records are of an earlier round */
    uint64_t count[KILLS_WRITERS], newest[KILLS_WRITERS];
};

static void see(void *context, const struct rings_record *record)
{
    struct kills_seen *seen = context;
    struct numbered numbered;

    if (record->at < seen->first_at[record->ring])
        return;
    if (!numbered_is_whole(&numbered, record->entry.payload, record->entry.length) ||
        numbered.writer >= KILLS_WRITERS) {
        seen->torn++;
        return;
    }
    seen->count[numbered.writer]++;
    if (numbered.number > seen->newest[numbered.writer])
        seen->newest[numbered.writer] = numbered.number;
}

/* Returns the number of writers that were killed after a record's commit, and before its number was
 * in finished[]. */
static unsigned play_round(unsigned life_us)
{
    struct kills_seen seen = {0};
    struct rings_walker walk = {0};
    pid_t writers[KILLS_WRITERS];
    unsigned in_between = 0;
    bool fits = true;

    for (uint32_t ring = 0; ring < memory.cpus; ring++)
        seen.first_at[ring] = memory.heads[ring].committed;
    memset(finished, 0, KILLS_WRITERS * sizeof(*finished));
    for (uint64_t i = 0; i < KILLS_WRITERS; i++) {
        writers[i] = fork();
        if (writers[i] == 0)
            write_on(i);
    }
    pause_us(life_us);
    for (unsigned i = 0; i < KILLS_WRITERS; i++)
        kill(writers[i], SIGKILL);
    for (unsigned i = 0; i < KILLS_WRITERS; i++)
        CHECK(waitpid(writers[i], NULL, 0) == writers[i]);
    for (uint32_t ring = 0; ring < memory.cpus; ring++) {
        fits &= memory.heads[ring].committed - seen.first_at[ring] < ROOM - 2 * RING_RECORD_MAX;
        rings_walk(&memory, ring, &walk, see, &seen);
    }
    CHECK(walk.bad == 0 && seen.torn == 0);
    for (unsigned i = 0; fits && i < KILLS_WRITERS; i++) {
        CHECK(seen.newest[i] >= finished[i]);
        CHECK(seen.newest[i] <= finished[i] + 1);
        CHECK(seen.count[i] == seen.newest[i]);
        in_between += seen.newest[i] > finished[i];
    }
    return in_between;
}

TEST(test_kills)
{
    const char *rounds = getenv("ROUNDS");
    const unsigned count = rounds ? (unsigned)atoi(rounds) : KILLS_USUAL;
    uint64_t state = seed_begin();
    unsigned in_between = 0;

    open_rings(ROOM);
    finished = mmap(NULL, KILLS_WRITERS * sizeof(*finished), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < count && !check_failures; i++)
        in_between += play_round(500 + seed_next(&state) % 8000);
    printf("%u times %u writers killed; %u of them between a commit and its note\n", count,
           KILLS_WRITERS, in_between);
    CHECK(memory.head->lost == 0);
    rings_close(&memory);
}

/* ---- writers ---- */

#define WRITERS_THREADS 8
#define PROCESSES       3
#define WRITERS         (WRITERS_THREADS + PROCESSES)
#define ROUND           1500      /* records of a writer in a round */
#define WRITERS_ROOM    (1 << 23) /* bytes of a ring */
#define DEFAULT         2000000   /* records of all rounds */

_Static_assert(WRITERS *ROUND *(sizeof(struct numbered) + 16) < WRITERS_ROOM - RING_RECORD_MAX,
               "a round must fit into one ring");

struct writers_shared {
    pthread_barrier_t begin, end;
    uint32_t at_work; /* writers that have not finished their round */
    uint64_t rounds;
};

static struct writers_shared *shared;

static void write_rounds(uint64_t writer)
{
    uint64_t state = UINT64_C(88172645463325252) + writer;
    struct numbered record;

    for (uint64_t round = 0; round < shared->rounds; round++) {
        pthread_barrier_wait(&shared->begin);
        for (uint64_t i = 0; i < ROUND; i++) {
            const size_t length = numbered_make(&record, writer, round * ROUND + i, &state);

            (void)ring_write(map, RING_EVENTS, ring_kind(1), &record, length);
        }
        (void)__atomic_sub_fetch(&shared->at_work, 1, __ATOMIC_RELEASE);
        pthread_barrier_wait(&shared->end);
    }
}

static void *thread(void *writer)
{
    write_rounds((uintptr_t)writer);
    return NULL;
}

struct writers_seen {
    uint64_t records, torn;
    uint64_t round; /* the current round; all other records are old */
    uint64_t found, twice;
    uint8_t is_found[WRITERS][ROUND];
};

static void check_record(void *context, const struct rings_record *record)
{
    struct writers_seen *seen = context;
    struct numbered numbered;
    uint64_t number;

    seen->records++;
    if (record->entry.event != 1 ||
        !numbered_is_whole(&numbered, record->entry.payload, record->entry.length) ||
        numbered.writer >= WRITERS) {
        seen->torn++;
        return;
    }
    number = numbered.number - seen->round * ROUND;
    if (number >= ROUND)
        return;
    seen->found++;
    seen->twice += seen->is_found[numbered.writer][number]++;
}

static void begin_processes(pid_t *processes)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        processes[i] = fork();
        if (processes[i] == 0) {
            ring_write_after_fork();
            write_rounds(WRITERS_THREADS + i);
            _exit(0);
        }
    }
}

static void make_shared(void)
{
    pthread_barrierattr_t attributes;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->begin, &attributes, WRITERS + 1);
    pthread_barrier_init(&shared->end, &attributes, WRITERS + 1);
}

TEST(test_writers)
{
    const char *records = getenv("RECORDS");
    static struct writers_seen during, after;
    pid_t processes[PROCESSES];
    pthread_t threads[WRITERS_THREADS];
    struct rings_walker walk = {0};
    uint64_t copies = 0;
    int status;

    open_rings(WRITERS_ROOM);
    make_shared();
    shared->rounds = (records ? strtoull(records, NULL, 10) : DEFAULT) / (WRITERS * ROUND) + 1;
    begin_processes(processes);
    for (uintptr_t i = 0; i < WRITERS_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, thread, (void *)i) == 0);
    during.round = UINT64_MAX / ROUND / 2; /* a round that does not exist */
    for (uint64_t round = 0; round < shared->rounds; round++) {
        shared->at_work = WRITERS;
        pthread_barrier_wait(&shared->begin);
        while (__atomic_load_n(&shared->at_work, __ATOMIC_ACQUIRE)) {
            for (uint32_t ring = 0; ring < memory.cpus; ring++, copies++)
                rings_walk(&memory, ring, &walk, check_record, &during);
        }
        pthread_barrier_wait(&shared->end);
        memset(&after, 0, sizeof(after));
        after.round = round;
        for (uint32_t ring = 0; ring < memory.cpus; ring++)
            rings_walk(&memory, ring, &walk, check_record, &after);
        CHECK(after.found == WRITERS * ROUND && after.twice == 0 && after.torn == 0);
        if (check_failures)
            break;
    }
    printf(
        "%llu records written, %llu read in %llu copies meanwhile: %llu torn, %llu walks broken\n",
        (unsigned long long)shared->rounds * WRITERS * ROUND, (unsigned long long)during.records,
        (unsigned long long)copies, (unsigned long long)during.torn, (unsigned long long)walk.bad);
    CHECK(during.records > 0 && during.torn == 0 && walk.bad == 0);
    CHECK(memory.head->lost == 0);
    for (unsigned i = 0; i < PROCESSES; i++) {
        if (check_failures)
            kill(processes[i], SIGKILL);
        CHECK(waitpid(processes[i], &status, 0) == processes[i] && status == 0);
    }
    rings_close(&memory);
}

int main(void)
{
    if (!ring_write_init()) {
        puts("no restartable sequences here");
        return 77;
    }
    check_run();
    return check_status();
}

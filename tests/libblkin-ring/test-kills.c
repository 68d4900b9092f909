/*
 * Kills processes that write into rings at random moments, again and again, with the same memory.
 * All finished records are in the rings, no record is torn, and the next processes can write.
 *
 * SEED=N repeats a run. ROUNDS=N sets the number of rounds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "waits.h"
#include "libblkin/ring/ring_write.h"
#include "libblkin-ring/parts/rings.h"
#include "libblkin-ring/parts/numbered.h"
#include "seed.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILLS_WRITERS 3
#define ROOM          (1 << 24) /* bytes of a ring */
#define KILLS_USUAL   60        /* rounds */

static uint64_t *finished; /* the last record that each writer has finished */
static struct rings memory;
static const struct ring_map *map;

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
    uint64_t first_at[64]; /* positions by ring; older records are of an earlier round */
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

int main(void)
{
    const char *rounds = getenv("ROUNDS"), *wrong;
    uint64_t state;
    const unsigned count = rounds ? (unsigned)atoi(rounds) : KILLS_USUAL;
    unsigned in_between = 0;

    if (!ring_write_init() || sysconf(_SC_NPROCESSORS_CONF) > 64) {
        puts("no restartable sequences here, or more CPUs than this test has room for");
        return 77;
    }
    state = seed_begin();
    rings_make(&memory, ROOM, RING_BYTES_MIN);
    map = ring_map_new(memory.descriptor, memory.bytes, &wrong);
    finished = mmap(NULL, KILLS_WRITERS * sizeof(*finished), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < count && !check_failures; i++)
        in_between += play_round(500 + seed_next(&state) % 8000);
    printf("%u times %u writers killed; %u of them between a commit and its note\n", count,
           KILLS_WRITERS, in_between);
    CHECK(memory.head->lost == 0);
    return check_status();
}

/*
 * Following rings: order, grace, losses, memories that come and go.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "check.h"
#include "seed.h"
#include "tools/rings/follow.h"
#include "tracepoints/format/provider_table.h"
#include "writer.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPUS           3
#define GRACE          INT64_C(5000000)
#define FOLLOW_WRITERS 4
#define FOLLOW_EVENTS  100000

#define FOLLOW_RECORD 80 /* bytes of a record of writer_put_original() */
#define FOLLOW_OFFSET (1700000000 * SECOND)
#define HOUR          (3600 * SECOND)

static struct {
    uint64_t events, losses;
    int64_t last_ns, lost_begin_ns, lost_end_ns;
    bool is_out_of_order;
    uint64_t last[FOLLOW_WRITERS], missing; /* last: the newest event of each writer */
} seen;
static struct memory memory;
static struct follow *follow;
static int64_t begun_ns;

static void see(void *context, struct event *event)
{
    CHECK(context == &seen);
    seen.events++;
    if (event->time_ns < seen.last_ns)
        seen.is_out_of_order = true;
    seen.last_ns = event->time_ns;
    if (event->trace_id < FOLLOW_WRITERS) {
        seen.missing += event->span_id - seen.last[event->trace_id] - 1;
        seen.last[event->trace_id] = event->span_id;
    }
}

static void see_loss(void *context, int64_t begin_ns, int64_t end_ns)
{
    CHECK(context == &seen && begin_ns <= end_ns);
    seen.losses++;
    seen.lost_begin_ns = begin_ns;
    seen.lost_end_ns = end_ns;
}

/* Begins to follow nothing. */
static void begin(int64_t grace_ns, uint64_t bytes)
{
    const struct follow_calls calls = {see, see_loss, &seen};

    memset(&seen, 0, sizeof(seen));
    memory = writer_memory(0, CPUS, bytes);
    begun_ns = clock_ns();
    follow = follow_new(&calls, begun_ns, grace_ns, FOLLOW_OFFSET);
}

static void end(void)
{
    follow_free(follow);
    memory_close(&memory);
}

/* Events of two memories' rings come in order. Young events wait, and no event is given twice. */
TEST(test_order)
{
    uint64_t seed = seed_begin();
    const uint64_t count = 2 * CPUS * 101 - 1;
    struct memory other;

    begin(HOUR, RING_BYTES_MIN);
    other = writer_memory(0, CPUS, RING_BYTES_MIN);
    CHECK(follow_add(follow, &memory, false) && follow_add(follow, &other, true));
    for (unsigned i = 0; i < 2 * CPUS; i++) {
        const struct writer writer = writer_alone(i & 1 ? &other : &memory, i / 2);
        int64_t ns = begun_ns - 1000000;

        /* an event whose time is impossible: it does not wait */
        writer_put_original(&writer, begun_ns + 2 * HOUR, FOLLOW_WRITERS, 1);
        for (unsigned n = 0; n < 100; n++) {
            ns += (int64_t)(seed_next(&seed) % 1000);
            writer_put_original(&writer, ns, FOLLOW_WRITERS, 1);
        }
    }
    follow_begin_at(follow, &memory, CPUS - 1, FOLLOW_RECORD); /* after the impossible event */
    follow_begin_at(follow, &memory, CPUS, FOLLOW_RECORD);     /* there is no such ring */
    follow_begin_at(follow, NULL, 0, FOLLOW_RECORD);
    (void)follow_look(follow);
    CHECK(follow_look(follow) <= clock_ns() - HOUR + FOLLOW_OFFSET);
    CHECK(seen.events == 2 * CPUS - 1 && follow_counts(follow).rings.records == seen.events);
    CHECK(follow_position(follow, &other, CPUS - 1) == FOLLOW_RECORD);
    CHECK(follow_look_at_all(follow) >= begun_ns + FOLLOW_OFFSET);
    CHECK(seen.events == count && seen.losses == 0 && !seen.is_out_of_order);
    CHECK(follow_look(follow) >= begun_ns + FOLLOW_OFFSET); /* the result does not go back */
    CHECK(seen.events == count && follow_counts(follow).rings.records == count);
    CHECK(follow_counts(follow).rings.read == count * FOLLOW_RECORD);
    CHECK(follow_position(follow, &memory, 0) == 101 * FOLLOW_RECORD);
    CHECK(follow_position(follow, &memory, CPUS) == 0 && follow_position(follow, NULL, 0) == 0);
    end();
    memory_close(&other);
}

TEST(test_unusable_records)
{
    struct writer events, wrong;
    char newer[sizeof(struct blkin_span_event) + 4] = "";
    struct follow_counts counts;
    int64_t looked_ns;

    begin(GRACE, RING_BYTES_MIN);
    events = writer_alone(&memory, 0);
    wrong = writer_alone(&memory, CPUS - 1);
    writer_put_original(&events, begun_ns, 0, 1);
    CHECK(follow_add(follow, &memory, true)); /* earlier records are not given */
    *writer_committed(&wrong) = 40;           /* without any record */
    (void)writer_put(&events, 200, 1, "", 1);
    (void)writer_put(&events, 0, 1, "", 1);
    (void)writer_put(&events, BLKIN_EVENT_SLOW, 1, "", 1); /* alarms have their own ring */
    newer[sizeof(newer) - 3] = '0' + BLKIN_FORMAT_VERSION + 1;
    (void)writer_put(&events, BLKIN_EVENT_SPAN, 1, newer, sizeof(newer));
    looked_ns = follow_look(follow);
    CHECK(follow_done_ns(follow) + FOLLOW_OFFSET == looked_ns);
    counts = follow_counts(follow);
    CHECK(seen.events == 0 && counts.rings.damaged == 40 && counts.rings.jumps == 0);
    CHECK(counts.foreign == 2 && counts.unreadable == 1 && counts.newer == 1);
    CHECK(looked_ns >= begun_ns - GRACE + FOLLOW_OFFSET &&
          looked_ns <= clock_ns() - GRACE + FOLLOW_OFFSET);
    *writer_committed(&wrong) = 16;
    for (unsigned n = 1; n <= 3000; n++)
        writer_put_original(&events, clock_ns(), 0, n);
    follow_drop(follow, &memory); /* the memory is read to its end first */
    counts = follow_counts(follow);
    CHECK(seen.losses == 1 && seen.last[0] == 3000 && seen.events + seen.missing == 3000);
    CHECK(seen.lost_begin_ns == looked_ns && seen.lost_end_ns >= looked_ns + GRACE);
    CHECK(seen.lost_end_ns <= clock_ns() + FOLLOW_OFFSET &&
          counts.rings.records == seen.events + 4);
    CHECK(counts.rings.read + counts.rings.overwritten + FOLLOW_RECORD ==
          memory_written(&memory) - 16);
    CHECK(counts.rings.overwritten > 0 && counts.rings.damaged == 40 && counts.rings.jumps == 1);
    CHECK(follow_look(follow) > looked_ns && follow_position(follow, &memory, 0) == 0);
    end();
}

/* The more records came since the last look, the sooner the next look is due. */
TEST(test_pace)
{
    int64_t looked_ms, next_ms;
    struct writer writer;

    begin(GRACE, RING_BYTES_MIN);
    writer = writer_alone(&memory, 1);
    CHECK(follow_add(follow, &memory, true));
    (void)follow_look(follow);
    CHECK(follow_next_ms(follow, 20) == 20);
    looked_ms = clock_ms();
    while (clock_ms() - looked_ms < 100)
        (void)poll(NULL, 0, 1);
    while (memory_written(&memory) < RING_BYTES_MIN / 2)
        writer_put_original(&writer, clock_ns(), 0, 1);
    (void)follow_look_at_all(follow);
    next_ms = follow_next_ms(follow, HOUR / MS);
    CHECK(next_ms >= 49 && next_ms <= (clock_ms() - begun_ns / 1000000) / 2 + 1);
    CHECK(follow_next_ms(follow, 20) == 20);
    while (memory_written(&memory) < RING_BYTES_MIN * 2)
        writer_put_original(&writer, clock_ns(), 0, 1);
    (void)follow_look_at_all(follow);
    CHECK(follow_next_ms(follow, HOUR / MS) == 0);
    (void)follow_look_at_all(follow);
    CHECK(follow_next_ms(follow, 20) == 20);
    end();
}

/* Each event is seen or overwritten. */
static void check_writers(uint64_t bytes, bool must_be_whole)
{
    int *locks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct follow_counts counts;
    int running = FOLLOW_WRITERS;

    begin(GRACE, bytes);
    CHECK(follow_add(follow, &memory, true));
    for (unsigned i = 0; i < FOLLOW_WRITERS; i++) {
        const struct writer writer = {memory_ring(&memory, i % CPUS), &locks[i % CPUS]};

        if (fork() != 0)
            continue;
        for (uint64_t n = 1; n <= FOLLOW_EVENTS; n++)
            writer_put_original(&writer, clock_ns(), i, n);
        _exit(0);
    }
    while (running) {
        (void)poll(NULL, 0, 10);
        (void)follow_look(follow);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            running--;
    }
    (void)follow_look_at_all(follow);
    counts = follow_counts(follow);
    for (unsigned i = 0; i < FOLLOW_WRITERS; i++)
        seen.missing += FOLLOW_EVENTS - seen.last[i];
    CHECK(seen.events + seen.missing == FOLLOW_WRITERS * FOLLOW_EVENTS);
    CHECK((seen.missing == 0) == (counts.rings.overwritten == 0));
    CHECK((seen.losses == 0) == (counts.rings.overwritten == 0));
    CHECK(counts.rings.damaged == 0 && counts.rings.jumps == 0 && counts.unreadable == 0);
    CHECK(counts.rings.read + counts.rings.overwritten == memory_written(&memory));
    CHECK(!must_be_whole || seen.missing == 0);
    end();
    (void)munmap(locks, 4096);
}

TEST(test_writers)
{
    check_writers(UINT64_C(1) << 25, true);
    check_writers(RING_BYTES_MIN, false);
}

CHECK_MAIN

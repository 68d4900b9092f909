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

struct follow_seen {
    uint64_t events, losses;
    int64_t last_ns;
    bool is_out_of_order;
    uint64_t last[FOLLOW_WRITERS], missing; /* last: the newest event of each writer */
};

static void see(void *context, struct event *event)
{
    struct follow_seen *seen = context;

    seen->events++;
    if (event->time_ns < seen->last_ns)
        seen->is_out_of_order = true;
    seen->last_ns = event->time_ns;
    if (event->trace_id < FOLLOW_WRITERS) {
        seen->missing += event->span_id - seen->last[event->trace_id] - 1;
        seen->last[event->trace_id] = event->span_id;
    }
}

static void see_loss(void *context, int64_t begin_ns, int64_t end_ns)
{
    struct follow_seen *seen = context;

    CHECK(begin_ns <= end_ns);
    seen->losses++;
}

static struct follow *new_follow(struct follow_seen *seen, int64_t grace_ns)
{
    const struct follow_calls calls = {see, see_loss, seen};

    memset(seen, 0, sizeof(*seen));
    return follow_new(&calls, clock_ns(), grace_ns, ring_clock_offset());
}

#define HOUR INT64_C(3600000000000)

/* Events of two memories' rings come in order. Young events wait, and no event is given twice. */
TEST(test_order)
{
    uint64_t seed = seed_begin();
    struct memory memories[2];
    struct follow_seen seen;
    struct follow *follow = new_follow(&seen, HOUR);
    const int64_t now_ns = clock_ns();
    int lock = 0;

    memories[0] = writer_memory(0, CPUS, RING_BYTES_MIN);
    memories[1] = writer_memory(0, CPUS, RING_BYTES_MIN);
    CHECK(follow_add(follow, &memories[0], false) && follow_add(follow, &memories[1], true));
    for (unsigned i = 0; i < 2 * CPUS; i++) {
        const struct writer writer = {memory_ring(&memories[i & 1], i / 2), &lock};
        int64_t ns = now_ns - 1000000;

        /* an event whose time is impossible: it does not wait */
        writer_put_original(&writer, now_ns + 2 * HOUR, FOLLOW_WRITERS, 1);
        for (unsigned n = 0; n < 100; n++) {
            ns += (int64_t)(seed_next(&seed) % 1000);
            writer_put_original(&writer, ns, FOLLOW_WRITERS, 1);
        }
    }
    (void)follow_look(follow);
    (void)follow_look(follow);
    CHECK(seen.events == 2 * CPUS && follow_counts(follow).rings.records == seen.events);
    (void)follow_look_at_all(follow);
    CHECK(seen.events == 2 * CPUS * 101 && seen.losses == 0);
    CHECK(!seen.is_out_of_order);
    (void)follow_look_at_all(follow);
    CHECK(follow_counts(follow).rings.records == 2 * CPUS * 101);
    follow_free(follow);
    memory_close(&memories[0]);
    memory_close(&memories[1]);
}

TEST(test_unusable_records)
{
    struct memory memory;
    struct follow_seen seen;
    struct follow *follow = new_follow(&seen, GRACE);
    char newer[sizeof(struct blkin_span_event) + 4] = "";
    int lock = 0;
    struct writer events;
    struct follow_counts counts;

    memory = writer_memory(0, CPUS, RING_BYTES_MIN);
    events = (struct writer){memory_ring(&memory, 0), &lock};
    writer_put_original(&events, clock_ns(), 0, 1);
    CHECK(follow_add(follow, &memory, true)); /* earlier records are not given */
    (void)writer_put(&events, 200, 1, "", 1);
    (void)writer_put(&events, 0, 1, "", 1);
    (void)writer_put(&events, BLKIN_EVENT_SLOW, 1, "", 1); /* alarms have their own ring */
    newer[sizeof(newer) - 3] = '0' + BLKIN_FORMAT_VERSION + 1;
    (void)writer_put(&events, BLKIN_EVENT_SPAN, 1, newer, sizeof(newer));
    (void)follow_look(follow);
    counts = follow_counts(follow);
    CHECK(seen.events == 0);
    CHECK(counts.foreign == 2 && counts.unreadable == 1 && counts.newer == 1);
    for (unsigned n = 1; n <= 3000; n++)
        writer_put_original(&events, clock_ns(), 0, n);
    follow_drop(follow, &memory); /* the memory is read to its end first */
    counts = follow_counts(follow);
    CHECK(seen.losses == 1 && seen.last[0] == 3000 && seen.events + seen.missing == 3000);
    CHECK(counts.rings.overwritten > 0 && counts.rings.records == seen.events + 4);
    memory_close(&memory);
    (void)follow_look(follow);
    follow_free(follow);
}

/* The more records came since the last look, the sooner the next look is due. */
TEST(test_pace)
{
    const int64_t begin_ms = clock_ms(), hour_ms = HOUR / 1000000;
    int64_t looked_ms;
    struct memory memory;
    struct follow_seen seen;
    struct follow *follow = new_follow(&seen, GRACE);
    struct writer writer;
    int64_t next_ms;
    int lock = 0;

    memory = writer_memory(0, CPUS, RING_BYTES_MIN);
    writer = (struct writer){memory_ring(&memory, 1), &lock};
    CHECK(follow_add(follow, &memory, true));
    (void)follow_look(follow);
    CHECK(follow_next_ms(follow, 20) == 20);
    looked_ms = clock_ms();
    while (clock_ms() - looked_ms < 100)
        (void)poll(NULL, 0, 1);
    while (memory_written(&memory) < RING_BYTES_MIN / 2)
        writer_put_original(&writer, clock_ns(), 0, 1);
    (void)follow_look_at_all(follow);
    next_ms = follow_next_ms(follow, hour_ms);
    CHECK(next_ms >= 40 && next_ms <= (clock_ms() - begin_ms) / 2 + 1);
    CHECK(follow_next_ms(follow, 20) == 20);
    while (memory_written(&memory) < RING_BYTES_MIN * 2)
        writer_put_original(&writer, clock_ns(), 0, 1);
    (void)follow_look_at_all(follow);
    CHECK(follow_next_ms(follow, hour_ms) == 0);
    (void)follow_look_at_all(follow);
    CHECK(follow_next_ms(follow, 20) == 20);
    follow_free(follow);
    memory_close(&memory);
}

/* Each event is seen or overwritten. */
static void check_writers(uint64_t bytes, bool must_be_whole)
{
    int *locks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct memory memory;
    struct follow_seen seen;
    struct follow *follow = new_follow(&seen, GRACE);
    struct follow_counts counts;
    int running = FOLLOW_WRITERS;

    memory = writer_memory(0, CPUS, bytes);
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
    printf("%llu of %u events seen, %llu bytes overwritten\n", (unsigned long long)seen.events,
           FOLLOW_WRITERS * FOLLOW_EVENTS, (unsigned long long)counts.rings.overwritten);
    follow_free(follow);
    memory_close(&memory);
    (void)munmap(locks, 4096);
}

TEST(test_writers)
{
    check_writers(UINT64_C(1) << 25, true);
    check_writers(RING_BYTES_MIN, false);
}

CHECK_MAIN

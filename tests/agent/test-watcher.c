/*
 * Alarms in rings: each alarm is given once, from the ring of any CPU and after any restart of the
 * agent. Overwritten alarms are counted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "plugin/starvation/starve.h"
#include "rings/writer.h"
#include "seed.h"
#include "tools/agent/askers.h"
#include "tools/agent/watcher.h"
#include "tools/rings/ring_read.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/provider_table.h"

#define WATCHER_CPUS 2

static struct memory memory, other;
static const struct memory *written_memory = &memory; /* the next alarms are written here */
static struct alarms_seen alarms_seen;
static struct watcher watcher;
static struct alarm last;
static char given[4096]; /* "PID:NUMBER " of each given alarm */
static unsigned count;

static void record_given(void *context, const struct alarm *alarm)
{
    (void)context;
    count++;
    last = *alarm;
    if (strlen(given) < sizeof(given) - 32)
        sprintf(given + strlen(given), "%u:%u ", alarm->pid, alarm->sequence);
}

/* ---- rings ----------------------------------------------------------------------------------- */

static struct writer writer_of(uint32_t cpu)
{
    static int locks[WATCHER_CPUS];

    return (struct writer){memory_ring(written_memory, WATCHER_CPUS + cpu), &locks[cpu]};
}

/* Writes an event to the ring of alarms of a CPU. */
static void write_event(uint32_t cpu, const struct blkin_slow_event *event, const char *why,
                        const char *name, const char *service)
{
    const struct writer writer = writer_of(cpu);
    char payload[RING_RECORD_MAX], *at = payload;

    memcpy(at, event, sizeof(*event));
    at = stpcpy(at + sizeof(*event), why) + 1;
    at = stpcpy(at, name) + 1;
    at = stpcpy(at, service) + 1;
    (void)writer_put(&writer, BLKIN_EVENT_SLOW, event->pid, payload, (size_t)(at - payload));
}

/* Writes the alarm of a program with that pid and number. */
static void write_alarm(uint32_t cpu, uint32_t pid, uint32_t sequence, uint64_t monotonic)
{
    const struct blkin_slow_event event = {.mark = BLKIN_SLOW_MARK,
                                           .trace_id = monotonic ? 0x1000 + sequence : 0,
                                           .duration = 30 * MS,
                                           .monotonic = monotonic,
                                           .pid = pid,
                                           .sequence = sequence};

    write_event(cpu, &event, "*>20ms", "write", "osd.3");
}

/* ---- the agent ------------------------------------------------------------------------------- */

/* Starts a new watcher that reads the saved state of the former watcher; NULL: no state. */
static void start(json_t *saved)
{
    memset(&alarms_seen, 0, sizeof(alarms_seen));
    alarms_seen_read(&alarms_seen, saved);
    json_decref(saved);
    watcher = (struct watcher){.alarms_seen = &alarms_seen, .alarm = record_given};
    watcher_add(&watcher, &memory, 1000, NULL);
}

static void restart(void)
{
    json_t *saved = alarms_seen_json(&alarms_seen);

    watcher_drop(&watcher, &memory);
    start(saved);
}

static void begin(void)
{
    memory = writer_memory(0, WATCHER_CPUS, RING_BYTES_MIN);
    start(NULL);
}

static void end(void)
{
    watcher_drop(&watcher, &memory);
    memory_close(&memory);
}

/* Lets the watcher look once. Compares the alarms that it gives, unless `alarms` is NULL. */
static struct watcher_counts look(const char *alarms)
{
    struct watcher_counts counts;

    given[0] = '\0';
    count = 0;
    counts = watcher_look(&watcher);
    if (alarms)
        CHECK_TEXT(given, alarms);
    return counts;
}

static void expect(const char *alarms, uint64_t lost)
{
    const struct watcher_counts counts = look(alarms);

    if (counts.lost != lost)
        fprintf(stderr, "lost %llu, expected %llu\n", (unsigned long long)counts.lost,
                (unsigned long long)lost);
    CHECK(counts.lost == lost && counts.newer == 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(test_fields)
{
    const struct blkin_slow_event event = {.mark = BLKIN_SLOW_MARK,
                                           .trace_id = 0x1111,
                                           .trace_id_high = 0x2222,
                                           .span_id = 0x3333,
                                           .duration = 44,
                                           .monotonic = 55,
                                           .pid = 66,
                                           .sequence = 1,
                                           .dropped = 88};
    char longest[300];

    write_event(0, &event, "wr\x1b[31mite\x9f \xc3\xa4\xc2\x9b", "", "");
    expect("66:1 ", 0);
    CHECK(last.trace_id == 0x1111 && last.trace_id_high == 0x2222);
    CHECK(last.duration_ns == 44 && last.monotonic_ns == 55 && last.dropped == 88);
    CHECK_TEXT(last.why, "wr?[31mite\xef\xbf\xbd \xc3\xa4?");
    end();

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    memcpy(longest + sizeof(last.why) - 5, "\xe2\x82\xac", 3);
    begin();
    write_event(1, &event, longest, longest, longest);
    expect("66:1 ", 0);
    CHECK(strlen(last.why) < sizeof(last.why) && strlen(last.why) >= sizeof(last.why) - 5);
}

/* A program may write any time and duration. The span's start is still between the host's boot and
 * now. */
TEST(test_forged_times)
{
    static const uint64_t any[] = {0, 1, 50, 1000, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    const unsigned all = sizeof(any) / sizeof(any[0]);

    for (unsigned i = 0; i < all * all; i++) {
        const struct alarm alarm = {.monotonic_ns = any[i / all], .duration_ns = any[i % all]};
        const int64_t begin_ns = alarm_begin_ns(&alarm, 1000, INT64_MAX / 2);

        CHECK(begin_ns >= INT64_MAX / 2 && begin_ns <= INT64_MAX / 2 + 1000);
        if (alarm.monotonic_ns == 50 && alarm.duration_ns == 1)
            CHECK(begin_ns == INT64_MAX / 2 + 49);
    }
}

/* The watcher gives each alarm once, even if numbers are not in order in the rings of two CPUs. */
TEST(test_once)
{
    expect("", 0);
    write_alarm(1, 10, 1, 1 * MS);
    write_alarm(0, 10, 2, 2 * MS);
    write_alarm(1, 10, 3, 3 * MS);
    write_alarm(0, 11, 1, 3 * MS);
    expect("10:2 11:1 10:1 10:3 ", 0);
    expect("", 0);
    write_alarm(0, 10, 5, 5 * MS); /* 4 comes late: its thread was stopped */
    expect("10:5 ", 0);
    write_alarm(1, 10, 4, 4 * MS);
    write_alarm(1, 0, 1, 0); /* only reports alarms that the rule's cap suppressed */
    expect("10:4 0:1 ", 0);
    expect("", 0);
}

/* An alarm that is missing at two looks is lost. No alarm is counted twice. */
TEST(test_lost)
{
    write_alarm(0, 10, 1, 1 * MS);
    write_alarm(0, 10, 5, 5 * MS);
    expect("10:1 10:5 ", 0);
    write_alarm(1, 10, 3, 3 * MS); /* one of the three alarms was late */
    expect("10:3 ", 2);
    expect("", 0);
    write_alarm(1, 10, 8, 8 * MS);
    expect("10:8 ", 0);
    expect("", 2);
}

/* An alarm may reach a ring after a later alarm was read from another ring: it is not lost. */
TEST(test_late)
{
    write_alarm(0, 10, 1, 1 * MS);
    write_alarm(1, 10, 3, 3 * MS);
    expect("10:1 10:3 ", 0);
    write_alarm(0, 10, 2, 2 * MS);
    write_alarm(1, 10, 5, 5 * MS);
    expect("10:2 10:5 ", 0);
    write_alarm(0, 10, 4, 4 * MS);
    write_alarm(1, 10, 7, 7 * MS);
    expect("10:4 10:7 ", 0);
    /* after a kill, missing alarms are lost at once, and not given when they come later */
    restart();
    write_alarm(0, 10, 6, 6 * MS);
    expect("", 1);
    write_alarm(0, 10, 8, 8 * MS);
    expect("10:8 ", 0);
    restart();
    expect("", 0);
}

/* A repeated number is counted in place of a missing one: alarm 6 is not counted as lost, even
 * after a restart. */
TEST(test_again)
{
    write_alarm(0, 10, 1, 1 * MS);
    write_alarm(1, 10, 5, 5 * MS);
    expect("10:1 10:5 ", 0);
    for (int i = 0; i < 3; i++)
        write_alarm(0, 10, 7, 7 * MS);
    expect("10:7 10:7 10:7 ", 3);
    restart();
    expect("", 0);
}

/* More alarms than rings can hold, many times: each alarm is given, or counted as lost. */
TEST(test_overwritten)
{
    uint64_t state = seed_begin(), lost = 0, found = 0;
    uint32_t written = 0;

    write_alarm(0, 20, ++written, 1 * MS);
    lost += look(NULL).lost;
    found += count;
    for (int round = 0; round < 200; round++) {
        for (uint64_t n = seed_next(&state) % 2000; n; n--) {
            written++;
            write_alarm(seed_next(&state) & 1, 20, written, written * MS);
        }
        lost += look(NULL).lost;
        found += count;
    }
    for (int i = 0; i < 2; i++) { /* two given alarms: all losses before them are counted */
        written++;
        write_alarm(0, 20, written, written * MS);
        lost += look(NULL).lost;
        found += count;
    }
    lost += look(NULL).lost;
    CHECK(found > 1000 && lost > 1000 && found + lost == written);
    printf("%u alarms: %llu given, %llu lost\n", written, (unsigned long long)found,
           (unsigned long long)lost);
}

/* A restarted agent reads the rings again, and gives only new alarms. */
TEST(test_restart)
{
    for (uint32_t i = 1; i <= 9; i++)
        write_alarm(i & 1, 10, i, i * MS);
    look(NULL);
    CHECK(count == 9);
    write_alarm(0, 10, 10, 10 * MS);
    write_alarm(1, 12, 1, 11 * MS);
    restart();
    expect("10:10 12:1 ", 0);
    restart();
    expect("", 0);
    write_alarm(0, 10, 12, 12 * MS); /* 11 is missing */
    restart();
    expect("10:12 ", 0);
    expect("", 1);
    /* another program has the pid now */
    write_alarm(1, 10, 1, 2000 * MS);
    write_alarm(0, 10, 2, 2001 * MS);
    restart();
    look(NULL);
    CHECK(count == 2 && look("").lost == 0);
}

/* Memories are added and dropped between looks: no alarm is lost or given twice. */
TEST(test_memories)
{
    write_alarm(0, 10, 1, 1 * MS);
    other = writer_memory(0, WATCHER_CPUS, RING_BYTES_MIN);
    watcher_add(&watcher, &other, 1000, NULL);
    written_memory = &other;
    write_alarm(0, 10, 2, 2 * MS);
    look(NULL);
    CHECK(count == 2);
    watcher_drop(&watcher, &memory);
    write_alarm(1, 10, 3, 3 * MS);
    expect("10:3 ", 0);
    watcher_drop(&watcher, &other);
    written_memory = &memory;
    memory_close(&other);
}

/* When out of memory, the watcher counts the failure as the asker's. A later attempt gives the
 * alarms. */
TEST(test_no_memory)
{
    struct asker asker = {.alarms = 0};

    other = writer_memory(0, WATCHER_CPUS, RING_BYTES_MIN);
    starve.fail_at = starve.count + 1;
    CHECK(!watcher_add(&watcher, &other, 1001, &asker));
    CHECK(starve.failed == 1 && asker.unwatched == 1 && asker.payer.held == 0);
    starve.fail_at = 0;
    written_memory = &other;
    write_alarm(0, 10, 1, 1 * MS);
    write_alarm(1, 10, 2, 2 * MS);
    expect("", 0);
    CHECK(watcher_add(&watcher, &other, 1001, &asker));
    CHECK(asker.unwatched == 1 && asker.payer.held == 1);
    expect("10:1 10:2 ", 0);
    watcher_drop(&watcher, &other);
    CHECK(asker.payer.held == 0);
    written_memory = &memory;
    memory_close(&other);
}

/* Programs of two users with one pid have separate numbers, because a program can write any pid. */
TEST(test_users)
{
    other = writer_memory(0, WATCHER_CPUS, RING_BYTES_MIN);
    watcher_add(&watcher, &other, 1001, NULL);
    written_memory = &other;
    write_alarm(0, 10, 4000, 900 * MS);
    expect("10:4000 ", 0);
    written_memory = &memory;
    write_alarm(0, 10, 1, 1 * MS);
    watcher_drop(&watcher, &other);
    restart();
    watcher_add(&watcher, &other, 1001, NULL);
    expect("10:1 ", 0);
    watcher_drop(&watcher, &other);
    memory_close(&other);
}

TEST(test_newer)
{
    struct blkin_slow_event event = {
        .mark = BLKIN_SLOW_MARK + (UINT64_C(1) << 56), .pid = 5, .sequence = 1};
    struct watcher_counts counts;

    write_event(0, &event, "a", "b", "c");
    counts = look("");
    CHECK(counts.newer == 1 && counts.lost == 0);
    CHECK(look("").newer == 0);
    event.mark = BLKIN_SLOW_MARK ^ 1; /* not the mark of libblkin */
    write_event(0, &event, "a", "b", "c");
    CHECK(look("").newer == 0);
}

/* The watcher skips damaged records, and records of other events. A damaged alarm counts as lost.
 */
TEST(test_scribbled)
{
    struct writer writer;
    char bytes[200];
    uint64_t at;

    writer = writer_of(0);
    write_alarm(0, 10, 1, 1 * MS);
    expect("10:1 ", 0);
    memset(bytes, 0xff, sizeof(bytes));
    (void)writer_put(&writer, BLKIN_EVENT_SLOW, 10, bytes, 0);
    (void)writer_put(&writer, BLKIN_EVENT_SLOW, 10, bytes, sizeof(bytes));
    (void)writer_put(&writer, BLKIN_EVENT_SPAN, 10, bytes, sizeof(bytes));
    at = ring_committed(writer.ring);
    write_alarm(0, 10, 2, 2 * MS);
    write_alarm(0, 10, 3, 3 * MS);
    writer_store(&writer, at, bytes,
                 (ring_committed(writer.ring) - at) / 2); /* overwrites alarm 2 with its trailer */
    expect("10:3 ", 0);
    expect("", 1);
    /* the ring's end is an impossible position */
    __atomic_store_n(writer_committed(&writer), UINT64_C(0x7fffffffffff0000), __ATOMIC_RELEASE);
    look("");
    write_alarm(1, 10, 4, 4 * MS);
    expect("10:4 ", 0);
}

/* ---- read alarms ---- */

static bool read_alarm(struct alarms_seen *seen, uint32_t pid, uint32_t sequence,
                       uint64_t monotonic_ns)
{
    const struct alarm alarm = {.pid = pid, .sequence = sequence, .monotonic_ns = monotonic_ns};

    return alarms_seen_alarm(seen, &alarm);
}

/* Returns the number of missing alarms up to the largest number: alarms that the next look does not
 * find are lost. */
static uint64_t missing_of(struct alarms_seen *seen)
{
    alarms_seen_look(seen);
    return alarms_seen_lost(seen);
}

/* A new watcher reads the ring again: read alarms are not new, and missing numbers are counted. */
TEST(test_read_alarms)
{
    static struct alarms_seen seen, again;
    json_t *json;

    CHECK(read_alarm(&seen, 1, 2, 20) && read_alarm(&seen, 1, 1, 10) &&
          read_alarm(&seen, 2, 5, 50));
    seen.has_looked = true;
    CHECK(missing_of(&seen) == 0); /* numbers before the first read one are not known */
    CHECK(read_alarm(&seen, 1, 3, 30) && read_alarm(&seen, 2, 6, 60));
    CHECK(missing_of(&seen) == 0);
    json = alarms_seen_json(&seen);
    alarms_seen_read(&again, json);
    json_decref(json);
    CHECK(!read_alarm(&again, 1, 3, 30) && !read_alarm(&again, 1, 2, 20));
    CHECK(read_alarm(&again, 1, 7, 70) && read_alarm(&again, 1, 5, 65)); /* 4 and 6 are not there */
    CHECK(!read_alarm(&again, 2, 6, 60));
    CHECK(read_alarm(&again, 2, 1, 90)); /* another program */
    again.has_looked = true;
    CHECK(missing_of(&again) == 2);
    CHECK(read_alarm(&again, 1, 6, 68)); /* a late alarm */
    CHECK(missing_of(&again) == 1);
    CHECK(read_alarm(&again, 1, 2, 21) &&
          missing_of(&again) == 1); /* an alarm from before the restart */
}

/* The agent reads one CPU's alarms after the alarms of another CPU. */
TEST(test_alarms_of_cpus)
{
    static struct alarms_seen seen;

    for (uint32_t i = 2; i <= 100; i += 2)
        CHECK(read_alarm(&seen, 1, i, i));
    for (uint32_t i = 1; i <= 99; i += 2)
        CHECK(read_alarm(&seen, 1, i, i));
    seen.has_looked = true;
    CHECK(missing_of(&seen) == 0);
    CHECK(read_alarm(&seen, 3, 9, 9) && read_alarm(&seen, 3, 7, 7));
    CHECK(missing_of(&seen) == 1);
    CHECK(read_alarm(&seen, 3, 8, 8) && missing_of(&seen) == 0);
    /* much later, another program has the pid; missing alarms of the first program stay lost */
    CHECK(read_alarm(&seen, 3, 11, 11) && missing_of(&seen) == 1);
    CHECK(read_alarm(&seen, 3, 2, 5000000000) && read_alarm(&seen, 3, 4, 5000000001));
    CHECK(missing_of(&seen) == 2);
}

/* The earliest alarm comes after a look has counted the lost alarms. A new watcher does not count
 * them again. */
TEST(test_late_alarm)
{
    static struct alarms_seen seen, again;
    uint64_t told;
    json_t *json;

    seen.has_looked = true;
    CHECK(read_alarm(&seen, 1, 5, 50) && read_alarm(&seen, 1, 7, 70));
    told = missing_of(&seen); /* 6 */
    CHECK(told == 1);
    alarms_seen_look(&seen);
    CHECK(read_alarm(&seen, 1, 3, 30));
    if (alarms_seen_lost(&seen) > told)
        told = alarms_seen_lost(&seen);
    json = alarms_seen_json(&seen);
    alarms_seen_read(&again, json);
    json_decref(json);
    CHECK(told + missing_of(&again) == 2); /* 4 and 6 */
}

CHECK_MAIN_EACH(begin, end)

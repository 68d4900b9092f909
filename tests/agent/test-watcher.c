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
static void write_event(uint32_t cpu, const struct blkin_slow_event *event, const char *why)
{
    const struct writer writer = writer_of(cpu);
    char payload[RING_RECORD_MAX], *at = payload;

    memcpy(at, event, sizeof(*event));
    at = stpcpy(at + sizeof(*event), why) + 1;
    at = stpcpy(stpcpy(at, "write") + 1, "osd.3") + 1;
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

    write_event(cpu, &event, "*>20ms");
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
    other = writer_memory(0, WATCHER_CPUS, RING_BYTES_MIN);
    written_memory = &memory;
    start(NULL);
}

static void end(void)
{
    watcher_drop(&watcher, &memory);
    watcher_drop(&watcher, &other);
    memory_close(&memory);
    memory_close(&other);
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

/* Writes alarms, each as "CPU/PID:NUMBER". Then compares the alarms and the losses of a look. */
static void expect(const char *written, const char *alarms, uint64_t lost)
{
    struct watcher_counts counts;
    unsigned cpu, pid, number;
    int length;

    for (; sscanf(written, "%u/%u:%u %n", &cpu, &pid, &number, &length) == 3; written += length)
        write_alarm(cpu, pid, number, number * MS);
    counts = look(alarms);
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
    char longest[300], expected[sizeof(last.why)] = "";

    write_event(0, &event, "wr\x1b[31mite\x9f \xc3\xa4\xc2\x9f\xc2\xa0\x7f\xc2x");
    expect("", "66:1 ", 0);
    CHECK(last.trace_id == 0x1111 && last.trace_id_high == 0x2222);
    CHECK(last.duration_ns == 44 && last.monotonic_ns == 55 && last.dropped == 88);
    CHECK(last.user == 1000 && !last.asker && last.pid_namespace == 0);
    CHECK_TEXT(last.why, "wr?[31mite\xef\xbf\xbd \xc3\xa4?\xc2\xa0?\xef\xbf\xbdx");
    watcher_set_text(expected, 8, text_of("abcdefgh")); /* with room for a character of 4 bytes */
    CHECK_TEXT(expected, "abcd");
    end();

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    memcpy(longest + sizeof(last.why) - 5, "\xe2\x82\xac", 3);
    memcpy(expected, longest, sizeof(last.why) - 2);
    begin();
    write_event(1, &event, longest);
    expect("", "66:1 ", 0);
    CHECK_TEXT(last.why, expected);
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
    expect("", "", 0);
    expect("1/10:1 0/10:2 1/10:3 0/11:1", "10:2 11:1 10:1 10:3 ", 0);
    expect("", "", 0);
    expect("0/10:5", "10:5 ", 0); /* 4 comes late: its thread was stopped */
    write_alarm(1, 10, 4, 4 * MS);
    write_alarm(1, 0, 1, 0); /* only reports alarms that the rule's cap suppressed */
    expect("", "10:4 0:1 ", 0);
    expect("", "", 0);
}

/* An alarm that is missing at two looks is lost. No alarm is counted twice. */
TEST(test_lost)
{
    expect("1/10:1 0/10:5", "10:5 10:1 ", 0);
    expect("1/10:3", "10:3 ", 2); /* one of the three alarms was late */
    expect("", "", 0);
    expect("1/10:8", "10:8 ", 0);
    expect("", "", 2);
    expect("1/10:10", "10:10 ", 0);
    restart();
    expect("", "", 1); /* only 9 */
}

/* An alarm may reach a ring after a later alarm was read from another ring: it is not lost. */
TEST(test_late)
{
    expect("0/10:1 1/10:3", "10:1 10:3 ", 0);
    expect("0/10:2 1/10:5", "10:2 10:5 ", 0);
    expect("0/10:4 1/10:7", "10:4 10:7 ", 0);
    /* after a kill, missing alarms are lost at once, and not given when they come later */
    restart();
    expect("0/10:6", "", 1);
    expect("0/10:8", "10:8 ", 0);
    expect("0/10:6", "10:6 ", 0); /* later, no old alarm comes again */
    restart();
    expect("", "", 0);
}

/* A repeated number is counted in place of a missing one: alarm 6 is not counted as lost, even
 * after a restart. */
TEST(test_again)
{
    expect("0/10:1 1/10:5", "10:1 10:5 ", 0);
    expect("0/10:5 0/10:7 0/10:7 0/10:7", "10:5 10:7 10:7 10:7 ", 2);
    restart();
    expect("", "", 0);
}

/* More alarms than rings can hold, many times: each alarm is given, or counted as lost. */
TEST(test_overwritten)
{
    uint64_t state = seed_begin(), lost = 0, found = 0;
    uint32_t written = 0;

    for (int round = 0; round < 203; round++) { /* at last two alarms: all losses are counted */
        for (uint64_t n = round > 0 && round < 201 ? seed_next(&state) % 2000 : 1; n; n--) {
            written++;
            write_alarm(seed_next(&state) & 1, 20, written, written * MS);
        }
        lost += look(NULL).lost;
        found += count;
    }
    lost += look(NULL).lost;
    CHECK(found > 1000 && lost > 1000 && found + lost == written);
    printf("%u alarms: %llu given, %llu lost\n", written, (unsigned long long)found,
           (unsigned long long)lost);
}

/* Memories are added and dropped between looks: no alarm is lost or given twice. */
TEST(test_memories)
{
    expect("0/10:1", "10:1 ", 0);
    watcher_add(&watcher, &other, 1000, NULL);
    written_memory = &other;
    expect("0/10:2", "10:2 ", 0);
    watcher_drop(&watcher, &memory);
    expect("1/10:3", "10:3 ", 0);
}

/* When out of memory, the watcher counts the failure as the asker's. A later attempt gives the
 * alarms. */
TEST(test_no_memory)
{
    struct asker asker = {.alarms = 0};

    starve.fail_at = starve.count + 1;
    CHECK(!watcher_add(&watcher, &other, 1001, &asker));
    CHECK(starve.failed == 1 && asker.unwatched == 1 && asker.payer.held == 0);
    starve.fail_at = 0;
    written_memory = &other;
    expect("0/10:1 1/10:2", "", 0);
    CHECK(watcher_add(&watcher, &other, 1001, &asker));
    CHECK(asker.unwatched == 1 && asker.payer.held == 1);
    expect("", "10:1 10:2 ", 0);
    watcher_drop(&watcher, &other);
    CHECK(asker.payer.held == 0);
}

/* Programs of two users with one pid have separate numbers, because a program can write any pid. */
TEST(test_users)
{
    watcher_add(&watcher, &other, 1001, NULL);
    written_memory = &other;
    expect("0/10:4000", "10:4000 ", 0);
    written_memory = &memory;
    write_alarm(0, 10, 1, 1 * MS);
    watcher_drop(&watcher, &other);
    restart();
    watcher_add(&watcher, &other, 1001, NULL);
    expect("", "10:1 ", 0);
}

TEST(test_newer)
{
    struct blkin_slow_event event = {
        .mark = BLKIN_SLOW_MARK + (UINT64_C(1) << 56), .pid = 5, .sequence = 1};
    struct watcher_counts counts;

    write_event(0, &event, "a");
    counts = look("");
    CHECK(counts.newer == 1 && counts.lost == 0);
    CHECK(look("").newer == 0);
    event.mark = BLKIN_SLOW_MARK ^ 1; /* not the mark of libblkin */
    write_event(0, &event, "a");
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
    expect("0/10:1", "10:1 ", 0);
    memset(bytes, 0xff, sizeof(bytes));
    (void)writer_put(&writer, BLKIN_EVENT_SLOW, 10, bytes, 0);
    (void)writer_put(&writer, BLKIN_EVENT_SLOW, 10, bytes, sizeof(bytes));
    (void)writer_put(&writer, BLKIN_EVENT_SPAN, 10, bytes, sizeof(bytes));
    at = ring_committed(writer.ring);
    write_alarm(0, 10, 2, 2 * MS);
    write_alarm(0, 10, 3, 3 * MS);
    writer_store(&writer, at, bytes,
                 (ring_committed(writer.ring) - at) / 2); /* overwrites alarm 2 with its trailer */
    expect("", "10:3 ", 0);
    expect("", "", 1);
    /* the ring's end is an impossible position */
    __atomic_store_n(writer_committed(&writer), UINT64_C(0x7fffffffffff0000), __ATOMIC_RELEASE);
    look("");
    expect("1/10:4", "10:4 ", 0);
}

/* ---- read alarms ---- */

static bool read_alarm(struct alarms_seen *seen, uint32_t pid, uint32_t sequence,
                       uint64_t monotonic_ns)
{
    const struct alarm alarm = {.user = pid / 1000,
                                .pid = pid,
                                .pid_namespace = pid + 100,
                                .sequence = sequence,
                                .monotonic_ns = monotonic_ns};

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
    char *text;

    CHECK(read_alarm(&seen, 1, 2, 20) && read_alarm(&seen, 1, 1, 10) &&
          read_alarm(&seen, 2, 5, 50));
    seen.has_looked = true;
    CHECK(missing_of(&seen) == 0); /* numbers before the first read one are not known */
    CHECK(read_alarm(&seen, 1, 3, 30) && read_alarm(&seen, 2, 6, 60));
    CHECK(missing_of(&seen) == 0);
    json = alarms_seen_json(&seen);
    text = json_dumps(json, JSON_COMPACT);
    CHECK_TEXT(text, "[[0,1,3,30,0,101],[0,2,6,60,0,102]]");
    alarms_seen_read(&again, json);
    json_decref(json);
    free(text);
    CHECK(!read_alarm(&again, 1, 3, 30) && !read_alarm(&again, 1, 2, 20));
    CHECK(read_alarm(&again, 1, 7, 70) && read_alarm(&again, 1, 5, 25)); /* 4 and 6 are not there */
    CHECK(!read_alarm(&again, 2, 6, 60) && read_alarm(&again, 3, 9, 10)); /* 3: a new program */
    CHECK(read_alarm(&again, 2, 6, 61) && !read_alarm(&again, 2, 5, 60)); /* another program */
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

    seen.has_looked = true;
    CHECK(read_alarm(&seen, 3, 9, 9) && read_alarm(&seen, 3, 7, 7));
    CHECK(missing_of(&seen) == 1);
    CHECK(read_alarm(&seen, 3, 8, 8) && missing_of(&seen) == 0);
    /* much later, another program has the pid; missing alarms of the first program stay lost */
    CHECK(read_alarm(&seen, 3, 11, 11) && missing_of(&seen) == 1);
    CHECK(read_alarm(&seen, 3, 11, SECOND + 11) && missing_of(&seen) == 0); /* in place of 10 */
    CHECK(read_alarm(&seen, 3, 11, 2 * SECOND + 12) && read_alarm(&seen, 3, 13, 2 * SECOND + 13));
    CHECK(missing_of(&seen) == 1);
    CHECK(read_alarm(&seen, 3, 2, 5000000000) && read_alarm(&seen, 3, 4, 5000000001));
    CHECK(missing_of(&seen) == 2);
}

/* The earliest alarm comes after a look has counted the lost alarms. A new watcher does not count
 * them again. */
TEST(test_late_alarm)
{
    static struct alarms_seen seen, again;
    json_t *json;

    seen.has_looked = true;
    CHECK(read_alarm(&seen, 1, 5, 50) && read_alarm(&seen, 1, 7, 70));
    CHECK(missing_of(&seen) == 1); /* 6 */
    alarms_seen_look(&seen);
    CHECK(read_alarm(&seen, 1, 3, 30));
    CHECK(alarms_seen_lost(&seen) == 2); /* 4 and 6 */
    json = alarms_seen_json(&seen);
    alarms_seen_read(&again, json);
    json_decref(json);
    CHECK(missing_of(&again) == 0);
}

/* A further program replaces the program with the oldest last alarm: one of all users or, beyond a
 * user's limit, one of that user. Its missing alarms are lost. */
TEST(test_limits)
{
    static struct alarms_seen seen;

    for (uint32_t i = 0; i < ALARMS_SEEN_MAX; i++)
        CHECK(read_alarm(&seen, (1 + i / ALARMS_SEEN_USER_MAX) * 1000 + i % ALARMS_SEEN_USER_MAX, 5,
                         i == 700   ? 10
                         : i == 800 ? 20
                                    : 5000 - i));
    CHECK(seen.count == ALARMS_SEEN_MAX && seen.programs[800].pid == 4032);
    CHECK(read_alarm(&seen, 4032, 7, 20) && seen.lost == 0);
    CHECK(read_alarm(&seen, 4999, 5, 9000) && seen.programs[800].pid == 4999 && seen.lost == 1);
    CHECK(read_alarm(&seen, 9000, 5, 9000) && seen.programs[700].pid == 9000);
    CHECK(read_alarm(&seen, 3999, 5, 9000) && seen.programs[1023].pid == 3999);
    CHECK(seen.count == ALARMS_SEEN_MAX && missing_of(&seen) == 1);
}

CHECK_MAIN_EACH(begin, end)

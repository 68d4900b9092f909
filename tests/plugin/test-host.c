/*
 * The stage of hosts adds tags about a span's host. The samples here are made up: usual, late, lost
 * and malicious samples.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/buffer.h"
#include "check.h"
#include "babeltrace-plugin/spans/assembler_parts.h"
#include "babeltrace-plugin/stages/hosts_parts.h"
#include "host_metrics.h"

#include <string.h>

#define TENTH 100 /* ms: the usual period of a group */

static const struct hosts_options options = {
    .min_ns = 100 * MS, .max_history_bytes = 8 << 20, .max_held_bytes = 1 << 20};

/* The output, a line for each span: its id, then its tags "KEY=VALUE" with blanks between. */
static char out[1 << 16];
static uint64_t out_count;
static uint64_t held;
static uint64_t sequence;
static struct chain chain;

static void note_tag(const struct span_entry *entry)
{
    const struct text key = span_entry_key(entry), value = span_entry_value(entry);
    const size_t length = strlen(out);

    if (entry->type == SPAN_TAG_INTEGER)
        (void)snprintf(out + length, sizeof(out) - length, " %.*s=%" PRId64, (int)key.length,
                       key.data, entry->integer);
    else if (!text_is(key, "lttng.host"))
        (void)snprintf(out + length, sizeof(out) - length, " %.*s=\"%.*s\"", (int)key.length,
                       key.data, (int)value.length, value.data);
}

static void deliver(void *context, const struct span *span)
{
    const size_t length = strlen(out);

    (void)context;
    held--;
    out_count++;
    (void)snprintf(out + length, sizeof(out) - length, "%" PRIu64, span->id);
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        note_tag(entry);
    }
    (void)strncat(out, "\n", sizeof(out) - strlen(out) - 1);
}

static struct stage *append_new(const struct hosts_options *with, struct chain *to)
{
    struct stage *hosts = hosts_stage_new(with);

    chain_init(to, deliver, NULL);
    chain_append(to, hosts);
    return hosts;
}

static struct stage *begin_with(const struct hosts_options *with)
{
    out[0] = '\0';
    out_count = held = sequence = 0;
    return append_new(with, &chain);
}

static struct stage *begin(void)
{
    return begin_with(&options);
}

static struct hosts_counts end(struct stage *hosts)
{
    struct hosts_counts counts;

    for (uint64_t left = held; chain_flush_some(&chain, 1); left--)
        CHECK(hosts_stage_counts(hosts).spans_held == held && held == left - 1);
    counts = hosts_stage_counts(hosts);
    CHECK(held == 0 && counts.history_bytes <= options.max_history_bytes);
    chain_free(&chain);
    return counts;
}

/* Ends the stage, and compares all counters but the size of the history. */
#define HOSTS_END(hosts, ...)                                                \
    do {                                                                     \
        struct hosts_counts counts_ = end(hosts), expected_ = {__VA_ARGS__}; \
        counts_.history_bytes = 0;                                           \
        CHECK(memcmp(&counts_, &expected_, sizeof(counts_)) == 0);           \
    } while (0)

static void sample(struct stage *hosts, const struct made_sample *made)
{
    const struct event event = event_of_sample(made, ++sequence);

    hosts_stage_add(hosts, &event, made->time_ms * MS, made->time_ms * MS);
}

/* Makes a sample of a group without instances. */
static void sample_group(struct stage *hosts, const char *host, const char *group,
                         const char *names, const char *values, int64_t time_ms)
{
    sample(hosts, &(struct made_sample){host, group, "", names, values, time_ms, 0, 0});
}

/* Gives a span to the stage if the stage wants the span. Returns whether the stage does. */
static bool give(struct stage *hosts, const char *host, uint64_t id, int64_t start_ms,
                 int64_t end_ms)
{
    struct span span;
    bool is_wanted;

    CHECK(span_of_host(&span, host, id, start_ms, end_ms));
    is_wanted = hosts_wants(hosts_of(hosts), &span);
    if (is_wanted) {
        held++;
        chain_take(&chain, &span, end_ms * MS);
    }
    free(span.log);
    return is_wanted;
}

/* Adds a sample of a disk. busy_ms: the time with a request; queue_ms: the sum of the times of all
 * requests. Both count from the disk's first sample. */
static void sample_disk(struct stage *hosts, const char *name, int64_t time_ms, int64_t busy_ms,
                        int64_t queue_ms)
{
    char values[200];

    (void)snprintf(values, sizeof(values), "%" PRId64 " 0 %" PRId64 " 0 %" PRId64 " %" PRId64,
                   busy_ms, queue_ms * MS, busy_ms * MS, queue_ms * MS);
    sample(hosts, &(struct made_sample){.host = "store-2",
                                        .group = "disk",
                                        .instance = name,
                                        .names = DISK_NAMES,
                                        .values = values,
                                        .time_ms = time_ms});
}

static bool shows(const char *text)
{
    return strstr(out, text) != NULL;
}

/* ---- findings ---- */

TEST(test_disk)
{
    struct stage *hosts = begin();

    for (int64_t i = 0; i <= 5; i++) {
        sample_disk(hosts, "vda", 1000 + i * TENTH, i, i);
        sample_disk(hosts, "vdb", 1000 + i * TENTH, i * 98, i * 3100);
        sample_disk(hosts, "vdb1", 1000 + i * TENTH, i * 98, i * 3100);
    }
    CHECK(give(hosts, "store-2", 7, 1150, 1450));
    CHECK(shows("7 system.device=\"vdb\" system.disk.busy.min=98 system.disk.busy.max=98 "
                "system.disk.queue.min=31 system.disk.queue.max=31 "
                "system.disk.wait_us.min=31633 system.disk.wait_us.max=31633 "
                "blkin.host_ms=400 blkin.host=\"vdb was 98 % busy, 31 in queue\"\n"));
    HOSTS_END(hosts, .spans_tagged = 1);
}

/* Short requests, one after the other. The kernel counts a tick as busy if a request ran in the
 * tick. On average less than one request is in flight. */
TEST(test_disk_without_queue)
{
    struct stage *hosts = begin();

    for (int64_t i = 0; i <= 5; i++)
        sample_disk(hosts, "nvme0n1", 1000 + i * TENTH, i * 98, i * 30);
    CHECK(give(hosts, "store-2", 7, 1150, 1450));
    CHECK(shows("blkin.host=\"nvme0n1 was 98 % busy\"\n"));
    HOSTS_END(hosts, .spans_tagged = 1);
}

/* Minimum and maximum are over the intervals between samples. The finding uses the mean over the
 * span's time. */
TEST(test_least_and_most)
{
    struct stage *hosts = begin();

    sample_disk(hosts, "vdb", 1000, 0, 0);
    sample_disk(hosts, "vdb", 1100, 10, 0);
    sample_disk(hosts, "vdb", 1200, 110, 0);
    sample_disk(hosts, "vdb", 1300, 150, 0);
    CHECK(give(hosts, "store-2", 1, 1090, 1290));
    CHECK(shows("busy.min=10 system.disk.busy.max=100"));
    CHECK(!shows("blkin.host=")); /* (10*10 + 100*100 + 90*40) / 200 = 68.5 */
    CHECK(give(hosts, "store-2", 2, 1099, 1200));
    CHECK(shows("blkin.host=\"vdb was 99 % busy")); /* (1*10 + 100*100) / 101 = 99.1 */
    CHECK(!give(hosts, "store-2", 3, 1101, 1200));
    CHECK(!give(hosts, "store-3", 4, 1000, 2000));
    HOSTS_END(hosts, .spans_tagged = 2);
}

static void sample_quietly(struct stage *hosts, int64_t time_ms, int64_t times)
{
    char cpu[300], pressure[100], tcp[60];

    (void)snprintf(cpu, sizeof(cpu), "%" PRId64 " 0 %" PRId64 " %" PRId64 " 0 0 0 0",
                   times * 8 * MS, times * 2 * MS, times * 190 * MS);
    (void)snprintf(pressure, sizeof(pressure), "%" PRId64 " %" PRId64 " 0", times * MS,
                   times * 2 * MS);
    (void)snprintf(tcp, sizeof(tcp), "3 %" PRId64, 100 + times);
    sample_group(hosts, "q", "cpu", CPU_NAMES, cpu, time_ms);
    sample_group(hosts, "q", "pressure", PRESSURE_NAMES, pressure, time_ms);
    sample_group(hosts, "q", "run_queue", RUN_QUEUE_NAMES, "1", time_ms);
    sample_group(hosts, "q", "memory", MEMORY_NAMES, "1000 600", time_ms);
    sample_group(hosts, "q", "tcp", TCP_NAMES, tcp, time_ms);
}

TEST(test_quiet_host)
{
    struct stage *hosts = begin();

    for (int64_t i = 0; i < 20; i++)
        sample_quietly(hosts, 1000 + i * TENTH, i);
    CHECK(give(hosts, "q", 1, 1200, 2200));
    CHECK(out_count == 1 && !shows("blkin.host="));
    CHECK(shows("system.linux.pressure.cpu.min=1 system.linux.pressure.cpu.max=1 "
                "system.linux.pressure.io.min=2 system.linux.pressure.io.max=2 "
                "system.linux.pressure.memory.min=0 system.linux.pressure.memory.max=0 "
                "system.cpu.busy.min=5 system.cpu.busy.max=5 system.cpu.steal.min=0 "
                "system.cpu.steal.max=0 system.process.count.running.min=1 "
                "system.process.count.running.max=1 system.memory.available.min=60 "
                "system.memory.available.max=60 system.network.tcp.segments.retransmit=0 "
                "system.network.tcp.segments.transmit=10 blkin.host_ms=1000"));
    end(hosts);
}

/* Adds two samples of a group. Returns the value of the tag blkin.host of a span between them. */
static const char *found_by(const char *group, const char *names, const char *before,
                            const char *after)
{
    struct stage *hosts = begin();
    const char *said;

    sample(hosts, &(struct made_sample){"h", group, "", names, before, 1000, 0, 0});
    sample(hosts, &(struct made_sample){"h", group, "", names, after, 1100, 0, 0});
    CHECK(give(hosts, "h", 1, 1000, 1100));
    end(hosts);
    said = strstr(out, "blkin.host=");
    return said ? said + strlen("blkin.host=") : "";
}

TEST(test_findings)
{
    static const struct {
        const char *group, *names, *after, *said;
    } cases[] = {
        {"pressure", PRESSURE_NAMES, "0 0 43000000",
         "\"tasks waited for memory 43 % of the time\"\n"},
        {"pressure", PRESSURE_NAMES, "0 0 9900000", ""},
        {"pressure", PRESSURE_NAMES, "0 71000000 0", "\"tasks waited for I/O 71 % of the time\"\n"},
        {"pressure", PRESSURE_NAMES, "99000000 39000000 0", ""},
        {"tcp", TCP_NAMES, "3 57", "\"3 of 60 TCP segments were sent again\"\n"},
        {"tcp", TCP_NAMES, "3 0", "\"3 of 3 TCP segments were sent again\"\n"},
        {"tcp", TCP_NAMES, "3 6000", ""},
        {"tcp", TCP_NAMES, "0 0", ""},
        {"cpu", CPU_NAMES, "100000000 0 0 60000000 0 0 0 40000000",
         "\"20 % of the CPUs' time was stolen\"\n"},
        {"cpu", CPU_NAMES, "200000000 0 0 0 0 0 0 0", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *before = strcmp(cases[i].group, "cpu") == 0   ? "0 0 0 0 0 0 0 0"
                             : strcmp(cases[i].group, "tcp") == 0 ? "0 0"
                                                                  : "0 0 0";

        CHECK_TEXT(found_by(cases[i].group, cases[i].names, before, cases[i].after), cases[i].said);
    }
}

/* Two CPUs are busy. Pressure decides whether threads waited for them; without pressure, the number
 * of threads decides. The tag does not show a number of threads below the number of busy CPUs. */
TEST(test_crowded_cpus)
{
    static const struct {
        const char *pressure, *running, *said;
        int busy; /* of 100 */
    } cases[] = {
        {"63000000 0 0", "7", ", 7 threads ran or wanted to", 99},
        {"63000000 0 0", "2", ", 2 threads ran or wanted to", 99},
        {"63000000 0 0", "1", ", tasks waited for a CPU 63 % of the time", 99},
        {"63000000 0 0", "0", ", tasks waited for a CPU 63 % of the time", 99},
        {"63000000 0 0", NULL, ", tasks waited for a CPU 63 % of the time", 99},
        {"20000000 0 0", "7", NULL, 99},
        {"63000000 0 0", "7", NULL, 88},
        {NULL, "4", ", 4 threads ran or wanted to", 99},
        {NULL, "3", NULL, 99},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage *hosts = begin();
        char said[200], cpu[64];

        (void)snprintf(cpu, sizeof(cpu), "%d 0 0 %d 0 0 0 0", cases[i].busy * 2000000,
                       (100 - cases[i].busy) * 2000000);
        for (int64_t at = 1000; at <= 1100; at += 100) {
            const bool is_after = at == 1100;

            sample_group(hosts, "h", "cpu", CPU_NAMES, is_after ? cpu : "0 0 0 0 0 0 0 0", at);
            if (cases[i].pressure)
                sample_group(hosts, "h", "pressure", PRESSURE_NAMES,
                             is_after ? cases[i].pressure : "0 0 0", at);
            if (cases[i].running)
                sample_group(hosts, "h", "run_queue", RUN_QUEUE_NAMES, cases[i].running, at);
        }
        CHECK(give(hosts, "h", 1, 1000, 1100));
        if (cases[i].said) {
            (void)snprintf(said, sizeof(said), "blkin.host=\"the CPUs were 99 %% busy%s\"\n",
                           cases[i].said);
            CHECK(shows(said));
        } else {
            CHECK(!shows("blkin.host="));
        }
        end(hosts);
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

TEST(test_waiting)
{
    struct stage *hosts = begin();

    CHECK(!give(hosts, "store-2", 1, 0, 5000)); /* no metrics at all */
    for (int64_t i = 0; i < 4; i++)
        sample_disk(hosts, "vdb", 1000 + i * TENTH, i, 0);
    CHECK(give(hosts, "store-2", 2, 1150, 1330) && give(hosts, "store-2", 3, 1000, 1350));
    CHECK(out_count == 0 && hosts_stage_counts(hosts).spans_held == 2);
    chain_advance(&chain, 1399 * MS);
    CHECK(out_count == 0);
    sample_disk(hosts, "vdb", 1400, 90, 0);
    CHECK(out_count == 2 && shows("2 system.device") &&
          shows("busy.min=1 system.disk.busy.max=87"));

    /* no sample arrives for two periods: the span gets the known values */
    CHECK(give(hosts, "store-2", 4, 1250, 1450));
    chain_advance(&chain, 1649 * MS);
    CHECK(out_count == 2);
    chain_advance(&chain, 1650 * MS);
    CHECK(out_count == 3 && shows("4 system.device=\"vdb\"") && shows("blkin.host_ms=200"));

    /* the stage waits for a group that was silent for four periods, and not for longer */
    CHECK(give(hosts, "store-2", 5, 1600, 1800) && out_count == 3);
    CHECK(give(hosts, "store-2", 6, 1600, 1801) && out_count == 5 && shows("5\n6\n"));
    HOSTS_END(hosts, .spans_tagged = 3);
}

/* The stage does not wait for a group with a long period. It waits for the slowest other group. */
TEST(test_periods)
{
    struct stage *hosts = begin();

    for (int64_t i = 0; i < 3; i++) {
        sample(hosts,
               &(struct made_sample){"h", "tcp", "", TCP_NAMES, "0 0", 1000 + i * 1000, 0, 1000});
        sample(hosts, &(struct made_sample){"h", "memory", "", MEMORY_NAMES, "10 5",
                                            1000 + i * 1000, 0, 60000});
    }
    CHECK(give(hosts, "h", 1, 2900, 3100));
    sample(hosts, &(struct made_sample){"h", "run_queue", "", RUN_QUEUE_NAMES, "1", 3200, 0, 100});
    CHECK(out_count == 0);
    sample(hosts, &(struct made_sample){"h", "tcp", "", TCP_NAMES, "0 0", 4000, 0, 1000});
    CHECK(out_count == 1 && shows("retransmit=0"));
    HOSTS_END(hosts, .spans_tagged = 1);
}

/* ---- counters and names ---------------------------------------------------------------------- */

TEST(test_resets)
{
    struct stage *hosts = begin();

    sample_disk(hosts, "vdb", 1000, 500, 0);
    sample_disk(hosts, "vdb", 1100, 600, 0);
    sample_disk(hosts, "vdb", 1200, 3, 0);
    CHECK(hosts_stage_counts(hosts).resets == 1);
    CHECK(give(hosts, "store-2", 1, 1100, 1200) && shows("1\n"));
    /* another sampler's counters are no continuation, even if they are larger */
    sample(hosts, &(struct made_sample){"store-2", "disk", "vdb", DISK_NAMES, "9 9 9 9 100000000 9",
                                        1300, 2, 0});
    CHECK(give(hosts, "store-2", 2, 1200, 1300) && shows("2\n"));
    /* a sample that is older than the last one discards the history, and is no reset */
    sample_disk(hosts, "vdb", 1200, 0, 0);
    HOSTS_END(hosts, .resets = 1);
}

TEST(test_names_arrive_late)
{
    struct stage *hosts = begin();

    for (int64_t i = 0; i < 3; i++)
        sample_group(hosts, "h", "run_queue", i == 2 ? RUN_QUEUE_NAMES : "", i == 1 ? "9" : "1",
                     1000 + i * 100);
    CHECK(hosts_stage_counts(hosts).unnamed == 2);
    CHECK(give(hosts, "h", 1, 1000, 1200) &&
          shows("running.min=1 system.process.count.running.max=9"));
    /* another list of names: the stage discards the former values */
    sample_group(hosts, "h", "run_queue", "", "1 2", 1300);
    HOSTS_END(hosts, .unnamed = 3, .spans_tagged = 1);
}

TEST(test_nonsense)
{
    static const struct {
        const char *names, *values;
    } cases[] = {
        {RUN_QUEUE_NAMES, ""},
        {RUN_QUEUE_NAMES, "1 "},
        {RUN_QUEUE_NAMES, " 1"},
        {RUN_QUEUE_NAMES, "-1"},
        {RUN_QUEUE_NAMES, "1.5"},
        {RUN_QUEUE_NAMES, "1 2"},
        {RUN_QUEUE_NAMES, "18446744073709551616"},
        {"a:b", "1"},
        {"a:b:x", "1"},
        {":b:c", "1"},
        {"a", "1"},
        {"a:b:c ", "1"},
        {" a:b:c", "1"},
        {"", "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"},
    };
    const size_t count = sizeof(cases) / sizeof(cases[0]);
    struct stage *hosts = begin();
    char name[257] = "";

    for (size_t i = 0; i < count; i++)
        sample_group(hosts, "h", "run_queue", cases[i].names, cases[i].values, 1000 + (int64_t)i);
    /* two cases are valid: a blank at the end is allowed */
    CHECK(hosts_stage_counts(hosts).invalid == count - 2);
    /* the stage ignores an unknown group, an instance of a group without instances, and a disk
     * without an instance */
    sample(hosts, &(struct made_sample){"h", "process", "x", "", "1", 2000, 0, 0});
    sample(hosts, &(struct made_sample){"h", "cpu", "cpu0", "", "1", 2000, 0, 0});
    sample_group(hosts, "h", "disk", "", "1", 2000);
    CHECK(hosts_stage_counts(hosts).invalid == count - 2 && hosts_stage_counts(hosts).unnamed == 0);
    /* a sample and a span at the limits of int64_t do no harm */
    sample_group(hosts, "h", "run_queue", RUN_QUEUE_NAMES, "1", INT64_MIN / MS);
    CHECK(give(hosts, "h", 1, INT64_MIN / MS, INT64_MAX / MS));
    /* a name has 255 bytes at most */
    memset(name, 'n', sizeof(name) - 1);
    for (int i = 0; i < 4; i++) {
        name[i < 2 ? 256 : 255] = '\0';
        sample(hosts, &(struct made_sample){i % 2 ? "h" : name, "disk", i % 2 ? name : "vda",
                                            DISK_NAMES, "1 1 1 1 1 1", 2000, 0, 0});
    }
    HOSTS_END(hosts, .invalid = count - 2, .no_room = 2);
}

TEST(test_recorded_twice)
{
    struct stage *hosts = begin();
    struct event event;

    sample_disk(hosts, "vdb", 1000, 0, 0);
    sample_disk(hosts, "vdb", 1100, 90, 0);
    event = event_of_sample(
        &(struct made_sample){"store-2", "disk", "vdb", "", "9 0 0 0 90000000 0", 1100, 0, 0},
        sequence);
    /* another session recorded the same sample, with a clock difference of 2 us */
    hosts_stage_add(hosts, &event, 1100 * MS + 2000, 1100 * MS + 2000);
    CHECK(give(hosts, "store-2", 1, 1000, 1100) && shows("busy.min=90 system.disk.busy.max=90"));
    HOSTS_END(hosts, .spans_tagged = 1);
}

/* Ten minutes at ten samples a second. The history keeps all of the last samples and some of the
 * older ones, so the whole time stays covered. */
TEST(test_long_span)
{
    struct stage *hosts = begin();
    int64_t busy = 0;

    for (int64_t i = 0; i <= 6000; i++) {
        sample_disk(hosts, "vdb", 1000 + i * TENTH, busy, 0);
        busy += i >= 5990 ? 100 : 50;
    }
    CHECK(give(hosts, "store-2", 1, 1000, 601000));
    CHECK(shows("busy.min=50 system.disk.busy.max=100") && shows("blkin.host_ms=600000\n"));
    CHECK(give(hosts, "store-2", 2, 600000, 601000) && shows("blkin.host=\"vdb was 100 % busy"));
    /* a span that is much shorter than the interval of its samples gets no tags */
    CHECK(give(hosts, "store-2", 3, 20000, 20200) && shows("3\n"));
    HOSTS_END(hosts, .spans_tagged = 2);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TEST(test_memory)
{
    struct hosts_options small = options;
    struct stage *hosts;
    uint64_t bytes;
    char name[40];

    small.max_history_bytes = 200000;
    small.max_held_bytes = 5000;
    hosts = begin_with(&small);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "disk%d", i);
        sample_disk(hosts, name, 1000, 0, 0);
        CHECK(hosts_stage_counts(hosts).history_bytes <= small.max_history_bytes);
    }
    CHECK(hosts_stage_counts(hosts).no_room > 900);
    for (uint64_t id = 1; id <= 100; id++) {
        CHECK(give(hosts, "store-2", id, 900, 1050));
        CHECK(hosts_stage_counts(hosts).held_bytes <= small.max_held_bytes);
    }
    CHECK(hosts_stage_counts(hosts).spans_early == out_count && out_count > 50);
    /* the slots of vanished instances are free after a while */
    sample_disk(hosts, "new", 2000000, 0, 0);
    sample_disk(hosts, "new", 2000100, 100, 0);
    CHECK(give(hosts, "store-2", 999, 2000000, 2000100) && shows("999 system.device=\"new\""));
    bytes = end(hosts).history_bytes;
    /* all else is forgotten */
    hosts = begin();
    sample_disk(hosts, "new", 2000000, 0, 0);
    sample_disk(hosts, "new", 2000100, 100, 0);
    CHECK(end(hosts).history_bytes == bytes);
}

/* Without room for a span, the host whose spans began to wait first gives out its first one. */
TEST(test_early)
{
    struct hosts_options few = options;
    struct stage *hosts;

    few.max_held_bytes = 3 * (sizeof(struct span_copy) + 48);
    hosts = begin_with(&few);
    sample_group(hosts, "a", "run_queue", RUN_QUEUE_NAMES, "1", 1000);
    sample_group(hosts, "b", "run_queue", RUN_QUEUE_NAMES, "1", 1000);
    CHECK(give(hosts, "b", 1, 900, 1100) && give(hosts, "a", 2, 900, 1100));
    CHECK(give(hosts, "b", 3, 900, 1100) && out_count == 0);
    CHECK(hosts_stage_counts(hosts).held_bytes == few.max_held_bytes);
    CHECK(give(hosts, "b", 4, 900, 1100) && give(hosts, "a", 5, 900, 1100));
    CHECK_TEXT(out, "1\n3\n");
    chain_advance(&chain, 1300 * MS);
    CHECK_TEXT(out, "1\n3\n4\n2\n5\n");
    CHECK(give(hosts, "b", 6, 900, 1100) && give(hosts, "a", 7, 900, 1100));
    CHECK(give(hosts, "b", 8, 900, 1100) && chain_flush_some(&chain, 2));
    CHECK_TEXT(out, "1\n3\n4\n2\n5\n6\n8\n");
    HOSTS_END(hosts, .spans_early = 2);
}

/* A group of a host has at most 256 instances, because each sample searches the list of them. */
TEST(test_many_instances)
{
    struct stage *hosts = begin();
    char name[40];

    for (int i = 0; i < 100000; i++) {
        (void)snprintf(name, sizeof(name), "disk%d", i);
        sample_disk(hosts, name, 1000, 0, 0);
    }
    /* the stage accepts samples of known instances; new instances take the slots of instances that
     * were silent for ten minutes, for which the stage looks once a minute */
    sample_disk(hosts, "disk7", 60999, 100, 0);
    sample_disk(hosts, "disk8", 61000, 100, 0);
    CHECK(hosts_stage_counts(hosts).no_room == 100000 - 256);
    sample_disk(hosts, "new", 600999, 0, 0);
    sample_disk(hosts, "new", 660998, 0, 0);
    CHECK(hosts_stage_counts(hosts).no_room == 100000 - 256 + 2);
    sample_disk(hosts, "new", 660999, 0, 0);
    CHECK(hosts_stage_counts(hosts).no_room == 100000 - 256 + 2);
    for (int i = 0; i < 256; i++) { /* only disk8 was kept */
        (void)snprintf(name, sizeof(name), "newer%d", i);
        sample_disk(hosts, name, 661000, 0, 0);
    }
    HOSTS_END(hosts, .no_room = 100000 - 256 + 4);
}

CHECK_MAIN

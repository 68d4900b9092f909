/*
 * Scans of rings: each record of a wanted trace is found once, in any number of scans. A window has
 * all records of its time. The result tells the time from which the rings have all records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "plugin/starvation/starve.h"
#include "rings/packed.h"
#include "scanning.h"
#include "seed.h"

static struct scanning scanning;
static struct scan_result result;
static uint64_t numbers[4096]; /* the numbers of the found spans in order; 0: another event */
static size_t count;
static char spans[40000]; /* the numbers as a text */

#define RECORD_BYTES 80U               /* of a span: in a ring, and among the found ones */
static int64_t now_ns, live;           /* live: allocated blocks before the test */
static uint64_t all_bytes, read_bytes; /* of all scans without and with the index */

/* ---- found records --------------------------------------------------------------------------- */

/* Scans as the order says. Returns false on failure. */
static bool run(void)
{
    struct scan_records found = {.count = 0};
    const clock_t begun = clock();
    char *at = spans;
    bool is_well;

    memset(&result, 0, sizeof(result));
    is_well = scan_run(&scanning.order, &found, &result);
    CHECK(result.cpu_ns > 0 && result.cpu_ns / 1000 <= clock() - begun + 1);
    CHECK_TEXT(result.error.text, "");
    spans[0] = '\0';
    for (count = 0; count < found.count; count++) {
        const struct ring_entry entry = scan_entry(&found, count);

        numbers[count % 4096] = scanning_number(&entry);
        at += sprintf(at, "%llu ", (unsigned long long)numbers[count % 4096]);
        CHECK(entry.event < RING_ORIGINAL || entry.pid == 1);
        CHECK(count == 0 || found.list[count].time_ns >= found.list[count - 1].time_ns);
    }
    scan_records_free(&found);
    return is_well;
}

/* Scans without the index, then with the index: the results are the same. */
static void fetch_now(void)
{
    static char all_spans[sizeof(spans)];
    struct scan_result all;
    struct scan_wanted wanted[8];

    scanning_order(&scanning, now_ns);
    scanning.order.index = NULL;
    CHECK(run());
    all = result;
    strcpy(all_spans, spans);
    CHECK(scanning.order.wanted_count <= 8);
    memcpy(wanted, scanning.order.wanted, scanning.order.wanted_count * sizeof(wanted[0]));
    scanning_order(&scanning, now_ns);
    CHECK(run());
    CHECK_TEXT(spans, all_spans);
    CHECK(result.held_from_ns == all.held_from_ns && result.reach_ns == all.reach_ns &&
          result.from_place == all.from_place && result.bytes <= all.bytes);
    for (size_t i = 0; i < scanning.order.wanted_count; i++)
        CHECK(scanning.order.wanted[i].held_from_ns == wanted[i].held_from_ns &&
              scanning.order.wanted[i].is_found == wanted[i].is_found);
    all_bytes += all.bytes;
    read_bytes += result.bytes;
}

/* Scans, and compares the numbers of the found spans. */
#define FETCH(expected) (fetch_now(), CHECK_TEXT(spans, expected))
#define WANT(...)       scanning_want(&scanning, (const uint64_t[]){__VA_ARGS__, 0})

/* ago_ns: the time since it was made */
static void add_memory(uint32_t user, int64_t ago_ns)
{
    scanning_add(&scanning, user, now_ns - ago_ns, RING_BYTES_MIN);
}

static void begin(unsigned memories)
{
    live = starve.live;
    scanning_begin(&scanning);
    now_ns = clock_ns();
    for (unsigned i = 0; i < memories; i++)
        add_memory(1, (int64_t)(100 - i) * SECOND);
}

static void end(void)
{
    scanning_end(&scanning);
    CHECK(starve.live == live);
}

struct put {
    size_t memory; /* 0: the oldest */
    uint32_t cpu;
    uint64_t trace, number;
    int64_t ago_ns; /* the time before the scan */
};

static void put_all(const struct put *put)
{
    for (; put->trace; put++) {
        const struct writer writer = scanning_writer(&scanning, put->memory, put->cpu);

        writer_put_original(&writer, now_ns - put->ago_ns, put->trace, put->number);
    }
}

#define PUT_SPANS(...) put_all((const struct put[]){__VA_ARGS__, {.trace = 0}})

/* Marks the trace as read by the last scan, as the agent does. */
static void note(uint64_t trace)
{
    const struct collected_fetch fetch = {result.reach_ns, scanning.order.until_mono_ns,
                                          result.from_place, scanning.order.place};

    collected_note(scanning.collected, (struct trace_id){0, trace}, &fetch);
}

/* ---- records --------------------------------------------------------------------------------- */

TEST(test_which)
{
    begin(2);
    PUT_SPANS({0, 0, 5, 1, 90 * MS}, {1, 0, 9, 2, 80 * MS}, {1, 1, 6, 3, 70 * MS},
              {1, 0, 5, 4, 60 * MS}, {1, 1, 5, 5, 65 * MS}, {1, 1, 8, 6, 50 * MS});
    WANT(5, 6, 7);
    FETCH("1 3 5 4 ");
    CHECK(result.records == 6 && result.records_found == 4 && !result.is_limited);
    CHECK(result.bytes == 6 * RECORD_BYTES && result.bytes_found == 4 * RECORD_BYTES);
    CHECK(result.rings_damaged == 0 && result.held_from_ns == 17);
    CHECK(scanning.order.wanted[1].is_found && !scanning.order.wanted[2].is_found);
    CHECK(text_is(selection_why(scanning.order.selection, 0, 6), "y"));
    /* no other part of the rings has records of trace 7, and the index knows that */
    PUT_SPANS({0, 1, 7, 7, 40 * MS});
    WANT(7);
    FETCH("7 ");
    CHECK(result.records == 1 && result.bytes_found == RECORD_BYTES);
    note(7);
    FETCH("");
    CHECK(result.records == 1 && result.bytes_found == 0 && !scanning.order.wanted[0].is_found);
    WANT(4);
    fetch_now();
    CHECK(result.bytes == 0);
}

/* Events of spans begin with their trace. The time of an unreadable event is not known. */
TEST(test_unreadable)
{
    const struct ring_original event = {.trace_id = 5, .span_id = 8};
    const uint64_t trace = 5;
    struct writer writer;

    begin(1);
    writer = scanning_writer(&scanning, 0, 0);
    PUT_SPANS({0, 0, 5, 1, 3 * SECOND});
    (void)writer_put(&writer, BLKIN_EVENT_SPAN, 1, &trace, sizeof(trace));
    (void)writer_put(&writer, BLKIN_EVENT_SPAN, 1, &trace, sizeof(trace) - 1);
    (void)writer_put(&writer, BLKIN_EVENT_PROCESS, 1, &trace, sizeof(trace));
    (void)writer_put(&writer, BLKIN_EVENTS, 1, &trace, sizeof(trace));
    (void)writer_put(&writer, RING_ORIGINAL, 1, &event, sizeof(event));
    (void)writer_put(&writer, RING_ORIGINAL + BLKIN_ORIGINAL_EVENTS, 1, &event, sizeof(event));
    PUT_SPANS({0, 0, 5, 2, 2 * SECOND}, {0, 1, 5, 3, 1 * SECOND});
    writer = scanning_writer(&scanning, 0, 1);
    (void)writer_put(&writer, BLKIN_EVENT_SPAN, 1, &trace, sizeof(trace)); /* time: the scan's */
    WANT(5);
    FETCH("1 0 8 2 3 0 ");
    CHECK(scanning.order.wanted[0].held_from_ns == now_ns - 100 * SECOND);
}

/* ---- later scans ----------------------------------------------------------------------------- */

TEST(test_again)
{
    begin(1);
    PUT_SPANS({0, 0, 5, 1, 900 * MS}, {0, 1, 5, 2, 800 * MS});
    WANT(5);
    FETCH("1 2 ");
    note(5);
    FETCH("");
    /* a late record: its time is before the last fetch */
    PUT_SPANS({0, 0, 5, 3, 850 * MS}, {0, 0, 6, 4, 840 * MS});
    add_memory(1, 0); /* and a new memory */
    PUT_SPANS({1, 1, 5, 5, 100 * MS});
    WANT(5, 6);
    FETCH("3 4 5 ");
    now_ns++;
    note(6); /* each trace was read to another place */
    PUT_SPANS({0, 0, 6, 6, 50 * MS});
    FETCH("3 5 6 ");
}

/* If the place was removed, the times of the records tell which ones were sent. */
TEST(test_forgotten)
{
    begin(1);
    PUT_SPANS({0, 0, 5, 1, 900 * MS});
    WANT(5);
    fetch_now();
    result.reach_ns = now_ns - 900 * MS;
    note(5);
    PUT_SPANS({0, 0, 5, 2, 0}, {0, 0, 5, 3, 1}, {0, 0, 5, 4, 900 * MS + 1}); /* 3 is late */
    for (int i = 0; i < 5000; i++)
        (void)places_take(scanning.places, &scanning.held[0]);
    now_ns += 200 * MS;
    FETCH("4 2 ");
    CHECK(!places_has(scanning.places, 1));
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Writes a span with the current time. Returns that time. */
static int64_t put_now(uint32_t cpu, uint64_t trace, uint64_t number)
{
    const int64_t at_ns = clock_ns();

    now_ns = at_ns;
    PUT_SPANS({0, cpu, trace, number, 0});
    return at_ns;
}

static void want_from(uint64_t trace, int64_t begin_ns)
{
    WANT(trace);
    scanning.requests->came_mono_ns = clock_ns();
    scanning.requests->at_ns = 1000 * SECOND;
    scanning.requests->traces[0].begin_ns =
        1000 * SECOND - (scanning.requests->came_mono_ns - begin_ns);
    now_ns = clock_ns();
}

/* Writes a whole span of the span API that ends now. */
static void put_span(uint64_t trace, int64_t begin_ns)
{
    const struct writer writer = scanning_writer(&scanning, 0, 1);
    const int64_t end_ns = clock_ns();
    const struct blkin_span_event head = {trace, 0, (uint64_t)(end_ns - begin_ns), 0, 0};
    char payload[512], *at = payload;

    memcpy(at, &head, sizeof(head));
    at = stpcpy(at + sizeof(head), "read") + 1;
    at = stpcpy(at, packed_whole('1', (uint64_t)end_ns, "")) + 1;
    at = stpcpy(at, "osd") + 1;
    (void)writer_put(&writer, BLKIN_EVENT_SPAN, 77, payload, (size_t)(at - payload));
    now_ns = clock_ns();
}

/* The scan does not read records from before the trace's begin. The scan reads them if a record
 * tells an earlier begin, or if no place for that time is known. */
TEST(test_bounds)
{
    int64_t first, third;

    begin(1);
    first = put_now(0, 5, 1);
    put_now(0, 9, 2);
    (void)places_take(scanning.places, &scanning.held[0]);
    third = put_now(0, 5, 3);
    put_now(1, 5, 4);
    put_now(1, 9, 5);
    want_from(5, third);
    FETCH("3 4 ");
    CHECK(result.records == 3 && result.from_place == 1 && result.reach_ns == third);
    CHECK(scanning.order.wanted[0].held_from_ns == (int64_t)scanning.held[0].memory.created_ns);
    note(5);
    PUT_SPANS({0, 1, 5, 6, 1}); /* late */
    /* the trace began earlier: found records are not found again */
    want_from(5, first);
    FETCH("1 6 ");
    CHECK(result.from_place == 0 && result.reach_ns == INT64_MIN);
    scanning_end(&scanning);

    /* a record tells an earlier begin: the walks of the other rings continue to that begin */
    begin(1);
    put_now(0, 5, 1);
    (void)places_take(scanning.places, &scanning.held[0]);
    first = put_now(0, 5, 2);
    put_now(1, 5, 3);
    (void)places_take(scanning.places, &scanning.held[0]);
    third = clock_ns();
    put_span(5, first);
    want_from(5, third);
    FETCH("2 3 0 ");
    CHECK(result.from_place == 1 && result.reach_ns == first && result.records == 3);
}

/* Records after the trace's begin were overwritten: the result tells the time from which the
 * ring has all records. */
TEST(test_bound_is_gone)
{
    int64_t begin_ns;

    begin(1);
    put_now(0, 5, 1);
    (void)places_take(scanning.places, &scanning.held[0]);
    begin_ns = put_now(0, 5, 2);
    for (unsigned i = 0; i < 2000; i++)
        put_now(0, 9, 1000 + i);
    want_from(5, begin_ns);
    FETCH("");
    CHECK(result.held_from_ns > begin_ns);
}

/* Random records and random fetches: each record is found exactly once. */
TEST(test_any)
{
    static uint32_t written[8], given[8]; /* numbers of records for each trace */
    uint64_t state = seed_begin(), number = 0;
    static uint64_t trace_of[100000];
    static bool is_given[100000];

    begin(2);
    for (int round = 0; round < 300; round++) {
        uint64_t wanted[9] = {0};
        size_t some = 0;

        for (uint64_t n = seed_next(&state) % 40; n; n--) {
            const uint64_t trace = seed_next(&state) % 8;

            trace_of[++number] = trace;
            written[trace]++;
            PUT_SPANS({seed_next(&state) & 1, seed_next(&state) & 1, trace + 1, number,
                       (int64_t)(seed_next(&state) % (uint64_t)SECOND)});
        }
        for (uint64_t trace = 0; trace < 8; trace++)
            if (round % 10 == 9 || (seed_next(&state) & 3) == 0)
                wanted[some++] = trace + 1;
        if (!some)
            continue;
        scanning_want(&scanning, wanted);
        now_ns++;
        fetch_now();
        for (size_t i = 0; i < count; i++) {
            CHECK(!is_given[numbers[i]]);
            is_given[numbers[i]] = true;
            given[trace_of[numbers[i]]]++;
        }
        for (size_t i = 0; i < some; i++) {
            CHECK(given[wanted[i] - 1] == written[wanted[i] - 1]);
            note(wanted[i]);
        }
    }
}

/* ---- the index ------------------------------------------------------------------------------- */

/* Random scans of rings that are overwritten: fetch_now() compares the results. */
TEST(test_index)
{
    uint64_t state = seed_begin(), number = 0, at;
    struct writer writer;

    begin(0);
    scanning_add(&scanning, 1, now_ns - 100 * SECOND, UINT64_C(1) << 22);
    all_bytes = read_bytes = 0;
    for (int round = 0; round < 100; round++) {
        for (uint64_t n = seed_next(&state) % 6000; n; n--) {
            ++number;
            PUT_SPANS({0, seed_next(&state) & 1, 1 + number / 4, number, -(int64_t)number * 1000});
        }
        now_ns += SECOND;
        /* old ones and new ones, and one that does not exist */
        WANT(1 + seed_next(&state) % (1 + number / 4), 1 + (number - seed_next(&state) % 400) / 4,
             number + 5);
        fetch_now();
        now_ns -= SECOND;
    }
    CHECK(read_bytes < all_bytes / 2);
    printf("%.1f %% of the bytes are read with the index\n",
           100 * (double)read_bytes / (double)all_bytes);

    /* the ring's end is moved back, and other records get the positions */
    writer = scanning_writer(&scanning, 0, 0);
    at = ring_committed(writer.ring);
    PUT_SPANS({0, 0, number + 6, 1, 0}, {0, 0, number + 6, 2, 0});
    WANT(number + 7);
    fetch_now();
    __atomic_store_n(writer_committed(&writer), at, __ATOMIC_RELEASE);
    fetch_now();
    PUT_SPANS({0, 0, number + 7, 3, 0}, {0, 0, number + 7, 4, 0});
    FETCH("3 4 ");
}

/* ---- windows --------------------------------------------------------------------------------- */

static void want_window(int64_t last_ms, int64_t ago_ns)
{
    WANT(0);
    scanning.requests->last_ms = last_ms;
    scanning.requests->came_mono_ns = now_ns - ago_ns;
}

/* Returns true if an earlier scan has sent the span. */
static bool was_sent(uint64_t trace, int64_t ago_ns)
{
    const struct span span = {.trace_id = trace, .recorded_ns = now_ns - ago_ns + SCANNING_OFFSET};

    return selection_was_sent(scanning.order.selection, &span);
}

static bool wants(int64_t ago_ns)
{
    return selection_wants(scanning.order.selection, 0, 3, now_ns - ago_ns + SCANNING_OFFSET);
}

TEST(test_window)
{
    begin(1);
    /* spans 4 and 5 are late, span 7 comes after the request */
    PUT_SPANS({0, 0, 1, 1, 20 * SECOND}, {0, 0, 2, 2, 5 * SECOND + 1}, {0, 0, 3, 3, 4 * SECOND},
              {0, 0, 3, 4, 5 * SECOND}, {0, 0, 4, 5, 5500 * MS}, {0, 1, 5, 6, 2 * SECOND},
              {0, 1, 6, 7, 2 * SECOND - 1});
    want_window(3000, 2 * SECOND);
    FETCH("4 3 6 ");
    CHECK(result.held_from_ns == 17);
    CHECK(wants(5 * SECOND) && !wants(5 * SECOND + 1) && wants(2 * SECOND + 1));
    CHECK(!wants(2 * SECOND) && !was_sent(3, 4 * SECOND));
    CHECK(text_is(selection_why(scanning.order.selection, 0, 3), "blkin keep --last=3s"));
    note(6); /* its records up to now, and a window */
    collected_note_window(scanning.collected,
                          (struct collected_window){now_ns - 6 * SECOND, now_ns - 3 * SECOND, 0});
    fetch_now();
    CHECK(was_sent(3, 6 * SECOND) && !was_sent(3, 6 * SECOND + 1) && !was_sent(3, 3 * SECOND));
    CHECK(was_sent(6, 1) && !was_sent(6, 0));
    want_window(2500, 2 * SECOND);
    scanning.requests->is_look = true; /* a list of the halves in the window */
    FETCH("");
    CHECK(text_is(selection_why(scanning.order.selection, 0, 3), "blkin keep --last=2500ms"));
    CHECK(!was_sent(3, 6 * SECOND));
}

/* ---- the time with all records --------------------------------------------------------------- */

/* Writes records of trace 9: the first from_ago ns ago, then one in each step. */
static void fill(size_t memory, uint32_t cpu, unsigned records, int64_t from_ago, int64_t step)
{
    for (unsigned i = 0; i < records; i++)
        PUT_SPANS({memory, cpu, 9, 1000 + i, from_ago - (int64_t)i * step});
}

/* Returns the age of held_from_ns of that wanted trace. */
static int64_t held_ago(size_t index)
{
    return now_ns - scanning.order.wanted[index].held_from_ns;
}

TEST(test_held_from)
{
    /* no record was overwritten: since the memory was made */
    begin(1);
    fill(0, 0, 10, 10 * SECOND, MS);
    WANT(9);
    fetch_now();
    CHECK(held_ago(0) == 100 * SECOND);
    /* overwritten records: since the oldest record; of several rings, the latest of these times */
    fill(0, 0, 2000, 9 * SECOND, MS);
    fetch_now();
    CHECK(held_ago(0) < 8 * SECOND && held_ago(0) > 7 * SECOND);
    fill(0, 1, 2000, 6 * SECOND, MS);
    fetch_now();
    CHECK(held_ago(0) < 5 * SECOND && held_ago(0) > 4 * SECOND);
    scanning_end(&scanning);

    /* the second memory continues the first: a memory with all its records does not limit the time
     */
    begin(2);
    fill(0, 0, 2000, 9 * SECOND, MS);
    fill(1, 0, 10, 2 * SECOND, MS);
    WANT(9);
    fetch_now();
    CHECK(held_ago(0) < 8 * SECOND && held_ago(0) > 7 * SECOND);
    fill(1, 0, 2000, 4 * SECOND, MS);
    fetch_now();
    CHECK(held_ago(0) < 3 * SECOND && held_ago(0) > 2 * SECOND);
    scanning_end(&scanning);

    /* no rings: since the start of the agent, as no program had a ring before */
    begin(0);
    WANT(5);
    fetch_now();
    CHECK(result.held_from_ns == 17 && scanning.order.wanted[0].held_from_ns == INT64_MIN);
}

/* Whether a trace is whole depends on the rings of the users that have records of the trace. */
TEST(test_other_users)
{
    begin(1);
    PUT_SPANS({0, 0, 5, 1, 9 * SECOND});
    WANT(5, 6);
    add_memory(2, SECOND); /* the first program of that user */
    fetch_now();
    CHECK(held_ago(0) == 100 * SECOND && result.held_from_ns == 17);
    fill(1, 0, 2000, 5 * SECOND, MS);
    fetch_now();
    CHECK(held_ago(0) == 100 * SECOND);
    /* the second user may have had records of a trace without any record here */
    CHECK(now_ns - result.held_from_ns < 4 * SECOND && now_ns - result.held_from_ns > 3 * SECOND);
    PUT_SPANS({1, 1, 5, 2, 2 * SECOND});
    fetch_now();
    CHECK(held_ago(0) < 4 * SECOND && held_ago(0) > 3 * SECOND);
    /* a program of the first user had no rings until a second ago */
    ((struct ring_memory *)(void *)scanning.held[0].memory.at)->missed_until_ns =
        (uint64_t)(now_ns - SECOND);
    fetch_now();
    CHECK(held_ago(0) == SECOND && result.held_from_ns == now_ns - SECOND);
}

TEST(test_damaged)
{
    struct writer writer;
    const uint64_t nonsense = UINT64_C(0x5555555555555555);
    uint64_t at;

    begin(1);
    writer = scanning_writer(&scanning, 0, 0);
    PUT_SPANS({0, 0, 5, 1, 9 * SECOND}, {0, 0, 5, 2, 8 * SECOND});
    at = ring_committed(writer.ring);
    PUT_SPANS({0, 0, 5, 3, 7 * SECOND});
    writer_store(&writer, at - sizeof(nonsense), &nonsense, sizeof(nonsense));
    WANT(5);
    FETCH("3 ");
    CHECK(result.rings_damaged == 1 && held_ago(0) == 7 * SECOND && result.held_from_ns == 17);
    want_window(60000, 0);
    fetch_now();
    CHECK(result.held_from_ns == now_ns - 7 * SECOND);
}

/* Damage by one user to its rings, or to the head of its memory, hides no records of other users.
 */
TEST(test_damage_of_another_user)
{
    const uint64_t nonsense = UINT64_C(0x5555555555555555);
    struct writer writer;

    begin(1);
    PUT_SPANS({0, 0, 5, 1, 9 * SECOND});
    add_memory(2, 100 * SECOND);
    writer = scanning_writer(&scanning, 1, 0);
    PUT_SPANS({1, 0, 6, 2, 8 * SECOND});
    WANT(5, 6);
    memset(scanning.held[1].memory.at, 0xff, RING_PAGE);
    FETCH("1 2 ");
    CHECK(result.rings_damaged == 0 && held_ago(0) == 100 * SECOND);
    writer_store(&writer, ring_committed(writer.ring) - sizeof(nonsense), &nonsense,
                 sizeof(nonsense));
    FETCH("1 ");
    CHECK(result.rings_damaged == 1 && held_ago(0) == 100 * SECOND);
    PUT_SPANS({1, 0, 6, 3, 7 * SECOND}); /* that user's own spans may be lost */
    FETCH("1 3 ");
    CHECK(result.rings_damaged == 1 && held_ago(0) == 100 * SECOND && held_ago(1) == 7 * SECOND);
    __atomic_store_n(writer_committed(&writer), UINT64_MAX - 7, __ATOMIC_RELEASE);
    FETCH("1 ");
    CHECK(held_ago(0) == 100 * SECOND);
}

/* Without room for all records, the scan finds the newest records of a ring. The result tells the
 * time from which all records were found. */
TEST(test_limit)
{
    begin(1);
    for (unsigned i = 1; i <= 10; i++)
        PUT_SPANS({0, 1, 5, i, (int64_t)(11 - i) * SECOND});
    WANT(5);
    for (unsigned some = 4; some <= 10; some += 3) {
        scanning_order(&scanning, now_ns);
        scanning.order.max_bytes = some * RECORD_BYTES + (some == 4 ? RECORD_BYTES - 1 : 0);
        CHECK(run() && count == some && numbers[0] == 11 - some && numbers[some - 1] == 10);
        CHECK(result.is_limited == (some < 10) && result.bytes_found == some * RECORD_BYTES);
        CHECK(result.records_found == some);
        /* a record of some + 1 s ago was left out */
        CHECK(held_ago(0) == (some < 10 ? (int64_t)(some + 1) * SECOND - 1 : 100 * SECOND));
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

/* In a full list, every other place of the older half is removed. */
TEST(test_places)
{
    begin(1);
    for (uint64_t number = 1; number <= 257; number++)
        CHECK(places_take(scanning.places, scanning.held) == number);
    for (uint64_t number = 1; number <= 257; number++)
        CHECK(places_has(scanning.places, number) == (number > 128 || number % 2 == 0));
    CHECK(!places_has(scanning.places, 0) && !places_has(scanning.places, 258));
    CHECK(places_before(scanning.places, INT64_MAX) == 257 &&
          places_before(scanning.places, now_ns) == 0);
}

CHECK_MAIN_EACH(NULL, end)

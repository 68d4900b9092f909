/*
 * Joins of three hosts in a simulated world with a simulated clock: requests through four servers,
 * a broker that delivers late, refused wants, hosts that are away, and halves that are recorded
 * late or fit two requests. Each request is one trace, or each of its traces is marked; no parent
 * is wrong.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "plugin/starvation/starve.h"
#include "seed.h"
#include "tools/agent/joins_parts.h"

#include <time.h>

#define JOINED_HOSTS    3
#define TIERS           4
#define JOINED_REQUESTS 24
#define JOINED_BEGIN    (INT64_C(1700000000) * SECOND)
#define JOINED_RECORDS  (JOINED_REQUESTS * TIERS * 2)

static const unsigned tier_host[TIERS] = {0, 0, 1, 2};

struct joined_record {
    struct join_half half;
    int64_t written_ns;
};

struct joined_message {
    json_t *json;
    unsigned from;
    int to; /* -1: all */
    int64_t arrival_ns[JOINED_HOSTS];
};

struct want {
    bool answered[JOINED_HOSTS], has_failed;
};

static struct host {
    struct agent agent;
    struct joins *joins;
    struct joined_record records[JOINED_RECORDS];
    size_t record_count;
    struct request *look;
    int64_t look_ns;
    size_t read; /* messages that this host has taken */
    struct want wants[20000];
    size_t want_count;
    bool is_away;
    int64_t next_ms; /* the next call of joins_step() */
} hosts[JOINED_HOSTS];

static struct joined_message messages[60000];
static size_t message_count;
static int64_t now_ns;

/* the faults of this world */
static struct {
    unsigned refused;  /* of 100 wants */
    unsigned late;     /* of 100 halves are recorded seconds later */
    unsigned doubled;  /* of 100 requests have the keys of another one at the same time */
    unsigned delay_ms; /* the longest time that a message takes */
    bool has_away;
    bool are_busy;     /* true: joins_step() is called more often than necessary */
    unsigned alarm_ms; /* from the begin of a request, which takes 600 ms, to its alarms */
} faults;

/* for the collector: the id and the parent under which each trace was sent */
static struct trace_id sent[JOINED_REQUESTS][TIERS];
static uint64_t parents[JOINED_REQUESTS][TIERS];
static bool is_sent[JOINED_REQUESTS][TIERS];
static uint64_t marked[JOINED_REQUESTS * TIERS * 100];
static size_t marked_count, looks,
    stayed; /* stayed: traces that joins_take() left in the request */

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){now_ns / SECOND, now_ns % SECOND};
    return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static uint64_t trace_of(unsigned request, unsigned tier)
{
    return (uint64_t)request * TIERS + tier + 1;
}

static uint64_t client_of(unsigned request, unsigned tier)
{
    return 1000000 + trace_of(request, tier);
}

static void record(unsigned tier, const struct join_half *half)
{
    struct host *host = &hosts[tier_host[tier]];
    const int64_t late_ns = dice(100) < faults.late ? (int64_t)dice(4000) * MS : 0;

    host->records[host->record_count++] =
        (struct joined_record){*half, half->end_ns + (int64_t)dice(2000) * 1000 + late_ns};
}

/* The halves of one request: each server calls the next one. */
static void make_request(unsigned request, int64_t begin_ns, unsigned keys_of)
{
    for (unsigned tier = 0; tier < TIERS; tier++) {
        struct join_half half = {.trace_id_high = JOIN_TRACE_HIGH,
                                 .trace_id = trace_of(request, tier),
                                 .network = tier_host[tier] + 1,
                                 .request_bytes = 100,
                                 /* of equal size, another half could take a late half's place */
                                 .response_bytes = 200 + (faults.late ? request : 0),
                                 .key = trace_of(keys_of, tier) * 77,
                                 .span_id = 2000000 + trace_of(request, tier),
                                 .start_ns = begin_ns + 2 * tier * MS,
                                 .end_ns = begin_ns + 600 * MS - 2 * tier * MS};

        record(tier, &half);
        half.is_client = true;
        half.key = trace_of(keys_of, tier + 1) * 77;
        half.span_id = client_of(request, tier);
        half.start_ns += MS;
        half.end_ns -= MS;
        if (tier + 1 < TIERS)
            record(tier, &half);
    }
}

static void alarm_of(unsigned request, unsigned tier)
{
    struct host *host = &hosts[tier_host[tier]];
    struct request *wanted = request_new("", host->agent.host);

    host->agent.totals.traces_asked++;
    CHECK(request_add(wanted, (struct trace_id){JOIN_TRACE_HIGH, trace_of(request, tier)}, 0,
                      "slow"));
    joins_take(host->joins, wanted, now_ns / MS + faults.alarm_ms * 5 / 3);
    stayed += wanted->count;
    host->next_ms = 0;
    requests_free(wanted);
}

/* ---- the calls of joins ---------------------------------------------------------------------- */

static void post(const struct host *host, int to, json_t *json)
{
    struct joined_message *message = &messages[message_count++];

    *message = (struct joined_message){json, (unsigned)(host - hosts), to, {0}};
    for (unsigned i = 0; i < JOINED_HOSTS; i++)
        message->arrival_ns[i] = now_ns + (int64_t)(1 + dice(faults.delay_ms)) * MS;
}

static void mark_id(struct trace_id id)
{
    if (marked_count < sizeof(marked) / sizeof(marked[0]))
        marked[marked_count++] = id.low;
}

static void look(void *context, struct request *request)
{
    const int64_t alarm_ns = JOINED_BEGIN + (50 + faults.alarm_ms) * MS;
    struct host *host = context;

    CHECK(!host->look && request->is_look && request->came_mono_ns == now_ns &&
          request->last_ms > 0 && request->last_ms <= 60001);
    /* when the first alarm is due; from 10.1 s before the alarm on */
    CHECK(faults.are_busy || looks++ > 0 ||
          (now_ns >= alarm_ns + faults.alarm_ms * 5 / 3 * MS &&
           request->last_ms == (now_ns - alarm_ns) / MS + 10101));
    host->look = request;
    host->look_ns = now_ns + (int64_t)dice(300) * MS;
}

static void want(void *context, struct request *request, json_t *halves)
{
    struct host *host = context;
    struct want *made = &host->wants[host->want_count++];
    json_t *json;

    (void)snprintf(request->id, sizeof(request->id), "%ld:%zu", (long)(host - hosts),
                   host->want_count);
    request->at_ns = now_ns;
    *made = (struct want){.has_failed = false};
    made->answered[host - hosts] = true;
    json = request_json(request);
    (void)json_object_set_new(json_array_get(json_object_get(json, "traces"), 0), "halves", halves);
    post(host, -1, json);
}

static struct want *want_of(struct host *host, const char *id)
{
    const char *number = strchr(id, ':');
    const size_t i = number ? strtoul(number + 1, NULL, 10) : 0;

    return i > 0 && i <= host->want_count ? &host->wants[i - 1] : NULL;
}

static bool is_answered(void *context, const struct request *request)
{
    const struct want *made = want_of(context, request->id);

    for (unsigned i = 0; i < JOINED_HOSTS; i++)
        if (!made->answered[i] && !hosts[i].is_away)
            return false;
    return true;
}

static void settle(void *context, json_t *settled)
{
    post(context, -1, json_pack("{so}", "settled", settled));
}

/* The verdict follows at once: nobody waits longer for answers. */
static void fetch(void *context, struct request *request, const char *doubt)
{
    struct host *host = context;
    const struct trace_id id = request->traces[0].id;
    const unsigned number = (unsigned)(id.low - 1) / TIERS, tier = (unsigned)(id.low - 1) % TIERS;
    const struct want *made = want_of(host, request->id);
    struct join_place place = {.parent_id = 0};

    CHECK(made && joins_find(host->joins, id, &place));
    sent[number][tier] = (struct trace_id){place.trace_id_high, place.trace_id};
    parents[number][tier] = place.parent_id;
    is_sent[number][tier] = true;
    if (doubt || made->has_failed || !(made->answered[0] && made->answered[1] && made->answered[2]))
        mark_id(sent[number][tier]);
    requests_free(request);
}

static void answer(void *context, const struct request *request, int64_t held_from_ns,
                   const char *problem)
{
    (void)held_from_ns;
    post(context, request->host[0] - 'a',
         json_pack("{ss, ss*}", "found", request->id, "error", problem));
}

static void mark(void *context, struct trace_id id, int64_t time_ns, const char *why)
{
    (void)context;
    CHECK(time_ns > 0 && why);
    mark_id(id);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void take_want(struct host *host, const json_t *json)
{
    const bool is_refused = dice(100) < faults.refused;
    size_t left;
    struct request *request = request_read(json, 200, &left);

    CHECK(request);
    joins_note(host->joins, json, is_refused);
    if (is_refused) {
        answer(host, request, 0, "other hosts may not want more");
        requests_free(request);
    } else {
        joins_queue_want(host->joins, request);
    }
}

static void take(struct host *host, const struct joined_message *message)
{
    const json_t *json = message->json;
    const char *found = json_string_value(json_object_get(json, "found"));
    struct want *made = found ? want_of(host, found) : NULL;

    host->next_ms = 0;
    if (made) {
        made->answered[message->from] = true;
        made->has_failed |= json_object_get(json, "error") != NULL;
    } else if (json_object_get(json, "settled")) {
        joins_take_settled(host->joins, json);
    } else {
        take_want(host, json);
    }
}

static void end_look(struct host *host)
{
    const int64_t from_ns = host->look->came_mono_ns - host->look->last_ms * MS;
    struct halves found = {.count = 0};

    for (size_t i = 0; i < host->record_count; i++) {
        const struct joined_record *one = &host->records[i];

        if (one->written_ns <= now_ns && one->half.end_ns >= from_ns)
            CHECK(halves_add(&found, &one->half));
    }
    requests_free(host->look);
    host->look = NULL;
    joins_looked(host->joins, &found, 0, NULL);
    host->next_ms = 0;
    halves_free(&found);
}

static void step(struct host *host)
{
    while (host->read < message_count) {
        const struct joined_message *message = &messages[host->read];

        if (message->arrival_ns[host - hosts] > now_ns)
            break;
        host->read++;
        if (message->from != (unsigned)(host - hosts) &&
            (message->to < 0 || message->to == host - hosts))
            take(host, message);
    }
    if (host->look && host->look_ns <= now_ns)
        end_look(host);
    if (faults.are_busy || host->next_ms <= now_ns / MS)
        host->next_ms = joins_step(host->joins);
}

static void begin(struct config *config)
{
    now_ns = JOINED_BEGIN;
    message_count = marked_count = looks = stayed = 0;
    memset(is_sent, 0, sizeof(is_sent));
    for (unsigned i = 0; i < JOINED_HOSTS; i++) {
        struct host *host = &hosts[i];
        const struct joins_calls calls = {look,  want,   is_answered, settle,
                                          fetch, answer, mark,        host};

        *host = (struct host){
            .agent = {.config = config, .host = {(char)('a' + i)}, .scan_queue = {.max = 200}}};
        host->joins = joins_new(&host->agent, &calls);
        host->is_away = faults.has_away && i == 2;
    }
}

static void end(void)
{
    for (unsigned i = 0; i < JOINED_HOSTS; i++) {
        joins_free(hosts[i].joins);
        requests_free(hosts[i].look);
    }
    for (size_t i = 0; i < message_count; i++)
        json_decref(messages[i].json);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static bool is_marked(struct trace_id id)
{
    for (size_t i = 0; i < marked_count; i++)
        if (marked[i] == id.low)
            return true;
    return false;
}

static unsigned whole, silent, wrong, marks;

static void judge(unsigned request)
{
    bool is_whole = true, is_silent = false;

    for (unsigned tier = 0; tier < TIERS; tier++) {
        const bool has_parent = is_sent[request][tier] && parents[request][tier];

        is_whole &= is_sent[request][tier] && sent[request][tier].low == trace_of(request, 0) &&
                    (tier == 0 || has_parent);
        wrong +=
            has_parent && (tier == 0 || parents[request][tier] != client_of(request, tier - 1));
        is_silent |= is_sent[request][tier] && !is_marked(sent[request][tier]);
    }
    whole += is_whole;
    silent += !is_whole && is_silent;
    marks += is_marked(sent[request][0]);
}

/* Checks that each trace was asked for once, and that each host knows it for two minutes. */
static void check_all_once(void)
{
    const size_t all = JOINED_REQUESTS * TIERS;
    uint64_t asked = 0, wants = 0;

    for (unsigned i = 0; i < JOINED_HOSTS; i++) {
        const struct agent_totals *totals = &hosts[i].agent.totals;
        const struct joins *joins = hosts[i].joins;

        asked += totals->traces_asked - totals->traces_asked_again;
        wants += hosts[i].want_count;
        CHECK(joins->traces.count == all && joins->halves.count == 2 * all - JOINED_REQUESTS);
        now_ns = JOINED_BEGIN + 120 * SECOND;
        (void)joins_step(hosts[i].joins); /* looks for late halves, once */
        CHECK(joins->traces.count == all && hosts[i].look);
        end_look(&hosts[i]);
        (void)joins_step(hosts[i].joins);
        CHECK(!hosts[i].look && totals->halves_dropped == 0);
        now_ns += 30 * SECOND;
        (void)joins_step(hosts[i].joins);
        CHECK(joins->traces.count == 0 && joins->halves.count == 0);
    }
    CHECK(asked == all + stayed && wants == all);
}

static void play(struct config *config, unsigned alarms)
{
    const int64_t live = starve.live;

    whole = silent = wrong = marks = 0;
    begin(config);
    for (unsigned i = 0; i < JOINED_REQUESTS; i++)
        make_request(i, JOINED_BEGIN + ((int64_t)(i + 1) * 50 + 5) * MS,
                     dice(100) < faults.doubled && i ? i - 1 : i);
    for (unsigned ms = 0; ms < 30000; ms += 10, now_ns += 10 * MS) {
        for (unsigned i = 0; i < JOINED_REQUESTS; i++)
            if (ms == (i + 1) * 50 + faults.alarm_ms)
                for (unsigned tier = 0; tier < TIERS; tier++)
                    if (alarms & 1U << tier && !hosts[tier_host[tier]].is_away)
                        alarm_of(i, tier);
        for (unsigned i = 0; i < JOINED_HOSTS; i++)
            if (!hosts[i].is_away)
                step(&hosts[i]);
    }
    for (unsigned i = 0; i < JOINED_REQUESTS; i++)
        judge(i);
    for (unsigned i = 0; i < JOINED_HOSTS; i++)
        CHECK(joins_open(hosts[i].joins) == 0);
    if (!faults.are_busy)
        check_all_once();
    end();
    CHECK(silent == 0 && wrong == 0 && starve.live == live);
}

/* A half as a text in a message. */
TEST(test_half)
{
    const struct join_half half = {
        .is_client = true, .key = 1, .network = UINT64_MAX, .trace_id_high = 7, .trace_id = 2};
    json_t *text = half_json(&half), *bad = json_string("c0123456789abcdef");
    struct join_half read;

    CHECK(half_read(text, &read) && read.is_client && read.key == 1 && read.network == UINT64_MAX);
    CHECK(half_is_of(&read, (struct trace_id){7, 2}) &&
          !half_is_of(&read, (struct trace_id){0, 2}));
    CHECK(!half_read(bad, &read) && !half_read(NULL, &read));
    ((char *)(uintptr_t)json_string_value(text))[128] = '1'; /* it ends before it begins */
    CHECK(!half_read(text, &read));
    json_decref(bad);
    json_decref(text);
}

int main(void)
{
    char *arguments[] = {(char[]){"test-joined"}, (char[]){"--answer-timeout-ms=2000"}, NULL};
    const struct config_request request = {.section = "agent", .usage = ""};
    int status;
    struct config *config = config_read(&request, 2, arguments, &status);

    CHECK(config);
    json_set_alloc_funcs(malloc, free);
    dice_state = seed_begin();
    faults.delay_ms = 50;
    for (unsigned i = 2; i < 2U << TIERS; i++) { /* any host may be slow */
        faults.alarm_ms = i % 2 ? 60 : 600;
        play(config, i / 2);
        CHECK(whole == JOINED_REQUESTS && marks == 0);
    }
    for (unsigned i = 0; i < 14; i++) {
        memset(&faults, 0, sizeof(faults));
        faults.are_busy = true;
        faults.alarm_ms = 600;
        faults.delay_ms = 1 + (unsigned)(dice(4) == 0 ? dice(4000) : dice(100));
        faults.refused = i % 2 ? (unsigned)dice(60) : 0;
        /* a late half's place may be taken by the half of another request with the same key */
        if (i % 5 == 4)
            faults.doubled = (unsigned)dice(50);
        else if (i % 3)
            faults.late = (unsigned)dice(30);
        faults.has_away = i % 7 == 6;
        play(config, 1 + (unsigned)dice((1U << TIERS) - 1));
    }
    config_free(config);
    check_run();
    return check_status();
}

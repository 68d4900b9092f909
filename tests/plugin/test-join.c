/*
 * Joining of made-up halves that arrive in any order, in chains, or too late.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "join_checks.h"
#include "seed.h"

/* ---- one hop */

TEST(test_server_first)
{
    struct stage *join = begin(&options);

    give(join, CALL(7, 72, 71, 12, 14));
    give(join, SERVES(7, 71, 11, 15, 99));
    CHECK(held == 2);
    give(join, CLIENT(0, 1, 10, 3, 10, 16, 99));
    CHECK_TEXT(out, "1/10<3 "); /* a span of an unmarked trace never waits */
    chain_advance(&chain, 16 * MS + JOIN_SETTLE_NS);
    CHECK_TEXT(out, "1/10<3 1/72<71 1/71<10" WAS "00007 ");
    /* spans that end after their root: the trace is known for two seconds after its last one */
    give(join, CALL(7, 73, 71, 12, 2115));
    give(join, CALL(7, 74, 71, 12, 4114));
    give(join, CALL(7, 75, 71, 12, 6114));
    CHECK_TEXT(out, "1/10<3 1/72<71 1/71<10" WAS "00007 1/73<71 1/74<71 ");
    JOIN_ENDS(join, .halves = 1, .joined = 1, .rootless = 1);
}

/* A server's half finds a client's half that arrived up to wait_ns before, and still has it when
 * they are compared again. A tag keeps the trace id that the server's program knew. */
TEST(test_client_first)
{
    static const struct {
        int64_t wait_ms, server_ms, joined_ms;
    } cases[] = {{2000, 17, 117}, {2000, 2016, 2116}, {50, 17, 67}, {50, 66, 116}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct join_options with = options;
        struct stage *join;

        with.wait_ns = cases[i].wait_ms * MS;
        join = begin(&with);
        give(join, CLIENT(5, 1, 10, 0, 10, 16, 99));
        give_at(join, cases[i].server_ms, CALL(0x7abc, 72, 71, 12, 14));
        give_at(join, cases[i].server_ms, SERVES(0x7abc, 71, 11, 15, 99));
        chain_advance(&chain, cases[i].joined_ms * MS - 1);
        CHECK(held == 2);
        chain_advance(&chain, cases[i].joined_ms * MS);
        CHECK_TEXT(out, "5:1/10<0 5:1/72<71 5:1/71<10" WAS "07abc ");
        JOIN_ENDS(join, .halves = 1, .joined = 1);
    }
}

TEST(test_unjoined)
{
    struct stage *join = begin(&options);

    give(join, CALL(7, 72, 71, 12, 14));
    give(join, SERVES(7, 71, 11, 15, 99));
    chain_advance(&chain, 15 * MS + options.wait_ns - 1);
    CHECK(held == 2);
    chain_advance(&chain, 15 * MS + options.wait_ns);
    CHECK_TEXT(out, "m7/72<71 m7/71<0 ");
    give_at(join, 2100, CLIENT(0, 1, 10, 0, 10, 16, 99)); /* too late */
    give_at(join, 2101, CLIENT(0, 1, 10, 0, 10, 16, 99));
    JOIN_ENDS(join, .halves = 1, .unjoined = 1, .late = 1);
}

/* A request may take longer than the wait, because the wait begins at the end of the request. */
TEST(test_slow_request)
{
    struct stage *join = begin(&options);

    give(join, CALL(7, 72, 71, 1000, 1001));
    give(join, CALL(7, 73, 71, 30000, 30001));
    give(join, SERVES(7, 71, 10, 55000, 99));
    give(join, CLIENT(0, 1, 10, 0, 9, 55001, 99));
    chain_advance(&chain, 60 * SECOND);
    CHECK_TEXT(out, "1/10<0 1/72<71 1/73<71 1/71<10" WAS "00007 ");
    JOIN_ENDS(join, .halves = 1, .joined = 1);
}

/* If two networks have the same private addresses, halves of different connections have one key. */
TEST(test_networks)
{
    static const struct {
        uint64_t client_network, server_network;
        int64_t request, response; /* the client's; the server's are 10 and 20 */
        bool is_joined;
    } cases[] = {
        {7, 7, 10, 21, true},  {7, 8, 10, 20, true},  {7, 8, 10, 21, false},
        {7, 8, 11, 20, true},  {7, 8, 9, 20, false},  {7, 8, 20, 10, false},
        {0, 8, 10, 20, false}, {7, 0, 10, 20, false}, {0, 0, 10, 21, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct stage *join = begin(&options);
        struct made server = SERVES(1, 2, 20, 30, 42), client = CLIENT(0, 9, 8, 0, 10, 40, 42);

        server.proof.network = cases[i].server_network;
        server.proof.request = 10;
        server.proof.response = 20;
        client.proof.network = cases[i].client_network;
        client.proof.request = cases[i].request;
        client.proof.response = cases[i].response;
        give(join, server);
        give(join, client);
        JOIN_ENDS(join, .halves = 1, .joined = cases[i].is_joined,
                  .ambiguous = !cases[i].is_joined);
    }
}

/* The server was killed: the spans of the request arrive without a root. A root that arrives
 * afterwards is counted, too. */
TEST(test_rootless)
{
    struct stage *join = begin(&options);

    give(join, CALL(7, 72, 71, 1000, 1001));
    give(join, CALL(7, 73, 71, 1000, 2001));
    chain_advance(&chain, 62001 * MS - 1);
    CHECK(held == 2);
    chain_advance(&chain, 62001 * MS);
    CHECK_TEXT(out, "m7/72<71 m7/73<71 ");
    give_at(join, 62500, SERVES(7, 71, 10, 62500, 99));
    CHECK_TEXT(out, "m7/72<71 m7/73<71 m7/71<0 ");
    JOIN_ENDS(join, .halves = 1, .unjoined = 1, .rootless = 1);
}

/* Traces whose client is known come first, and those without a root last. */
TEST(test_flush)
{
    struct stage *join = begin(&options);

    give(join, CALL(6, 62, 61, 12, 14));
    give(join, SERVES(8, 81, 11, 15, 98));
    give(join, SERVES(9, 91, 11, 15, 97));
    give(join, SERVES(7, 71, 11, 15, 99));
    give(join, CLIENT(0, 1, 10, 0, 10, 16, 99));
    CHECK(chain_flush_some(&chain, 2));
    CHECK_TEXT(out, "1/10<0 1/71<10" WAS "00007 m8/81<0 ");
    CHECK(chain_flush_some(&chain, 1) && held == 1);
    JOIN_ENDS(join, .halves = 3, .joined = 1, .unjoined = 2, .rootless = 1);
}

/* ---- matching halves */

TEST(test_times)
{
    static const struct {
        int64_t from_ms, to_ms;
        bool fits;
    } clients[] = {{10, 20, true}, {11, 19, true},  {12, 20, false}, {10, 18, true}, {0, 9, true},
                   {0, 8, false},  {21, 30, false}, {12, 18, false}, {0, 500, true}};

    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
        struct stage *join = begin(&options);

        give(join, SERVES(7, 71, 10, 20, 99));
        give_at(join, 30, CLIENT(0, 1, 10, 0, clients[i].from_ms, clients[i].to_ms, 99));
        JOIN_ENDS(join, .halves = 1, .joined = clients[i].fits, .unjoined = !clients[i].fits);
    }
    for (int i = 0; i < 2; i++) { /* the limits of int64_t */
        struct stage *join = begin(&options);
        struct made client = CLIENT(0, 1, 10, 0, 0, 0, 99);
        struct span span;

        give(join, SERVES(7, 71, 10, 20, 99));
        CHECK(make_span(&span, &client));
        span.start_ns = i ? INT64_MIN : INT64_MAX;
        span.end_ns = INT64_MAX;
        held++;
        chain_take(&chain, &span, 30 * MS);
        CHECK(chain.counts.out == 1);
        free(span.log);
        JOIN_ENDS(join, .halves = 1, .joined = (uint64_t)i, .unjoined = !i);
    }
}

/* Addresses and ports recur: successive requests have the same key. */
TEST(test_recurring)
{
    struct stage *join = begin(&options);

    is_quiet = true;
    for (uint64_t i = 1; i <= 1000; i++) {
        const int64_t at = (int64_t)i * 100;

        give(join, SERVES(1000 + i, 2000 + i, at + 5, at + 30, 99));
        give(join, CLIENT(0, i, 5000 + i, 0, at, at + 35, 99));
    }
    JOIN_ENDS(join, .halves = 1000, .joined = 1000);
}

TEST(test_two_clients)
{
    struct stage *join = begin(&options);

    give(join, CLIENT(0, 1, 10, 0, 10, 16, 99));
    give_at(join, 16, SERVES(7, 71, 11, 15, 99));
    give(join, CLIENT(0, 2, 20, 0, 10, 17, 99));
    chain_advance(&chain, SECOND);
    CHECK_TEXT(out, "1/10<0 2/20<0 m7/71<0 ");
    JOIN_ENDS(join, .halves = 1, .ambiguous = 1);
}

TEST(test_two_servers)
{
    struct stage *join = begin(&options);

    give(join, SERVES(7, 71, 11, 15, 99));
    give(join, CLIENT(0, 1, 10, 0, 10, 16, 99));
    give_at(join, 16, SERVES(8, 81, 12, 15, 99));
    JOIN_ENDS(join, .halves = 2, .ambiguous = 2);

    join = begin(&options); /* the second server's half arrives after the first was joined */
    give(join, SERVES(7, 71, 11, 15, 99));
    give(join, CLIENT(0, 1, 10, 0, 10, 16, 99));
    give_at(join, 200, SERVES(8, 81, 12, 15, 99));
    chain_advance(&chain, 3 * SECOND);
    CHECK_TEXT(out, "1/10<0 1/71<10" WAS "00007 m8/81<0 ");
    JOIN_ENDS(join, .halves = 2, .joined = 1, .ambiguous = 1);
}

/* Two sessions record the same request. */
TEST(test_twice)
{
    struct stage *join = begin(&options);

    for (int i = 0; i < 2; i++) {
        give_at(join, 15, SERVES(7, 71, 11, 15, 99));
        give_at(join, 16, CLIENT(0, 1, 10, 0, 10, 16, 99));
    }
    chain_advance(&chain, SECOND);
    CHECK_TEXT(out, "1/10<0 1/10<0 1/71<10" WAS "00007 1/71<0 ");
    JOIN_ENDS(join, .halves = 1, .joined = 1);
}

/* Spans that are not for joining pass at once. */
TEST(test_others)
{
    struct stage *join = begin(&options);

    give(join, (struct made){0, 1, 2, 0, 1, 2, 99, SPAN_SERVER, {0, 0, 0}}); /* not marked */
    give(join, (struct made){3, 1, 2, 0, 1, 2, 0, SPAN_LOCAL, {0, 0, 0}});
    give(join, CLIENT(0, 1, 2, 0, 1, 2, 0));
    give(join, (struct made){MARK, 7, 71, 0, 1, 2, 0, SPAN_SERVER, {0, 0, 0}}); /* without a key */
    give(join, (struct made){MARK, 8, 81, 0, 1, 2, 99, SPAN_LOCAL, {0, 0, 0}}); /* a local span */
    CHECK(held == 0);
    give(join, CALL(9, 92, 91, 1, 2)); /* held until the root arrives, which has no key */
    give(join, (struct made){MARK, 9, 91, 0, 1, 2, 0, SPAN_SERVER, {0, 0, 0}});
    CHECK(held == 0 && out_count == 7);
    JOIN_ENDS(join, .halves = 0);
}

/* ---- chains */

/* If nobody recorded the first server's client, the chain has the id of the first server's trace.
 */
TEST(test_chain_of_its_own)
{
    struct stage *join = begin(&options);

    give(join, SERVES(8, 81, 13, 14, 100));
    give(join, CLIENT(MARK, 7, 72, 71, 12, 15, 100));
    give(join, SERVES(7, 71, 11, 16, 99));
    chain_advance(&chain, 10 * SECOND);
    CHECK_TEXT(out, "m7/72<71 m7/71<0 m7/81<72" WAS "00008 ");
    JOIN_ENDS(join, .halves = 2, .joined = 1, .unjoined = 1);
}

/* Two servers call each other at the same time. */
TEST(test_cycle)
{
    struct stage *join = begin(&options);

    give(join, CLIENT(MARK, 7, 72, 71, 10, 20, 100));
    give(join, CLIENT(MARK, 8, 82, 81, 10, 20, 99));
    give(join, SERVES(8, 81, 10, 20, 100));
    give(join, SERVES(7, 71, 10, 20, 99));
    give(join, SERVES(9, 91, 10, 20, 98)); /* its own client */
    give(join, CLIENT(MARK, 9, 92, 91, 10, 20, 98));
    JOIN_ENDS(join, .halves = 3, .joined = 1, .ambiguous = 2);
    CHECK(out_count == 6);
}

/* ---- many random requests: all traces and parents are correct, in chains of up to five programs
 */

struct arrival {
    struct made made;
    int64_t at_ms;
    uint64_t request;
};

static struct arrival arrivals[20000];
static size_t arrivals_count;

static void arrive(struct made made, uint64_t request)
{
    arrivals[arrivals_count++] = (struct arrival){made, made.end_ms + (int64_t)dice(8), request};
}

static uint64_t next_id = 1;

/* Makes the spans of one server, with up to three calls. A call may be to another server. The key
 * is the id of the client's span. */
static void make_server(uint64_t request, uint64_t key, int64_t from, int64_t to, int depth)
{
    const uint64_t trace = next_id++, root = next_id++;

    for (uint64_t calls = dice(4); calls && to - from > 8; calls--) {
        const uint64_t id = next_id++;

        if (depth < 4 && dice(2)) {
            arrive(CLIENT(MARK, trace, id, root, from + 1, to - 1, id), request);
            make_server(request, id, from + 2, to - 2, depth + 1);
        } else {
            arrive(CALL(trace, id, root, from + 1, to - 1), request);
        }
    }
    arrive(SERVES(trace, root, from, to, key), request);
}

static int by_time(const void *a, const void *b)
{
    const struct arrival *left = a, *right = b;

    return left->at_ms != right->at_ms
               ? (left->at_ms > right->at_ms) - (left->at_ms < right->at_ms)
               : (left->made.id > right->made.id) - (left->made.id < right->made.id);
}

static uint64_t request_of[40000], parent_of[40000]; /* by span id */
static uint64_t wrong;

static void check_request(const struct span *span)
{
    /* the trace of the first client has the number of the request as its id */
    wrong += span->trace_id_high != 0 || span->trace_id != request_of[span->id] ||
             span->parent_id != parent_of[span->id];
    out_count++;
}

static void deliver_and_check(void *context, const struct span *span)
{
    (void)context;
    held--;
    check_request(span);
}

TEST(test_random)
{
    struct assembler *assembler =
        assembler_new(&(struct assembler_options){.max_open_spans = 1}, NULL, NULL);
    struct stage *join = begin_with(&options, deliver_and_check);
    uint64_t servers = 0;

    out_count = held = wrong = arrivals_count = 0;
    next_id = 1;
    for (uint64_t request = 1; arrivals_count < 19000; request++) {
        const int64_t from = (int64_t)request * 3, to = from + 20 + (int64_t)dice(3000);
        const uint64_t key = next_id++;

        arrive(CLIENT(0, request, key, 0, from - 1, to + 1, key), request);
        make_server(request, key, from, to, 1);
    }
    qsort(arrivals, arrivals_count, sizeof(arrivals[0]), by_time);
    for (size_t i = 0; i < arrivals_count; i++) {
        const struct made *made = &arrivals[i].made;
        struct span span;

        servers += made->kind == SPAN_SERVER;
        request_of[made->id] = arrivals[i].request;
        parent_of[made->id] = made->kind == SPAN_SERVER ? made->key : made->parent;
        CHECK(make_span(&span, made));
        span.endpoint = endpoint_get(assembler->endpoints, text_of("s"), text_of(""), 0);
        held++;
        chain_take(&chain, &span, arrivals[i].at_ms * MS);
        free(span.log);
    }
    JOIN_ENDS(join, .halves = servers, .joined = servers);
    CHECK(servers > 4000 && wrong == 0 && out_count == arrivals_count);
    assembler_free(assembler);
}

/* ---- spans whose trace and parent the caller has decided */

static void give_placed(struct made made, const struct join_place *place)
{
    struct span span;

    CHECK(make_span(&span, &made));
    join_put_span(&span, place);
    held++;
    chain_take(&chain, &span, 20 * MS);
    free(span.log);
}

/* Spans with a place pass at once and keep their parents, although there is a client's half. */
TEST(test_placed)
{
    struct stage *join = begin(&options);

    give(join, CLIENT(0, 1, 10, 3, 10, 16, 99));
    give_placed(SERVES(7, 71, 11, 15, 99), &(struct join_place){JOIN_ALONE, MARK, 7, 0});
    give_placed(SERVES(8, 81, 11, 15, 98), &(struct join_place){JOIN_PAIR, MARK, 6, 61});
    give_placed(CALL(8, 82, 81, 12, 14), &(struct join_place){JOIN_PAIR, MARK, 6, 61});
    give_placed(CALL(8, 83, 0, 12, 14), &(struct join_place){JOIN_PAIR, 0, 6, 61});
    CHECK_TEXT(out, "1/10<3 m7/71<0 m6/81<61" WAS "00008 m6/82<81 6/83<0 ");
    CHECK(held == 0);
    JOIN_ENDS(join, .halves = 0);
}

CHECK_MAIN

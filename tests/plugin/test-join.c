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
    struct join_counts counts;

    give(join, CALL(7, 72, 71, 12, 14));
    give(join, SERVES(7, 71, 11, 15, 99));
    CHECK(held == 2);
    give(join, CLIENT(0, 1, 10, 3, 10, 16, 99));
    CHECK_TEXT(out, "1/10<3 "); /* a span of an unmarked trace never waits */
    chain_advance(&chain, 16 * MS + JOIN_SETTLE_NS);
    CHECK_TEXT(out, "1/10<3 1/72<71 1/71<10 ");
    give(join, CALL(7, 73, 71, 12, 40)); /* a span that ends after its root */
    CHECK_TEXT(out, "1/10<3 1/72<71 1/71<10 1/73<71 ");
    counts = end(join);
    CHECK(counts.halves == 1 && counts.joined == 1 && counts.rootless == 0);
}

TEST(test_client_first)
{
    struct stage *join = begin(&options);

    give(join, CLIENT(5, 1, 10, 0, 10, 16, 99));
    give_at(join, 17, CALL(7, 72, 71, 12, 14));
    give_at(join, 17, SERVES(7, 71, 11, 15, 99));
    chain_advance(&chain, 17 * MS + JOIN_SETTLE_NS - 1);
    CHECK(held == 2);
    chain_advance(&chain, 17 * MS + JOIN_SETTLE_NS);
    CHECK_TEXT(out, "1/10<0 1/72<71 1/71<10 ");
    CHECK(end(join).joined == 1);
}

/* A tag keeps the trace id that the server's program knew. */
static char tag_text[33];

static void look_for_tag(void *context, const struct span *span)
{
    (void)context;
    CHECK(span->trace_id_high == 5 && span->trace_id == 1);
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (text_equal(span_entry_key(entry), text_of("blkin.joined")) && entry->value_length == 32)
            memcpy(tag_text, span_entry_value(entry).data, 32);
    }
}

TEST(test_tag)
{
    const struct made server = SERVES(0x7abc, 71, 11, 15, 99),
                      client = CLIENT(5, 1, 10, 0, 10, 16, 99);
    struct span span;

    (void)begin_with(&options, look_for_tag);
    CHECK(make_span(&span, &server));
    chain_take(&chain, &span, 15 * MS);
    free(span.log);
    CHECK(chain_held(&chain) == 1 && make_span(&span, &client));
    chain_take(&chain, &span, 16 * MS);
    free(span.log);
    CHECK(chain.counts.out == 1 && chain_flush_some(&chain, 10) && chain.counts.out == 2);
    CHECK_TEXT(tag_text, "626c6b2d6a6f696e0000000000007abc");
    chain_free(&chain);
}

TEST(test_unjoined)
{
    struct stage *join = begin(&options);
    struct join_counts counts;

    give(join, CALL(7, 72, 71, 12, 14));
    give(join, SERVES(7, 71, 11, 15, 99));
    chain_advance(&chain, 15 * MS + options.wait_ns - 1);
    CHECK(held == 2);
    chain_advance(&chain, 15 * MS + options.wait_ns);
    CHECK_TEXT(out, "m7/72<71 m7/71<0 ");
    give_at(join, 2100, CLIENT(0, 1, 10, 0, 10, 16, 99)); /* too late */
    give_at(join, 2101, CLIENT(0, 1, 10, 0, 10, 16, 99));
    counts = end(join);
    CHECK(counts.unjoined == 1 && counts.late == 1 && counts.joined == 0 && counts.early == 0);
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
    CHECK_TEXT(out, "1/10<0 1/72<71 1/73<71 1/71<10 ");
    CHECK(end(join).joined == 1);
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
        struct join_counts counts;

        server.proof.network = cases[i].server_network;
        server.proof.request = 10;
        server.proof.response = 20;
        client.proof.network = cases[i].client_network;
        client.proof.request = cases[i].request;
        client.proof.response = cases[i].response;
        give(join, server);
        give(join, client);
        counts = end(join);
        CHECK(counts.joined == cases[i].is_joined && counts.ambiguous == !cases[i].is_joined);
    }
}

/* The server was killed: the spans of the request arrive without a root. A root that arrives
 * afterwards is counted, too. */
TEST(test_rootless)
{
    struct stage *join = begin(&options);
    struct join_counts counts;

    give(join, CALL(7, 72, 71, 1000, 1001));
    chain_advance(&chain, 61000 * MS);
    CHECK(held == 1);
    chain_advance(&chain, 61001 * MS);
    CHECK_TEXT(out, "m7/72<71 ");
    give_at(join, 62000, SERVES(7, 71, 10, 62000, 99));
    CHECK_TEXT(out, "m7/72<71 m7/71<0 ");
    counts = end(join);
    CHECK(counts.rootless == 1 && counts.halves == 1 && counts.unjoined == 1);
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
        CHECK(end(join).joined == clients[i].fits);
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
        CHECK(end(join).joined == (uint64_t)i);
    }
}

/* Addresses and ports recur: successive requests have the same key. */
TEST(test_recurring)
{
    struct stage *join = begin(&options);
    struct join_counts counts;

    is_quiet = true;
    for (uint64_t i = 1; i <= 1000; i++) {
        const int64_t at = (int64_t)i * 100;

        give(join, SERVES(1000 + i, 2000 + i, at + 5, at + 30, 99));
        give(join, CLIENT(0, i, 5000 + i, 0, at, at + 35, 99));
    }
    counts = end(join);
    CHECK(counts.joined == 1000 && counts.ambiguous == 0);
}

TEST(test_two_clients)
{
    struct stage *join = begin(&options);

    give(join, CLIENT(0, 1, 10, 0, 10, 16, 99));
    give_at(join, 16, SERVES(7, 71, 11, 15, 99));
    give(join, CLIENT(0, 2, 20, 0, 10, 17, 99));
    chain_advance(&chain, SECOND);
    CHECK_TEXT(out, "1/10<0 2/20<0 m7/71<0 ");
    CHECK(end(join).ambiguous == 1);
}

TEST(test_two_servers)
{
    struct stage *join = begin(&options);

    give(join, SERVES(7, 71, 11, 15, 99));
    give(join, CLIENT(0, 1, 10, 0, 10, 16, 99));
    give_at(join, 16, SERVES(8, 81, 12, 15, 99));
    CHECK(end(join).ambiguous == 2);

    join = begin(&options); /* the second server's half arrives after the first was joined */
    give(join, SERVES(7, 71, 11, 15, 99));
    give(join, CLIENT(0, 1, 10, 0, 10, 16, 99));
    give_at(join, 200, SERVES(8, 81, 12, 15, 99));
    chain_advance(&chain, 3 * SECOND);
    CHECK_TEXT(out, "1/10<0 1/71<10 m8/81<0 ");
    CHECK(end(join).ambiguous == 1);
}

/* Two sessions record the same request. */
TEST(test_twice)
{
    struct stage *join = begin(&options);
    struct join_counts counts;

    for (int i = 0; i < 2; i++) {
        give_at(join, 15, SERVES(7, 71, 11, 15, 99));
        give_at(join, 16, CLIENT(0, 1, 10, 0, 10, 16, 99));
    }
    chain_advance(&chain, SECOND);
    CHECK_TEXT(out, "1/10<0 1/10<0 1/71<10 1/71<0 ");
    counts = end(join);
    CHECK(counts.halves == 1 && counts.joined == 1);
}

/* Spans that are not for joining pass at once. */
TEST(test_others)
{
    struct stage *join = begin(&options);
    struct join_counts counts;

    give(join, (struct made){0, 1, 2, 0, 1, 2, 99, SPAN_SERVER, {0, 0, 0}}); /* not marked */
    give(join, (struct made){3, 1, 2, 0, 1, 2, 0, SPAN_LOCAL, {0, 0, 0}});
    give(join, CLIENT(0, 1, 2, 0, 1, 2, 0));
    give(join, (struct made){MARK, 7, 71, 0, 1, 2, 0, SPAN_SERVER, {0, 0, 0}}); /* without a key */
    give(join, (struct made){MARK, 8, 81, 0, 1, 2, 99, SPAN_LOCAL, {0, 0, 0}}); /* a local span */
    CHECK(held == 0);
    give(join, CALL(9, 92, 91, 1, 2)); /* held until the root arrives, which has no key */
    give(join, (struct made){MARK, 9, 91, 0, 1, 2, 0, SPAN_SERVER, {0, 0, 0}});
    CHECK(held == 0);
    counts = end(join);
    CHECK(out_count == 7 && counts.halves == 0 && counts.rootless == 0);
}

/* ---- chains */

static const uint64_t orders[][4] = {{4, 3, 2, 1}, {1, 2, 3, 4}, {2, 4, 1, 3}, {3, 1, 4, 2}};

/* Five programs; tier 0 is only a client. The halves arrive in several orders. */
TEST(test_chain)
{
    for (size_t order = 0; order < sizeof(orders) / sizeof(orders[0]); order++) {
        struct stage *join = begin(&options);

        give_at(join, 100, CLIENT(0, 100, 1, 0, 0, 100, 1000));
        for (int i = 0; i < 4; i++) {
            const uint64_t tier = orders[order][i];
            const int64_t from = (int64_t)tier * 5, to = 100 - from;

            if (tier < 4)
                give_at(join, 100,
                        CLIENT(MARK, 100 + tier, 10 * tier + 1, 10 * tier, from + 2, to - 2,
                               1000 + tier));
            give_at(join, 100, CALL(100 + tier, 10 * tier + 2, 10 * tier, from + 2, to - 2));
            give_at(join, 100, SERVES(100 + tier, 10 * tier, from, to, 999 + tier));
        }
        chain_advance(&chain, 10 * SECOND);
        CHECK(strstr(out, "100/1<0 ") && strstr(out, "100/10<1 ") && strstr(out, "100/20<11 ") &&
              strstr(out, "100/30<21 ") && strstr(out, "100/40<31 ") && strstr(out, "100/42<40 "));
        CHECK(!strchr(out, 'm') && out_count == 12);
        CHECK(end(join).joined == 4);
    }
}

/* If nobody recorded the first server's client, the chain has the id of the first server's trace.
 */
TEST(test_chain_of_its_own)
{
    struct stage *join = begin(&options);
    struct join_counts counts;

    give(join, SERVES(8, 81, 13, 14, 100));
    give(join, CLIENT(MARK, 7, 72, 71, 12, 15, 100));
    give(join, SERVES(7, 71, 11, 16, 99));
    chain_advance(&chain, 10 * SECOND);
    CHECK_TEXT(out, "m7/72<71 m7/71<0 m7/81<72 ");
    counts = end(join);
    CHECK(counts.joined == 1 && counts.unjoined == 1);
}

/* Two servers call each other at the same time. */
TEST(test_cycle)
{
    struct stage *join = begin(&options);
    struct join_counts counts;

    give(join, CLIENT(MARK, 7, 72, 71, 10, 20, 100));
    give(join, CLIENT(MARK, 8, 82, 81, 10, 20, 99));
    give(join, SERVES(8, 81, 10, 20, 100));
    give(join, SERVES(7, 71, 10, 20, 99));
    give(join, SERVES(9, 91, 10, 20, 98)); /* its own client */
    give(join, CLIENT(MARK, 9, 92, 91, 10, 20, 98));
    counts = end(join);
    CHECK(out_count == 6 && counts.joined == 1 && counts.ambiguous == 2);
}

/* ---- many random requests: all joins are correct */

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

/* Makes the spans of one server, with up to three calls. A call may be to another server. */
static void make_server(uint64_t request, uint64_t key, int64_t from, int64_t to, int depth)
{
    const uint64_t trace = next_id++, root = next_id++;

    for (uint64_t calls = dice(4); calls && to - from > 8; calls--) {
        const uint64_t id = next_id++, below = next_id++;

        if (depth < 4 && dice(2)) {
            arrive(CLIENT(MARK, trace, id, root, from + 1, to - 1, below), request);
            make_server(request, below, from + 2, to - 2, depth + 1);
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

static uint64_t request_of[40000]; /* by span id */
static uint64_t wrong;

static void check_request(const struct span *span)
{
    /* the trace of the first client has the number of the request as its id */
    wrong += span->trace_id_high != 0 || span->trace_id != request_of[span->id];
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
    struct join_counts counts;
    uint64_t servers = 0;

    out_count = held = wrong = arrivals_count = 0;
    next_id = 1;
    for (uint64_t request = 1; arrivals_count < 19000; request++) {
        const int64_t from = (int64_t)request * 3, to = from + 20 + (int64_t)dice(3000);
        const uint64_t key = next_id++;

        arrive(CLIENT(0, request, next_id++, 0, from - 1, to + 1, key), request);
        make_server(request, key, from, to, 1);
    }
    qsort(arrivals, arrivals_count, sizeof(arrivals[0]), by_time);
    for (size_t i = 0; i < arrivals_count; i++) {
        struct span span;

        servers += arrivals[i].made.kind == SPAN_SERVER;
        request_of[arrivals[i].made.id] = arrivals[i].request;
        CHECK(make_span(&span, &arrivals[i].made));
        span.endpoint = endpoint_get(assembler->endpoints, text_of("s"), text_of(""), 0);
        held++;
        chain_take(&chain, &span, arrivals[i].at_ms * MS);
        free(span.log);
    }
    counts = end(join);
    CHECK(servers > 4000 && counts.halves == servers && counts.joined == servers);
    CHECK(wrong == 0 && out_count == arrivals_count);
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
    CHECK_TEXT(out, "1/10<3 m7/71<0 m6/81<61 ");
    CHECK(held == 0 && end(join).halves == 0);
}

CHECK_MAIN

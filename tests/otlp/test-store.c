/*
 * The store of the spans of SDKs: given spans, known losses, refused spans, memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "plugin/starvation/starve.h"
#include "tools/otlp/sdk_store.h"
#include "work/spans.h"

#include <malloc.h>

#define STORE_SPANS 1000

struct store_span {
    uint64_t trace, id;
    int64_t came_ns, start_ns, end_ns;
    unsigned origin;
    size_t length;
};

static struct sdk_memory memory;
static struct store_span model[STORE_SPANS + 1];
static size_t model_count;

/* ---- spans are made ------------------------------------------------------------------------- */

static struct otlp_origin origin_of(unsigned number)
{
    static char bytes[16][64];
    char *resource = bytes[number];
    const int service = snprintf(resource, 32, "R%u-service", number / 4);
    const int scope = snprintf(resource + 32, 32, "scope %u", number % 4);

    return (struct otlp_origin){.resource = {resource, (size_t)service},
                                .scope = {resource + 32, (size_t)scope},
                                .service = {resource + 1, (size_t)service - 1},
                                .number = 1,
                                .scope_number = 1};
}

/* Returns a message Span that is longer than span->length bytes. */
static struct text raw_of(const struct store_span *span)
{
    static char bytes[1 << 18];
    const struct test_span made = {.trace_id = span->trace,
                                   .id = span->id,
                                   .start_ns = span->start_ns,
                                   .duration_ns = span->end_ns - span->start_ns,
                                   .name = "n",
                                   .kind = 2};
    char *end = put_test_span(bytes, &made);

    *end++ = PB_BYTES(3); /* the trace state has the wanted length */
    end = pb_put_varint(end, span->length);
    memset(end, 'x', span->length);
    return (struct text){bytes + 2, (size_t)(end + span->length - bytes) - 2};
}

static enum sdk_added result; /* of the last add() */

/* Adds a span as a request of its own. */
static bool add(struct sdk_store *store, struct store_span span)
{
    const struct otlp_origin origin = origin_of(span.origin);
    struct otlp_span read;

    CHECK(otlp_read_span(raw_of(&span), &read) && read.id == span.id);
    sdk_store_begin(store);
    result = sdk_store_add(store, &origin, &read, span.came_ns);
    if (result != SDK_ADDED)
        return false;
    model[model_count++] = span;
    return true;
}

/* ---- given spans are compared with the model ------------------------------------------------- */

struct store_given {
    size_t count;
    uint64_t ids[STORE_SPANS];
};

static struct store_given given;
static uint64_t last_number;   /* of a resource */
static unsigned last_resource; /* as in origin_of() */

static void give(void *context, const struct otlp_origin *origin, const struct otlp_span *span)
{
    const struct store_span *expected = &model[span->id - 1];
    const struct otlp_origin expected_origin = origin_of(expected->origin);

    (void)context;
    CHECK(origin->number != last_number || expected->origin / 4 == last_resource);
    last_number = origin->number;
    last_resource = expected->origin / 4;
    given.ids[given.count++] = span->id;
    CHECK(expected->id == span->id && expected->trace == span->trace_id);
    CHECK(text_equal(raw_of(expected), span->raw));
    CHECK(text_equal(expected_origin.resource, origin->resource));
    CHECK(text_equal(expected_origin.scope, origin->scope));
    CHECK(text_equal(expected_origin.service, origin->service));
}

/* ---- single cases ---------------------------------------------------------------------------- */

static struct store_span simple(uint64_t trace, size_t length)
{
    const int64_t now = 1000 + (int64_t)model_count;

    return (struct store_span){.trace = trace,
                               .id = model_count + 1,
                               .came_ns = now,
                               .start_ns = now,
                               .end_ns = now,
                               .length = length};
}

static struct sdk_store *new_store(uint64_t bytes)
{
    model_count = 0;
    last_number = 0;
    sdk_memory_begin(&memory, bytes);
    return sdk_store_new(&memory);
}

static struct store_span of_origin(unsigned origin, struct store_span span)
{
    span.origin = origin;
    return span;
}

TEST(only_what_is_new_is_given)
{
    struct sdk_store *store = new_store(0);
    struct sdk_wanted wanted = {.trace_id_high = 7, .trace_id = 1};

    sdk_memory_take(&memory, &wanted, give, NULL);
    CHECK(wanted.spans == 0 && wanted.after == 0);
    for (int round = 0; round < 100; round++) {
        CHECK(add(store, simple(1, 10)) && add(store, simple(2, 10)) && add(store, simple(1, 10)));
        given.count = 0;
        sdk_memory_take(&memory, &wanted, give, NULL);
        CHECK(wanted.spans == 2 && given.count == 2 && wanted.ended_ns == 0);
        CHECK(given.ids[0] == model_count && given.ids[1] == model_count - 2);
    }
    wanted = (struct sdk_wanted){.trace_id_high = 8, .trace_id = 1};
    sdk_memory_take(&memory, &wanted, give, NULL);
    CHECK(wanted.spans == 0);
    sdk_store_free(store);
}

/* A trace may have lost spans if the store of its spans has overwritten any. */
TEST(what_is_gone_is_known)
{
    struct sdk_store *store = new_store(0);
    struct sdk_wanted never = {.trace_id_high = 7, .trace_id = 1}, before = never;

    CHECK(add(store, simple(1, 10)));
    sdk_memory_take(&memory, &before, give, NULL);
    CHECK(before.spans == 1);
    for (int i = 0; i < 40; i++)
        CHECK(add(store, simple(i % 4 == 3 ? 1 : 2, 50000)));
    sdk_memory_take(&memory, &before, give, NULL);
    CHECK(before.spans > 1 && before.spans < 9 && before.ended_ns > 0);
    sdk_memory_take(&memory, &never, give, NULL);
    CHECK(never.spans == before.spans && never.ended_ns > 0);
    for (int i = 0; i < 30; i++) {
        CHECK(add(store, simple(3, 50000)) && add(store, simple(1, 10)));
        sdk_memory_take(&memory, &before, give, NULL);
        CHECK(before.spans == 1);
    }
    sdk_store_free(store);
}

TEST(too_large_is_refused)
{
    struct sdk_store *store = new_store(0);

    CHECK(!add(store, simple(1, SDK_MEMORY_MIN / 8)));
    CHECK(result == SDK_TOO_LARGE);
    CHECK(add(store, simple(1, SDK_MEMORY_MIN / 8 - 512)));
    for (int i = 0; i < 100; i++)
        CHECK(add(store, simple(1, SDK_MEMORY_MIN / 8 - 512)));
    CHECK(sdk_store_held(store).spans >= 6);
    sdk_store_free(store);
}

/* If any allocation fails, the store refuses the span for that reason, and stays unchanged. */
TEST(no_memory_is_refused)
{
    struct sdk_store *store = new_store(0);

    CHECK(add(store, simple(1, 100)));
    for (uint64_t n = 1; n <= 3; n++) {
        const struct sdk_held before = sdk_store_held(store);
        struct store_span span = simple(2, 100);

        span.origin = 7; /* a resource and a scope of its own: three allocations */
        starve.fail_at = starve.count + n;
        starve.failed = 0;
        CHECK(!add(store, span));
        CHECK(result == SDK_NO_MEMORY && starve.failed == 1);
        starve.fail_at = 0;
        CHECK(sdk_store_held(store).spans == before.spans);
        CHECK(add(store, simple(1, 100)));
    }
    sdk_store_free(store);
}

/* A span with an end in the future does not empty the store. */
TEST(a_wrong_clock_is_no_harm)
{
    struct sdk_store *store = new_store(0);
    struct store_span wrong = {
        .trace = 1, .id = 1, .came_ns = 1000, .start_ns = 5, .end_ns = 1 << 30};

    CHECK(add(store, wrong));
    for (int i = 0; i < 100; i++)
        CHECK(add(store, simple(2, 50000)));
    CHECK(sdk_store_held(store).ended_ns < 2000);
    sdk_store_free(store);
}

/* ---- two senders ----------------------------------------------------------------------------- */

/* A sender of many spans overwrites its own spans. The other sender's trace stays whole: none of
 * its spans is known to be lost. */
TEST(a_flood_overwrites_its_own)
{
    struct sdk_store *flood = new_store(0), *other = sdk_store_new(&memory);
    struct sdk_wanted wanted = {.trace_id_high = 7, .trace_id = 1};
    struct sdk_wanted of_flood = {.trace_id_high = 7, .trace_id = 2};

    for (int i = 0; i < 100; i++)
        CHECK(add(flood, simple(2, 50000)));
    CHECK(sdk_store_held(flood).bytes > memory.bytes / 2);
    for (int i = 0; i < 200; i++)
        CHECK(
            add(i % 20 ? flood : other, of_origin(i % 20 ? 4 : 0, simple(i % 20 ? 2 : 1, 20000))));
    given.count = 0;
    sdk_memory_take(&memory, &wanted, give, NULL);
    CHECK(wanted.spans == 10 && wanted.ended_ns == 0);
    CHECK(sdk_store_held(other).overwritten == 0);
    sdk_memory_take(&memory, &of_flood, give, NULL);
    CHECK(of_flood.ended_ns > 0);
    CHECK(memory.used <= memory.bytes &&
          sdk_memory_held(&memory).spans + sdk_memory_held(&memory).overwritten == 300);
    sdk_store_free(flood);
    CHECK(sdk_memory_held(&memory).overwritten == 290 &&
          memory.used == sdk_store_held(other).bytes);
    sdk_store_free(other);
    CHECK(memory.used == 0);
}

/* The copy of a period has each span that overlaps the period, by sender in the order of arrival.
 */
TEST(a_time_is_copied)
{
    struct sdk_store *stores[] = {new_store(0), sdk_store_new(&memory)};
    unsigned held = 0;

    for (int i = 0; i < 300; i++) {
        struct store_span span = simple(1 + (uint64_t)i % 3, 5000 + (size_t)i % 7 * 3000);

        span.start_ns = 1000 + i % 50;
        span.end_ns = span.start_ns + i % 9;
        CHECK(add(stores[i % 2], of_origin((unsigned)i % 8, span)));
    }
    for (int64_t from_ns = 990; from_ns < 1070; from_ns += 5) {
        size_t at = 0;

        given.count = 0;
        sdk_memory_copy(&memory, from_ns, from_ns + 4, give, NULL);
        for (size_t i = 0; i < 300; i++) {
            const size_t number = i / 150 + i % 150 * 2; /* in the order of the stores */
            const struct store_span *span = &model[number];
            const size_t oldest = sdk_store_held(stores[number % 2]).overwritten;

            if (i % 150 < oldest || span->end_ns < from_ns || span->start_ns > from_ns + 4)
                continue;
            CHECK(at < given.count && given.ids[at] == span->id);
            at++;
        }
        CHECK(at == given.count);
        held += at > 0;
    }
    CHECK(held > 10 && sdk_memory_held(&memory).overwritten > 0);
    CHECK(sdk_store_held(stores[0]).traces == 3 && sdk_memory_held(&memory).traces == 6);
    for (int k = 0; k < 2; k++)
        sdk_store_free(stores[k]);
}

/* A sender with most of the memory loses memory to other senders, until the shares are equal. */
TEST(each_gets_its_share)
{
    struct sdk_store *stores[4] = {new_store(0)};
    uint64_t least = memory.bytes, most = 0;

    for (int i = 0; i < 200; i++)
        CHECK(add(stores[0], simple(1, 20000)));
    for (int k = 1; k < 4; k++)
        stores[k] = sdk_store_new(&memory);
    for (int i = 0; i < 400; i++)
        CHECK(add(stores[i % 4], simple(1, 10000)));
    for (int k = 0; k < 4; k++) {
        const uint64_t bytes = sdk_store_held(stores[k]).bytes;

        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
    }
    CHECK(least > memory.bytes / 8 && most < memory.bytes / 2 && memory.used <= memory.bytes);
    for (int k = 0; k < 4; k++)
        sdk_store_free(stores[k]);
}

/* ---- a million ------------------------------------------------------------------------------- */

TEST(memory_is_bounded)
{
    const uint64_t size = 8 << 20;
    struct sdk_store *store = new_store(size);
    const struct otlp_origin origin = origin_of(1);
    const struct test_span made = {
        .trace_id = 1, .id = 1, .name = "n", .kind = 1, .duration_ns = 1};
    char bytes[256];
    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    struct otlp_span span;

    (void)put_test_span(bytes, &made);
    CHECK(otlp_read_span((struct text){bytes + 2, (size_t)bytes[1]}, &span));
    for (uint64_t i = 0; i < 1000000; i++) {
        span.trace_id = i;
        CHECK(sdk_store_add(store, &origin, &span, (int64_t)i + 1) == SDK_ADDED);
    }
    CHECK(sdk_store_held(store).spans + sdk_store_held(store).overwritten == 1000000);
    CHECK(sdk_store_held(store).traces == sdk_store_held(store).spans);
    CHECK(sdk_store_held(store).bytes <= size);
    /* the spans are counted as malloc(3) has them; the table of traces has at most twice the needed
     * size */
    CHECK(mallinfo2().uordblks + mallinfo2().hblkhd - before <= size + size / 128 * 16);
    sdk_store_free(store);
}

CHECK_MAIN

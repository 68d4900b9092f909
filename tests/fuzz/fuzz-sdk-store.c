/*
 * Fuzzes the parts that take spans of SDKs: bodies in pieces, compressed or not, any bytes as OTLP,
 * and a store so small that it overwrites all the time. What is given was added, byte for byte,
 * with what it came with; each span is held or counted; nothing is longer than its limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "tools/otlp/sdk_store.h"
#include "tools/otlp/upload.h"
#include "../work/spans.h"

#define SPANS_MAX 4096
#define LIMIT     16000

struct added {
    uint64_t sum; /* of the bytes of span, resource and scope */
    uint64_t trace_id_high, trace_id;
    int64_t start_ns, end_ns;
};

static struct sdk_store *store;
static struct added added[SPANS_MAX];
static size_t count, refused;
static int64_t now_ns;

static uint64_t sum_of_text(uint64_t sum, struct text text)
{
    sum = sum * 31 + text.length;
    for (size_t i = 0; i < text.length; i++)
        sum = sum * 31 + (unsigned char)text.data[i];
    return sum;
}

static uint64_t sum_of_span(const struct otlp_origin *origin, const struct otlp_span *span)
{
    uint64_t sum = sum_of_text(1, origin->resource);

    sum = sum_of_text(sum_of_text(sum, origin->scope), origin->service);
    return sum_of_text(sum, span->raw);
}

static void on_span(void *context, const struct otlp_origin *origin, const struct otlp_span *span)
{
    (void)context;
    if (count == SPANS_MAX)
        return;
    if (sdk_store_add(store, origin, span, ++now_ns))
        added[count++] = (struct added){sum_of_span(origin, span), span->trace_id_high,
                                        span->trace_id, span->start_ns, span->end_ns};
    else
        refused++;
}

/* ---- what is held --------------------------------------------------------------------------- */

/* Those of a time, in the order of their coming, or of one trace the other way. */
struct giving {
    size_t next;
    bool is_of_trace;
    uint64_t trace_id_high, trace_id;
    int64_t from_ns, until_ns;
};

static bool is_wanted(const struct giving *giving, size_t i)
{
    if (giving->is_of_trace)
        return added[i].trace_id_high == giving->trace_id_high &&
               added[i].trace_id == giving->trace_id;
    return added[i].end_ns >= giving->from_ns && added[i].start_ns <= giving->until_ns;
}

static void on_given(void *context, const struct otlp_origin *origin, const struct otlp_span *span)
{
    struct giving *giving = context;
    size_t i;

    do {
        i = giving->is_of_trace ? --giving->next : giving->next++;
        REQUIRE(i < count);
    } while (!is_wanted(giving, i));
    REQUIRE(added[i].sum == sum_of_span(origin, span));
    REQUIRE(added[i].trace_id == span->trace_id);
}

/* All that is held, and what is of a time. */
static void check_held(int64_t from_ns)
{
    const struct sdk_held held = sdk_store_held(store);
    struct giving all = {.next = count - held.spans, .until_ns = INT64_MAX};
    struct giving some = {.next = all.next, .from_ns = from_ns, .until_ns = from_ns + 20};

    REQUIRE(held.spans + held.overwritten == count);
    REQUIRE(held.bytes <= SDK_STORE_MIN && held.traces <= held.spans);
    sdk_store_copy(store, 0, INT64_MAX, on_given, &all);
    REQUIRE(all.next == count);
    sdk_store_copy(store, some.from_ns, some.until_ns, on_given, &some);
    while (some.next < count)
        REQUIRE(!is_wanted(&some, some.next++));
}

static void check_trace(size_t i)
{
    const size_t oldest = count - sdk_store_held(store).spans;
    struct giving giving = {.next = count,
                            .is_of_trace = true,
                            .trace_id_high = added[i].trace_id_high,
                            .trace_id = added[i].trace_id};
    struct sdk_wanted wanted = {.trace_id_high = giving.trace_id_high, .trace_id = giving.trace_id};
    uint64_t expected = 0;

    for (size_t k = oldest; k < count; k++)
        expected += is_wanted(&giving, k);
    sdk_store_take(store, &wanted, on_given, &giving);
    REQUIRE(wanted.spans == expected);
    sdk_store_take(store, &wanted, on_given, &giving);
    REQUIRE(wanted.spans == 0);
}

/* ---- a request ------------------------------------------------------------------------------- */

/* One that is right, so that the store fills. */
static void take_spans(struct input *input)
{
    static const char *const names[] = {"", "a", "service", "a service with a long name"};
    struct buffer buffer = {.limit = 0};
    uint64_t times = take(input, 1) % 64;

    for (uint64_t i = 0; i <= times; i++) {
        const uint64_t what = i % 4 ? i * 7 : take(input, 1);

        add_test_span(&buffer, &(struct test_span){.trace_id = 1 + what % 5,
                                                   .id = 1 + i,
                                                   .start_ns = (int64_t)what,
                                                   .service = names[what / 16 % 4],
                                                   .name = names[what / 64 % 4]});
    }
    if (count < SPANS_MAX - 2000) {
        struct otlp_decoded decoded;

        sdk_store_begin(store);
        decoded = otlp_decode((struct text){buffer.data, buffer.length}, on_span, NULL);
        REQUIRE(decoded.spans == times + 1 && !decoded.is_broken && !decoded.invalid);
    }
    buffer_free(&buffer);
}

static void take_request(struct input *input)
{
    const bool is_gzip = take(input, 1) % 4 == 0;
    const size_t piece = 1 + take(input, 1) * 8;
    struct text bytes = take_bytes(input, take(input, 2) % 2000);
    enum upload_result result = UPLOAD_FINE;
    struct otlp_decoded decoded;
    struct upload upload;
    uint64_t times = 1 + take(input, 1) % 16; /* an input is short: so is the store filled */

    upload_begin(&upload, is_gzip, LIMIT);
    while (bytes.length && result == UPLOAD_FINE) {
        const size_t length = bytes.length < piece ? bytes.length : piece;

        result = upload_add(&upload, bytes.data, length);
        bytes = (struct text){bytes.data + length, bytes.length - length};
    }
    if (result == UPLOAD_FINE)
        result = upload_end(&upload);
    REQUIRE(upload.bytes.length <= LIMIT + (result != UPLOAD_FINE));
    while (result == UPLOAD_FINE && times-- && count < SPANS_MAX - 2000) {
        const size_t before = count + refused;

        sdk_store_begin(store);
        decoded = otlp_decode(upload_text(&upload), on_span, NULL);
        REQUIRE(decoded.spans == count + refused - before + decoded.invalid);
    }
    upload_free(&upload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};

    random_number = take(&input, 1);
    count = refused = 0;
    now_ns = 0;
    store = sdk_store_new(SDK_STORE_MIN);
    REQUIRE(store);
    while (input.at < input.end) {
        if (take(&input, 1) % 2)
            take_spans(&input);
        else
            take_request(&input);
        check_held((int64_t)take(&input, 1));
        if (count)
            check_trace(take(&input, 2) % count);
    }
    sdk_store_free(store);
    return 0;
}

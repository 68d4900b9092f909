/*
 * Fuzzes the parts that take spans of SDKs: bodies in pieces, compressed or not, any bytes as OTLP,
 * and a memory so small that it is always overwritten. The store gives only added spans, byte for
 * byte, with their resource and scope. Each span is held or counted, and nothing is longer than its
 * limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "tools/otlp/sdk_store.h"
#include "tools/otlp/upload.h"
#include "../work/spans.h"

#define STORE_SPANS_MAX 4096
#define STORE_LIMIT     16000

struct added {
    uint64_t sum; /* sum over the bytes of span, resource and scope */
    uint64_t trace_id_high, trace_id;
    int64_t start_ns, end_ns;
};

/* Two senders share the memory. */
struct store_sender {
    struct sdk_store *store;
    struct added added[STORE_SPANS_MAX];
    size_t count, refused;
};

#define SENDERS 2

static struct sdk_memory memory;
static struct store_sender senders[SENDERS];
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
    struct store_sender *sender = context;

    if (sender->count == STORE_SPANS_MAX)
        return;
    if (sdk_store_add(sender->store, origin, span, ++now_ns) == SDK_ADDED)
        sender->added[sender->count++] =
            (struct added){sum_of_span(origin, span), span->trace_id_high, span->trace_id,
                           span->start_ns, span->end_ns};
    else
        sender->refused++;
}

/* ---- stored spans ---------------------------------------------------------------------------- */

static size_t oldest_of(const struct store_sender *sender)
{
    return sender->count - sdk_store_held(sender->store).spans;
}

/* A read of the spans of a time, sender by sender in the order of arrival; or of one trace, newest
 * first. */
struct giving {
    const struct store_sender *of;
    size_t next;
    bool is_of_trace;
    uint64_t trace_id_high, trace_id;
    int64_t from_ns, until_ns;
};

static bool is_wanted(const struct giving *giving, const struct added *added)
{
    if (giving->is_of_trace)
        return added->trace_id_high == giving->trace_id_high && added->trace_id == giving->trace_id;
    return added->end_ns >= giving->from_ns && added->start_ns <= giving->until_ns;
}

/* Returns the next held span; NULL: none. */
static const struct added *next_of(struct giving *giving)
{
    while (giving->next == (giving->is_of_trace ? oldest_of(giving->of) : giving->of->count)) {
        if (++giving->of == senders + SENDERS)
            return NULL;
        giving->next = giving->is_of_trace ? giving->of->count : oldest_of(giving->of);
    }
    return &giving->of->added[giving->is_of_trace ? --giving->next : giving->next++];
}

static void on_given(void *context, const struct otlp_origin *origin, const struct otlp_span *span)
{
    const struct added *added;

    do {
        added = next_of(context);
        REQUIRE(added);
    } while (!is_wanted(context, added));
    REQUIRE(added->sum == sum_of_span(origin, span));
    REQUIRE(added->trace_id == span->trace_id);
}

/* Checks the spans of a time. */
static void check_time(int64_t from_ns, int64_t until_ns)
{
    struct giving giving = {
        .of = senders, .next = oldest_of(senders), .from_ns = from_ns, .until_ns = until_ns};
    const struct added *left;

    sdk_memory_copy(&memory, from_ns, until_ns, on_given, &giving);
    while ((left = next_of(&giving)))
        REQUIRE(!is_wanted(&giving, left));
}

static void check_held(void)
{
    const struct sdk_held all = sdk_memory_held(&memory);

    for (size_t i = 0; i < SENDERS; i++) {
        const struct sdk_held held = sdk_store_held(senders[i].store);

        REQUIRE(held.spans + held.overwritten == senders[i].count && held.traces <= held.spans);
    }
    REQUIRE(all.spans + all.overwritten == senders[0].count + senders[1].count);
    REQUIRE(all.bytes <= SDK_MEMORY_MIN);
}

static void check_trace(const struct added *one)
{
    struct giving giving = {.of = senders,
                            .next = senders[0].count,
                            .is_of_trace = true,
                            .trace_id_high = one->trace_id_high,
                            .trace_id = one->trace_id};
    struct giving expected = giving;
    struct sdk_wanted wanted = {.trace_id_high = one->trace_id_high, .trace_id = one->trace_id};
    const struct added *added;
    uint64_t spans = 0;

    while ((added = next_of(&expected)))
        spans += is_wanted(&expected, added);
    sdk_memory_take(&memory, &wanted, on_given, &giving);
    REQUIRE(wanted.spans == spans);
    sdk_memory_take(&memory, &wanted, on_given, &giving);
    REQUIRE(wanted.spans == 0);
}

/* ---- a request ------------------------------------------------------------------------------- */

/* Adds a valid body, so that the store fills. */
static void take_spans(struct fuzz *input, struct store_sender *sender)
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
    if (sender->count < STORE_SPANS_MAX - 2000) {
        struct otlp_decoded decoded;

        sdk_store_begin(sender->store);
        decoded = otlp_decode((struct text){buffer.data, buffer.length}, on_span, sender);
        REQUIRE(decoded.spans == times + 1 && !decoded.is_broken && !decoded.invalid);
    }
    buffer_free(&buffer);
}

static void take_request(struct fuzz *input, struct store_sender *sender)
{
    const bool is_gzip = take(input, 1) % 4 == 0;
    const size_t piece = 1 + take(input, 1) * 8;
    struct text bytes = take_bytes(input, take(input, 2) % 2000);
    enum upload_result result = UPLOAD_FINE;
    struct otlp_decoded decoded;
    struct upload upload;
    uint64_t times = 1 + take(input, 1) % 16; /* an input is short: repeating it fills the store */

    upload_begin(&upload, is_gzip, STORE_LIMIT);
    while (bytes.length && result == UPLOAD_FINE) {
        const size_t length = bytes.length < piece ? bytes.length : piece;

        result = upload_add(&upload, bytes.data, length);
        bytes = (struct text){bytes.data + length, bytes.length - length};
    }
    if (result == UPLOAD_FINE)
        result = upload_end(&upload);
    REQUIRE(upload.bytes.length <= STORE_LIMIT + (result != UPLOAD_FINE));
    while (result == UPLOAD_FINE && times-- && sender->count < STORE_SPANS_MAX - 2000) {
        const size_t before = sender->count + sender->refused;

        sdk_store_begin(sender->store);
        decoded = otlp_decode(upload_text(&upload), on_span, sender);
        REQUIRE(decoded.spans == sender->count + sender->refused - before + decoded.invalid);
    }
    upload_free(&upload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz input = {data, data + size};

    random_number = take(&input, 1);
    now_ns = 0;
    sdk_memory_begin(&memory, 0);
    for (size_t i = 0; i < SENDERS; i++) {
        senders[i].count = senders[i].refused = 0;
        senders[i].store = sdk_store_new(&memory);
        REQUIRE(senders[i].store);
    }
    while (input.at < input.end) {
        const uint64_t what = take(&input, 1);
        struct store_sender *sender = &senders[what / 2 % SENDERS];
        int64_t from_ns;

        if (what % 2)
            take_spans(&input, sender);
        else
            take_request(&input, sender);
        from_ns = (int64_t)take(&input, 1);
        check_held();
        check_time(0, INT64_MAX);
        check_time(from_ns, from_ns + 20);
        if (sender->count)
            check_trace(&sender->added[take(&input, 2) % sender->count]);
    }
    for (size_t i = 0; i < SENDERS; i++)
        sdk_store_free(senders[i].store);
    REQUIRE(memory.used == 0);
    return 0;
}

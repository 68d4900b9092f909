/*
 * Fuzzes the tags about hosts: samples of any groups, names, values and times, and spans of any
 * hosts, in any order. Each span comes out once with its own bytes, and waits no longer than its
 * limit. Memory is bounded, and sums hold. Tags make sense: a minimum is at most the maximum, a
 * share is at most 1, and the tags have each value that stands out.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/stages/hosts_parts.h"

#include <inttypes.h>

/* libFuzzer chooses inputs by their coverage of the product, not of this file */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#define HOST_SPANS 100

static const struct hosts_options options = {
    .min_ns = 20000000, .max_history_bytes = 60000, .max_held_bytes = 3000};

struct host_given {
    int64_t since_ns;
    bool is_held, is_out;
};

static struct fuzz source;
static struct chain chain;
static struct stage *hosts;
static struct host_given given[HOST_SPANS + 1];
static uint64_t count, held, sequence;
static int64_t now_ns;

/* ---- output ---------------------------------------------------------------------------------- */

static bool ends_with(struct text text, const char *end)
{
    const size_t length = strlen(end);

    return text.length >= length && memcmp(text.data + text.length - length, end, length) == 0;
}

static bool has(struct text text, const char *part)
{
    return memmem(text.data, text.length, part, strlen(part)) != NULL;
}

static void check_number(struct text key, int64_t value, int64_t *least)
{
    REQUIRE(value >= 0);
    if (has(key, "busy") || has(key, "steal") || has(key, "pressure"))
        REQUIRE(value <= 100);
    if (ends_with(key, ".min"))
        *least = value;
    else if (ends_with(key, ".max"))
        REQUIRE(value >= *least);
}

static void check_tags(const struct span *span)
{
    int64_t least = 0;
    bool has_times = false;

    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        const struct text key = span_entry_key(entry);

        if (entry->type == SPAN_TAG_INTEGER)
            check_number(key, entry->integer, &least);
        if (text_is(key, "blkin.host_ms"))
            has_times = true;
        else if (text_is(key, "blkin.host"))
            REQUIRE(has_times && entry->value_length > 10 && entry->value_length < 400);
    }
}

static void deliver(void *context, const struct span *span)
{
    (void)context;
    REQUIRE(span->id && span->id <= count && given[span->id].is_held && !given[span->id].is_out);
    given[span->id].is_out = true;
    held--;
    REQUIRE(text_is(span_name(span), "name") && span->trace_id == 77);
    check_tags(span);
}

static void check_counts(void)
{
    const struct hosts_counts counts = hosts_stage_counts(hosts);

    REQUIRE(counts.spans_held == held && counts.held_bytes <= options.max_held_bytes);
    REQUIRE(counts.history_bytes <= options.max_history_bytes);
    REQUIRE((held == 0) == (counts.held_bytes == 0));
}

/* No span waits longer than two periods, if a period is short enough to be waited for. */
static void check_waits(void)
{
    chain_advance(&chain, now_ns);
    for (uint64_t i = 1; i <= count; i++)
        REQUIRE(given[i].is_out || !given[i].is_held ||
                (uint64_t)now_ns - (uint64_t)given[i].since_ns <= 2 * HOST_WAIT_PERIOD_NS);
}

/* ---- input ----------------------------------------------------------------------------------- */

static const char *host_name(uint64_t choice)
{
    static const char *const names[] = {"", "near", "far", "away"};

    return names[choice % 4];
}

static struct text group_names(uint64_t choice)
{
    static const char *const names[] = {
        "system.disk.io_time:ns:c system.disk.weighted_io_time:ns:c",
        "system.cpu.time.user:ns:c system.cpu.time.idle:ns:c system.cpu.time.steal:ns:c "
        "system.cpu.time.nice:ns:c system.cpu.time.system:ns:c system.cpu.time.interrupt:ns:c "
        "system.cpu.time.softirq:ns:c system.cpu.time.iowait:ns:c",
        "system.linux.pressure.cpu.some:ns:c system.linux.pressure.io.some:ns:c "
        "system.linux.pressure.memory.some:ns:c",
        "system.process.count.running:{thread}:g",
        "system.memory.limit:By:g system.linux.memory.available:By:g",
        "system.network.tcp.segments.retransmit:{segment}:c "
        "system.network.tcp.segments.transmit:{segment}:c",
    };

    return text_of(names[choice % (sizeof(names) / sizeof(names[0]))]);
}

/* Makes numbers that usually grow with time. */
static struct text make_values(char text[400], uint64_t shape)
{
    const size_t values = 1 + shape % 9;
    size_t length = 0;

    if (shape >= 250)
        return take_bytes(&source, shape % 32);
    for (size_t i = 0; i < values && length < 380; i++)
        length += (size_t)snprintf(text + length, 400 - length, "%s%" PRIu64, i ? " " : "",
                                   (uint64_t)(now_ns / 1000) * take(&source, 1));
    return (struct text){text, length};
}

static void add_sample(uint64_t choice)
{
    static const char *const groups[] = {"disk", "cpu", "pressure", "run_queue", "memory", "tcp"};
    const uint64_t group = take(&source, 1), shape = take(&source, 1);
    struct event event = {.kind = EVENT_METRIC, .time_ns = now_ns};
    char values[400];

    event.origin.host = text_of(host_name(choice >> 2));
    event.group = text_of(groups[group % 6]);
    event.instance = text_of(group % 6 ? "" : group & 64 ? "vda1" : "vda");
    event.values = make_values(values, shape);
    if (group & 128)
        event.names = shape == 255 ? take_bytes(&source, 40) : group_names(group % 6);
    event.period_ms = (choice >> 4 & 3) ? 100 * (choice >> 4 & 3) : take(&source, 4);
    event.thread = 1 + (shape == 77);
    event.sequence = sequence += choice != 31;
    hosts_stage_add(hosts, &event, now_ns - (int64_t)(choice >> 6) * 1000000, now_ns);
}

static void add_span(uint64_t choice)
{
    const uint64_t length_ms = take(&source, 2);
    struct span span = {.id = ++count, .trace_id = 77};
    const char *host = host_name(choice >> 2);

    span.end_ns = now_ns + (choice & 128 ? 5000000 : 0);
    span.start_ns = span.end_ns - (int64_t)length_ms * 1000000;
    if (choice == 254)
        span.start_ns = INT64_MIN;
    REQUIRE(span_set_name(&span, text_of("name")));
    if (host[0])
        REQUIRE(span_add(&span, SPAN_TAG_TEXT, text_of("lttng.host"), text_of(host), 0));
    given[count] = (struct host_given){.since_ns = now_ns};
    if (hosts_wants(hosts_of(hosts), &span)) {
        REQUIRE((uint64_t)span.end_ns - (uint64_t)span.start_ns >= (uint64_t)options.min_ns);
        given[count].is_held = true;
        held++;
        chain_take(&chain, &span, now_ns);
    }
    free(span.log);
}

static void step(void)
{
    const uint64_t choice = take(&source, 1);

    if (choice & 1)
        now_ns += (int64_t)take(&source, 1) * 5000000;
    if (choice == 253)
        now_ns += INT64_C(700000000000);
    if ((choice & 3) == 2 && count < HOST_SPANS)
        add_span(choice);
    else
        add_sample(choice);
    check_counts();
    check_waits();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    random_number = sum_of(data, size);
    source = (struct fuzz){data, data + size};
    count = held = sequence = 0;
    now_ns = INT64_C(1000000000000);
    hosts = hosts_stage_new(&options);
    REQUIRE(hosts);
    chain_init(&chain, deliver, NULL);
    chain_append(&chain, hosts);
    while (source.at < source.end)
        step();
    while (chain_flush_some(&chain, 1 + (unsigned)(size % 3)))
        check_counts();
    check_counts();
    for (uint64_t i = 1; i <= count; i++)
        REQUIRE(given[i].is_out == given[i].is_held);
    REQUIRE(held == 0);
    chain_free(&chain);
    return 0;
}

#pragma clang attribute pop

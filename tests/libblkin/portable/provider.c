/*
 * A provider without LTTng, for test-portable.sh. It prints the events that libblkin lays out, with
 * dots in place of data that differ from run to run. With STREAMING in the environment, all events
 * are on; without it, only the events of whole spans, processes and alarms.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tracepoints/format/events.h"
#include "tracepoints/format/provider_table.h"
#include "zipkin_c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct packed_event {
    enum blkin_packed_event number;
};

static struct packed_event events[BLKIN_EVENTS];
static int is_on[BLKIN_EVENTS];
static const int never;

static size_t size_of(enum blkin_packed_event number)
{
    switch (number) {
    case BLKIN_EVENT_SPAN:
        return sizeof(struct blkin_span_event);
    case BLKIN_EVENT_BEGIN:
        return sizeof(struct blkin_begin_event);
    case BLKIN_EVENT_PROCESS:
        return sizeof(struct blkin_process_event);
    case BLKIN_EVENT_SLOW:
        return sizeof(struct blkin_slow_event);
    default:
        return sizeof(struct blkin_detail_event);
    }
}

/* Prints bytes, and returns the next position. */
static const char *print(const char *at, size_t length)
{
    while (length-- > 0) {
        putchar_unlocked(*at ? *at : '|');
        at++;
    }
    return at;
}

/* Skips bytes, and returns the next position. */
static const char *pass(const char *at, size_t length)
{
    while (length-- > 0) {
        putchar_unlocked('.');
        at++;
    }
    return at;
}

static size_t length_at(const char *at)
{
    return (size_t)(at[0] - '0') + 64 * (size_t)(at[1] - '0');
}

/* Prints a record of a log without its time and ids. */
static const char *print_record(const char *at)
{
    const char type = *at;
    const size_t first = type == 'o' ? 0 : length_at(at + 1);

    switch (type) {
    case '(':
        return print(pass(print(at, 3), 8), first & 127);
    case ')':
    case 'T':
        return pass(print(at, 1), 8);
    case '#':
        return print(at, 5);
    case 'o':
        return print(at, 1);
    case 's':
        return print(at, 5 + first + length_at(at + 3));
    case 'I':
    case 'U':
    case 'D':
    case 'B':
        return print(at, 14 + first);
    case 'l':
        return pass(print(at, 1), 48);
    case 'n':
        return print(at, 3 + first);
    case 't':
        return pass(print(at, 1), 16);
    case 'e':
    case 'r':
        return print(at, 21 + length_at(at + 17) + length_at(at + 19));
    default:
        if (type < '0' || type > '7')
            abort();
        return print(pass(print(at, 3), 8), first);
    }
}

static void print_log(const char *at, const char *end)
{
    while (at < end)
        at = print_record(at);
    if (at > end)
        abort();
}

/* Prints a span's packed text, and the service after it. Returns the end. */
static const char *print_packed_span(const char *head, const char *end)
{
    const char *const tail = head + strlen(head) - BLKIN_TAIL_SIZE;
    const char *const ip = tail - length_at(tail + 3);

    pass(print(head, 1), BLKIN_THREAD_SIZE - 1); /* the version */
    head += BLKIN_THREAD_SIZE;
    print(pass(head, 27), 5); /* sampled, dropped */
    head = pass(head + 32, BLKIN_HEAD_SIZE - BLKIN_THREAD_SIZE - 32);
    print_log(head, ip);
    return print(ip, (size_t)(end - ip));
}

static void record(struct packed_event *event, const void *payload, size_t length,
                   void **thread_slot)
{
    const char *const end = (const char *)payload + length;
    const char *at = (const char *)payload + size_of(event->number);

    (void)thread_slot;
    printf("%d: ", (int)event->number);
    switch (event->number) {
    case BLKIN_EVENT_SPAN:
    case BLKIN_EVENT_BEGIN:
        printf("%u %u ", (unsigned char)at[-1], (unsigned char)at[-2]); /* kind and flags */
        at = print_packed_span(print(at, strlen(at) + 1), end);
        break;
    case BLKIN_EVENT_PROCESS:
    case BLKIN_EVENT_SLOW:
        at = print(at, (size_t)(end - at));
        break;
    case BLKIN_EVENT_TAG:
        print_log(at + BLKIN_DETAIL_HEAD_SIZE, end - 1);
        break;
    default:
        print(at + BLKIN_DETAIL_HEAD_SIZE, (size_t)(end - at) - BLKIN_DETAIL_HEAD_SIZE);
    }
    putchar_unlocked('\n');
}

static void record_nothing(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                           const struct blkin_annotation *annotation)
{
    (void)trace;
    (void)endpoint;
    (void)annotation;
}

static void do_nothing(void)
{
}

#define ENTRY(number) [number] = {&is_on[number], &events[number]}

BLKIN_PUBLIC extern const struct blkin_provider blkin_lttng_provider;
const struct blkin_provider blkin_lttng_provider = {
    .version = BLKIN_PROVIDER_VERSION,
    .zipkin = {{&never, record_nothing}, {&never, record_nothing}, {&never, record_nothing}},
    .events = {ENTRY(0), ENTRY(1), ENTRY(2), ENTRY(3), ENTRY(4), ENTRY(5), ENTRY(6), ENTRY(7),
               ENTRY(8), ENTRY(9), ENTRY(10), ENTRY(11), ENTRY(12), ENTRY(13), ENTRY(14)},
    .record = record,
    .init_thread = do_nothing,
    .before_fork = do_nothing,
    .after_fork_parent = do_nothing,
    .after_fork_child = do_nothing,
};

__attribute__((constructor)) static void switch_on(void)
{
    const bool streaming = getenv("STREAMING") != NULL;

    for (int i = 0; i < BLKIN_EVENTS; i++) {
        events[i].number = (enum blkin_packed_event)i;
        is_on[i] =
            streaming || i == BLKIN_EVENT_SPAN || i == BLKIN_EVENT_PROCESS || i == BLKIN_EVENT_SLOW;
    }
}

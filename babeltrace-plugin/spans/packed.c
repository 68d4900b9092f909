/*
 * Strict reading of packed texts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "packed.h"

#include "babeltrace-plugin/base/digits.h"

#include "tracepoints/format/events.h"

static inline bool read_tail(struct event *event, struct text rest)
{
    const char *const digits = rest.data + rest.length - BLKIN_TAIL_SIZE;
    uint64_t wrong = 0;
    const uint64_t numbers = digits_last(digits + BLKIN_TAIL_SIZE, BLKIN_TAIL_SIZE, &wrong);
    const uint64_t port = numbers & 0x3ffff;
    const size_t ip_length = numbers >> 18;

    if (wrong || port > UINT16_MAX || ip_length > rest.length - BLKIN_TAIL_SIZE)
        return false;
    event->port = (int64_t)port;
    event->ip = (struct text){digits - ip_length, ip_length};
    event->log = (struct text){rest.data, rest.length - BLKIN_TAIL_SIZE - ip_length};
    return event->kind == EVENT_SPAN || event->log.length == 0;
}

static bool read_whole(struct event *event, struct text packed)
{
    const char *const at = packed.data;
    uint64_t wrong = 0, moment, low, high;

    if (packed.length < BLKIN_HEAD_SIZE + BLKIN_TAIL_SIZE)
        return false;
    digits_two_words(at, &low, &high, &wrong);
    event->trace_id_high = high << 48 | low;
    event->sequence = high >> 16;
    digits_two_words(at + 16, &low, &high, &wrong);
    event->span_id = high << 48 | low;
    event->dropped = high >> 36;
    digits_two_words(at + 32, &moment, &low, &wrong);
    event->age_ns = (int64_t)moment;
    high = digits_last(at + 51, 3, &wrong);
    wrong |= high >> 16;
    event->thread = high << 48 | low;
    return !wrong &&
           read_tail(event, (struct text){at + BLKIN_HEAD_SIZE, packed.length - BLKIN_HEAD_SIZE});
}

static bool read_detail(struct event *event, struct text packed)
{
    const char *const at = packed.data;
    uint64_t wrong = 0, low, high;

    if (packed.length < BLKIN_DETAIL_HEAD_SIZE)
        return false;
    digits_two_words(at, &low, &high, &wrong);
    event->span_id = high << 48 | low;
    event->sequence = high >> 16;
    event->age_ns = (int64_t)digits_word(at + 16, &wrong);
    event->thread = digits_long(at + 24, &wrong);
    event->log = (struct text){at + BLKIN_DETAIL_HEAD_SIZE, packed.length - BLKIN_DETAIL_HEAD_SIZE};
    return !wrong && (event->kind == EVENT_TAG || event->log.length == 0);
}

bool packed_read(struct event *event, struct text packed)
{
    return event->kind == EVENT_SPAN || event->kind == EVENT_BEGIN ? read_whole(event, packed)
                                                                   : read_detail(event, packed);
}

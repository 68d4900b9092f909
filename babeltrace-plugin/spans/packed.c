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

/* Reads the version and the thread. Another version sets *wrong. */
static inline uint64_t read_thread(const char *at, uint64_t *wrong)
{
    const uint64_t low = digits_word(at + 1, wrong);

    *wrong |= (uint64_t)(*at ^ ('0' + BLKIN_FORMAT_VERSION));
    return (uint64_t)digits_two(at + 9, wrong) << 48 | low;
}

static bool read_whole(struct event *event, struct text packed)
{
    const char *const at = packed.data + BLKIN_THREAD_SIZE;
    uint64_t wrong = 0, low, high;

    if (packed.length < BLKIN_HEAD_SIZE + BLKIN_TAIL_SIZE)
        return false;
    event->thread = read_thread(packed.data, &wrong);
    digits_two_words(at, &low, &high, &wrong);
    event->trace_id_high = high << 48 | low;
    event->sequence = high >> 16;
    digits_two_words(at + 16, &low, &high, &wrong);
    event->span_id = high << 48 | low;
    event->dropped = high >> 36;
    event->age_ns = (int64_t)digits_word(at + 32, &wrong);
    return !wrong && read_tail(event, text_after(packed, BLKIN_HEAD_SIZE));
}

static bool read_detail(struct event *event, struct text packed)
{
    const char *const at = packed.data + BLKIN_THREAD_SIZE;
    uint64_t wrong = 0, low, high;

    if (packed.length < BLKIN_DETAIL_HEAD_SIZE)
        return false;
    event->thread = read_thread(packed.data, &wrong);
    digits_two_words(at, &low, &high, &wrong);
    event->span_id = high << 48 | low;
    event->sequence = high >> 16;
    event->age_ns = (int64_t)digits_word(at + 16, &wrong);
    if (wrong)
        return false;
    event->log = text_after(packed, BLKIN_DETAIL_HEAD_SIZE);
    return event->kind == EVENT_TAG || event->log.length == 0;
}

unsigned packed_newer(struct text packed)
{
    const unsigned version = packed.length ? (unsigned char)packed.data[0] - (unsigned)'0' : 0;

    return version > BLKIN_FORMAT_VERSION && version < 64 ? version : 0;
}

bool packed_read(struct event *event, struct text packed)
{
    return event->kind == EVENT_SPAN || event->kind == EVENT_BEGIN ? read_whole(event, packed)
                                                                   : read_detail(event, packed);
}

enum decoded packed_decode(struct event *event)
{
    const struct text packed = event->log;

    if (packed_read(event, packed))
        return DECODED;
    return packed_newer(packed) ? DECODED_NEWER : DECODED_UNREADABLE;
}

/* The oldest moment that blkin_span_end_at() accepts. */
#define OLDEST_NS (INT64_C(24) * 3600 * 1000000000)

bool moment_age(uint64_t now, uint64_t moment, unsigned bits, int64_t *age_ns)
{
    *age_ns = (int64_t)((now - moment) << (64 - bits)) >> (64 - bits);
    return *age_ns >= -EVENT_AHEAD_NS && *age_ns <= OLDEST_NS;
}

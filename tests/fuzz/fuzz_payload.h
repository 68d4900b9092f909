/*
 * Payloads of records in rings: as programs write them, with one byte changed in some, or any
 * bytes. Random bytes are hardly ever an event, and never a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_FUZZ_PAYLOAD_H
#define TESTS_FUZZ_PAYLOAD_H

#include "fuzz.h"
#include "tests/rings/packed.h"
#include "tracepoints/format/provider_table.h"
#include "tracepoints/format/ring.h"

#include <string.h>

struct record_payload {
    unsigned event;
    size_t length;
    char bytes[800];
};

static void payload_put(struct record_payload *payload, const void *bytes, size_t length)
{
    memcpy(payload->bytes + payload->length, bytes, length);
    payload->length += length;
}

static void payload_put_text(struct record_payload *payload, const char *text)
{
    payload_put(payload, text, strlen(text) + 1);
}

/* Makes an event with ids of few numbers, so that several events have the same ids. */
static void payload_take_original(struct record_payload *payload, struct fuzz *source,
                                  uint64_t time_ns)
{
    static const char *const events[] = {"sr", "ss", "cs", "cr", "other"};
    const uint64_t choice = take(source, 1);
    const struct ring_original head = {time_ns, choice % 3, 1 + choice / 3 % 4, choice % 5, -4, 80};

    payload->event = RING_ORIGINAL + (unsigned)(choice / 8 % BLKIN_ORIGINAL_EVENTS);
    payload_put(payload, &head, sizeof(head));
    payload_put_text(payload, "name");
    payload_put_text(payload, "service");
    payload_put_text(payload, "10.0.0.1");
    payload_put_text(payload, events[choice % 5]);
    payload_put_text(payload, "value");
    if (payload->event != RING_ORIGINAL) /* only RING_ORIGINAL has two texts */
        payload->length -= sizeof("value");
}

static void payload_take_packed(struct record_payload *payload, struct fuzz *source,
                                uint64_t time_ns)
{
    static const char *const logs[] = {"", "6300@I=g100mid", "3000)", "z1010kv"};
    const uint64_t choice = take(source, 1);
    const struct blkin_span_event span = {.trace_id = choice % 3,
                                          .parent_id = choice % 5,
                                          .duration = choice,
                                          .kind = (uint8_t)(choice % 8)};
    const struct blkin_begin_event begin = {.trace_id = choice % 3, .parent_id = choice % 5};
    const struct blkin_detail_event detail = {.trace_id = choice % 3};

    payload->event =
        choice / 8 % 4 == BLKIN_EVENT_TAG ? BLKIN_EVENT_ANNOTATION + 6 : (unsigned)(choice / 8 % 4);
    if (payload->event == BLKIN_EVENT_SPAN)
        payload_put(payload, &span, sizeof(span));
    else if (payload->event == BLKIN_EVENT_BEGIN)
        payload_put(payload, &begin, sizeof(begin));
    else
        payload_put(payload, &detail, sizeof(detail));
    if (payload->event <= BLKIN_EVENT_BEGIN) {
        payload_put_text(payload, "name");
        payload_put_text(payload,
                         packed_whole(choice == 255 ? '2' : '1', time_ns, logs[choice / 32 % 4]));
    } else {
        payload_put_text(payload, packed_detail(time_ns, ""));
    }
    if (payload->event != BLKIN_EVENT_END)
        payload_put_text(payload, "text");
}

/* Makes a payload, mostly with a time shortly before now_ns. */
static void payload_take(struct record_payload *payload, struct fuzz *source, uint64_t now_ns)
{
    const uint64_t choice = take(source, 1);
    struct text any;

    payload->length = 0;
    if (choice < 64) {
        payload->event = (unsigned)take(source, 1);
        any = take_bytes(source, take(source, 1));
        payload_put(payload, any.data, any.length);
        return;
    }
    if (choice < 160)
        payload_take_original(payload, source, now_ns - take(source, 2));
    else
        payload_take_packed(payload, source, now_ns - take(source, 2));
    if (choice % 4 == 0)
        payload->bytes[take(source, 2) % payload->length] = (char)take(source, 1);
}

#endif

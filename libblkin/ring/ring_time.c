/*
 * Where each payload has its moment. Durations, and times within a span, are differences.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring_time.h"

#include "tracepoints/format/digits.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/provider_table.h"
#include "tracepoints/format/ring.h"

#define MOMENT_SIZE 8 /* either way: 64 bits, or digits of base 64 at the end of a packed head */

static void time_move_digits(char *at, uint64_t by_ns)
{
    uint64_t moment = 0;

    for (int i = MOMENT_SIZE - 1; i >= 0; i--)
        moment = moment << 6 | ((unsigned)(at[i] - '0') & 63);
    (void)blkin_put_word_by(false, at, moment + by_ns);
}

static void time_move_number(char *at, uint64_t by_ns)
{
    uint64_t moment;

    memcpy(&moment, at, sizeof(moment));
    moment += moment ? by_ns : 0; /* an alarm about no span has none */
    memcpy(at, &moment, sizeof(moment));
}

static size_t time_after_name(const char *payload, size_t at, size_t length)
{
    return at + strnlen(payload + at, length - at) + 1;
}

void ring_time_move(unsigned event, char *payload, size_t length, uint64_t by_ns)
{
    size_t at, head_size = 0;

    if (event >= RING_ORIGINAL) {
        at = offsetof(struct ring_original, monotonic);
    } else if (event == BLKIN_EVENT_SLOW) {
        at = offsetof(struct blkin_slow_event, monotonic);
    } else if (event == BLKIN_EVENT_PROCESS) {
        at = offsetof(struct blkin_process_event, monotonic);
    } else if (event == BLKIN_EVENT_METRIC) {
        at = offsetof(struct blkin_metric_event, monotonic);
    } else if (event == BLKIN_EVENT_SPAN || event == BLKIN_EVENT_BEGIN) {
        at = event == BLKIN_EVENT_SPAN ? sizeof(struct blkin_span_event)
                                       : sizeof(struct blkin_begin_event);
        at = time_after_name(payload, at, length);
        head_size = BLKIN_HEAD_SIZE;
    } else {
        at = sizeof(struct blkin_detail_event);
        head_size = BLKIN_DETAIL_HEAD_SIZE;
    }
    if (head_size && at + head_size <= length)
        time_move_digits(payload + at + head_size - MOMENT_SIZE, by_ns);
    else if (!head_size)
        time_move_number(payload + at, by_ns);
}

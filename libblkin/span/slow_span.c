/*
 * What is slow about a span that has been recorded: itself, or one of the steps in its log.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "slow_span.h"

#include "libblkin/policy/slow.h"
#include "span.h"

#include <string.h>

static const char keep_key[] = SPAN_KEEP_KEY;

/* ---- the log ---- */

static size_t length_at(const char *digits)
{
    return (size_t)blkin_number_at(digits, 2);
}

/* Of the record that is here: see events.h. */
static size_t record_size(const char *at)
{
    switch (*at) {
    case '(':
        return 11 + (length_at(at + 1) & 127);
    case ')':
    case 'T':
        return 9;
    case '#':
        return 5;
    case 's':
        return 5 + length_at(at + 1) + length_at(at + 3);
    case 'l':
        return 49;
    case 'r':
        return 21 + length_at(at + 17) + length_at(at + 19);
    case 'I':
    case 'U':
    case 'D':
    case 'B':
        return 14 + length_at(at + 1);
    default: /* an annotation */
        return 11 + length_at(at + 1);
    }
}

static char *log_begin(struct span *inside)
{
    return span_at(inside, span_log_at(inside));
}

static struct blkin_slow_event event_of(const struct blkin_span *span, uint64_t id,
                                        uint64_t duration_ns, uint64_t end_ns)
{
    return (struct blkin_slow_event){
        .trace_id = span->context.trace_id,
        .trace_id_high = span->context.trace_id_high,
        .span_id = id,
        .duration = duration_ns,
        .monotonic = end_ns,
    };
}

static const char *service_of(const struct span *inside)
{
    const struct blkin_service *own = span_own_service(inside);

    return blkin_service_name(own ? own : blkin_default_service());
}

/* ---- keep ---- */

static void keep(struct blkin_span *span, uint64_t duration_ns, uint64_t end_ns)
{
    struct span *inside = span_inside(span);
    struct blkin_slow_event event = event_of(span, span->context.span_id, duration_ns, end_ns);
    const size_t key_length = sizeof(keep_key) - 1;
    const char *end = span_at(inside, inside->used);
    char why[SPAN_TEXT_MAX + 1] = "keep"; /* where the log had no room for more */

    for (const char *at = log_begin(inside); at < end; at += record_size(at)) {
        if (*at == 's' && length_at(at + 1) == key_length &&
            memcmp(at + 5, keep_key, key_length) == 0) {
            const size_t length = length_at(at + 3);

            *blkin_put_bytes(why, at + 5 + key_length, length) = '\0';
            break;
        }
    }
    blkin_slow_keep(&event, why, inside->name, service_of(inside));
}

/* ---- steps ---- */

void blkin_slow_step(const struct blkin_span *span, uint64_t id, const char *name,
                     uint64_t duration_ns, uint64_t end_ns)
{
    struct blkin_slow_event event = event_of(span, id, duration_ns, end_ns);

    if (blkin_slow_is_on())
        (void)blkin_slow_check(&event, name, service_of(span_inside_const(span)), false);
}

struct open_step {
    uint32_t number;
    const char *begin; /* its record */
};

/* Is it slow? end: its time since the log's base. */
static bool check_step(const struct blkin_span *span, const struct open_step *step, uint64_t end)
{
    const struct span *inside = span_inside_const(span);
    const uint64_t mask = (UINT64_C(1) << 48) - 1;
    const uint64_t duration_ns = (end - blkin_number_at(step->begin + 3, 8)) & mask;
    struct blkin_slow_event event;
    char name[SPAN_STEP_MAX + 1] = "";

    if (!blkin_may_be_slow(duration_ns))
        return false;
    event = event_of(span, blkin_step_id(span->context.span_id, step->number), duration_ns,
                     inside->base_ns + (uint64_t)((int64_t)(end << 16) >> 16));
    memcpy(name, step->begin + 11, length_at(step->begin + 1) & 127);
    return blkin_slow_check(&event, name, service_of(inside), false);
}

/* The first that ended is enough: what is kept is the trace. */
static void check_steps(struct blkin_span *span, uint64_t end_ns)
{
    struct span *inside = span_inside(span);
    const char *end = span_at(inside, inside->used);
    struct open_step open[SPAN_DEPTH_MAX];
    unsigned depth = 0;
    uint32_t number = 0;

    for (const char *at = log_begin(inside); at < end; at += record_size(at)) {
        if (*at == '#')
            number = (uint32_t)blkin_number_at(at + 1, 4) - 1;
        else if (*at == '(' && depth < SPAN_DEPTH_MAX)
            open[depth++] = (struct open_step){++number, at};
        else if (*at == ')' && depth > 0 &&
                 check_step(span, &open[--depth], blkin_number_at(at + 1, 8)))
            return;
    }
    while (depth > 0) {
        if (check_step(span, &open[--depth], end_ns - inside->base_ns))
            return;
    }
}

/* ---- the span ---- */

void blkin_slow_span(struct blkin_span *span, uint64_t duration_ns, uint64_t end_ns)
{
    struct span *inside = span_inside(span);
    struct blkin_slow_event event = event_of(span, span->context.span_id, duration_ns, end_ns);

    if (!blkin_slow_is_on())
        return;
    if (inside->failed & SPAN_KEEP)
        keep(span, duration_ns, end_ns);
    else if (!blkin_slow_check(&event, inside->name, service_of(inside),
                               inside->failed & SPAN_FAILED) &&
             blkin_may_be_slow(duration_ns))
        check_steps(span, end_ns);
}

/*
 * Raises the alarm of a recorded span: the span or a step in its log is slow, the span has failed,
 * or the program wants to keep the span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span.h"

#include "libblkin/policy/slow.h"

#include <string.h>

static const char slow_keep_key[] = SPAN_KEEP_KEY;

static struct blkin_slow_event slow_event_of(const struct blkin_span *span, uint64_t id,
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

static const char *slow_service_of(const struct span_fields *inside)
{
    const struct blkin_service *own = span_own_service(inside);

    return blkin_service_name(own ? own : blkin_default_service());
}

/* ---- keep ---- */

static void slow_keep(struct blkin_span *span, uint64_t duration_ns, uint64_t end_ns)
{
    const struct span_fields *inside = span_inside_const(span);
    struct blkin_slow_event event = slow_event_of(span, span->context.span_id, duration_ns, end_ns);
    const size_t key_length = sizeof(slow_keep_key) - 1;
    struct log_walk walk;
    char why[SPAN_TEXT_MAX + 1] = "keep"; /* stays if the log had no room for the reason */

    blkin_walk_begin(&walk, inside);
    for (const char *at = walk.at; at < walk.end; at += blkin_record_size(at)) {
        if (*at == 's' && blkin_number_at(at + 1, 2) == key_length &&
            memcmp(at + 5, slow_keep_key, key_length) == 0) {
            const size_t length = (size_t)blkin_number_at(at + 3, 2);

            *blkin_put_bytes(why, at + 5 + key_length, length) = '\0';
            break;
        }
    }
    blkin_slow_keep(&event, why, inside->name, slow_service_of(inside));
}

/* ---- steps ---- */

void blkin_slow_step(const struct blkin_span *span, uint64_t id, const char *name,
                     uint64_t duration_ns, uint64_t end_ns)
{
    struct blkin_slow_event event = slow_event_of(span, id, duration_ns, end_ns);

    if (blkin_slow_is_on())
        (void)blkin_slow_check(&event, name, slow_service_of(span_inside_const(span)), false);
}

/* end: the step's end minus the log's base. Returns true if a rule matches. */
static bool slow_check_step(const struct blkin_span *span, const struct walk_step *step,
                            uint64_t end)
{
    const struct span_fields *inside = span_inside_const(span);
    const uint64_t mask = (UINT64_C(1) << 48) - 1; /* times in a log have 48 bits */
    const uint64_t duration_ns = (end - blkin_number_at(step->begin + 3, 8)) & mask;
    struct blkin_slow_event event;
    char name[SPAN_STEP_MAX + 1] = "";

    if (!blkin_may_be_slow(duration_ns))
        return false;
    event = slow_event_of(span, blkin_step_id(span->context.span_id, step->number), duration_ns,
                          inside->base_ns + (uint64_t)((int64_t)(end << 16) >> 16));
    memcpy(name, step->begin + 11, blkin_number_at(step->begin + 1, 2) & 127);
    return blkin_slow_check(&event, name, slow_service_of(inside), false);
}

/* Checks the steps until the first slow one: one alarm keeps the whole trace. */
static void slow_check_steps(const struct blkin_span *span, uint64_t end_ns)
{
    const struct span_fields *inside = span_inside_const(span);
    const char *end;
    struct log_walk walk;

    blkin_walk_begin(&walk, inside);
    while ((end = blkin_walk_to_end(&walk))) {
        if (slow_check_step(span, &walk.open[walk.depth], blkin_number_at(end + 1, 8)))
            return;
    }
    while (walk.depth > 0) {
        const struct walk_step *open = &walk.open[--walk.depth];
        const int64_t begin = (int64_t)(blkin_number_at(open->begin + 3, 8) << 16) >> 16;
        const int64_t span_end = (int64_t)(end_ns - inside->base_ns); /* perhaps before begin */

        if (slow_check_step(span, open, (uint64_t)(span_end > begin ? span_end : begin)))
            return;
    }
}

/* ---- the span ---- */

void blkin_slow_span(struct blkin_span *span, uint64_t duration_ns, uint64_t end_ns)
{
    struct span_fields *inside = span_inside(span);
    struct blkin_slow_event event = slow_event_of(span, span->context.span_id, duration_ns, end_ns);

    if (!blkin_slow_is_on())
        return;
    if (inside->failed & SPAN_KEEP)
        slow_keep(span, duration_ns, end_ns);
    else if (!blkin_slow_check(&event, inside->name, slow_service_of(inside),
                               inside->failed & SPAN_FAILED) &&
             blkin_may_be_slow(duration_ns))
        slow_check_steps(span, end_ns);
}

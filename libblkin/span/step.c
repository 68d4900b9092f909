/*
 * Steps: children of a span. A step is a pair of records in the span's log.
 *
 * If the log is full, a step uses the reserve at the log's end. Such a step and its records are the
 * last part of the log. When the step ends, the library records the step as an event of its own,
 * and cuts the step off the log.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span.h"

#include "libblkin/policy/slow.h"

#define BEGIN_SIZE(length) (11 + (length))
#define END_SIZE           9U
#define NUMBER_RECORD_SIZE 5

_Static_assert(NUMBER_RECORD_SIZE + BEGIN_SIZE(SPAN_STEP_MAX) <= SPAN_RESERVE_MAX,
               "no room for a step where the log is full");
_Static_assert(BLKIN_STEPS_MAX < 1 << 24 && SPAN_STEP_MAX < 128 && SPAN_DEPTH_MAX < 13,
               "a number is too large for its digits");

/* Only the slow path checks this limit. Between two slow calls, the fast path begins at most as
 * many steps as fit into a span. So the number of steps does not exceed BLKIN_STEPS_MAX. */
#define STEPS_MAX (BLKIN_STEPS_MAX - SPAN_SIZE_MAX / BEGIN_SIZE(0))

/* ---- walks ---- */

/* Limits the length, because a signal handler may read a record that is only partly written. */
static size_t length_at(const char *digits)
{
    return (size_t)blkin_number_at(digits, 2) & 4095;
}

size_t blkin_record_size(const char *at)
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

void blkin_walk_begin(struct log_walk *walk, const struct span_fields *inside)
{
    walk->at = (const char *)inside + span_log_at(inside);
    walk->end = (const char *)inside + inside->used;
    walk->number = 0;
    walk->depth = 0;
}

const char *blkin_walk_to_end(struct log_walk *walk)
{
    const char *first = NULL;

    while (walk->at < walk->end) {
        const char *const record = walk->at;

        walk->at += blkin_record_size(record);
        if (*record == '#') {
            first = record;
            walk->number = (uint32_t)blkin_number_at(record + 1, 4) - 1;
        } else if (*record == '(' && walk->depth < SPAN_DEPTH_MAX) {
            walk->open[walk->depth++] =
                (struct walk_step){first ? first : record, record, ++walk->number};
            first = NULL;
        } else if (*record == ')' && walk->depth > 0) {
            walk->depth--;
            return record;
        }
    }
    return NULL;
}

/* ---- records ---- */

static inline __attribute__((always_inline)) void
put_step_begin(char *at, const char *name, size_t length, uint32_t kind, uint64_t offset_ns)
{
    *at++ = '(';
    at = blkin_put_length(at, length | (size_t)(kind & 7) << 7);
    at = blkin_put_word(at, offset_ns);
    (void)blkin_put_bytes(at, name, length);
}

static char *put_step_number(char *at, uint32_t number)
{
    *at++ = '#';
    return blkin_put_length(blkin_put_length(at, number & 4095), number >> 12);
}

/* ---- ids ---- */

/* Finds the open steps; there is at least one. The next walk will begin at the first of them. */
static void find_open_steps(const struct blkin_span *span, struct log_walk *walk)
{
    const char *const inside = (const char *)span;
    struct span_rest *rest = span_rest(span_inside_const(span));

    blkin_walk_begin(walk, span_inside_const(span));
    if (rest->walk_at) {
        walk->at = inside + rest->walk_at;
        walk->number = rest->walk_number;
    }
    while (blkin_walk_to_end(walk))
        ;
    if (walk->depth) {
        rest->walk_at = (uint16_t)(walk->open[0].first - inside);
        rest->walk_number = walk->open[0].number - 1;
    }
}

/* Returns the id of the open step at this depth; depth 0: the span's own. */
static uint64_t id_at(const struct blkin_span *span, const struct log_walk *walk, unsigned depth)
{
    const uint64_t id = span->context.span_id;

    return depth ? blkin_step_id(id, walk->open[depth - 1].number) : id;
}

uint64_t blkin_id_at(const struct blkin_span *span, unsigned depth)
{
    struct log_walk walk;

    if (!depth)
        return span->context.span_id;
    find_open_steps(span, &walk);
    return id_at(span, &walk, depth);
}

uint64_t blkin_open_id(const struct blkin_span *span)
{
    return blkin_id_at(span, span_inside_const(span)->depth);
}

void blkin_step_context_(const struct blkin_span *span, struct blkin_context *context)
{
    const unsigned depth = span_inside_const(span)->depth;
    struct log_walk walk;

    if (blkin_is_misuse(span, CHECK_USE) || !depth)
        return;
    find_open_steps(span, &walk);
    context->span_id = id_at(span, &walk, depth);
    context->parent_span_id = id_at(span, &walk, depth - 1);
}

/* ---- begin ---- */

/* Sets the limit of the fast path. SPAN_SLOW: all calls need the slow path. */
static void set_limit(struct blkin_span *span)
{
    struct span_fields *inside = span_inside(span);

    inside->limit = span_is_streamed(span) || blkin_checks || span_rest(inside)->is_cut
                        ? SPAN_SLOW
                        : (int16_t)span_room_of_log(inside);
}

/* Called at the first step. Reserves room for steps that find the log full. */
static inline void set_reserve(struct span_fields *inside)
{
    struct span_rest *rest = span_rest(inside);
    const int left = inside->end - inside->used;

    rest->reserve = (uint8_t)(left / 4 < SPAN_RESERVE_MAX ? left / 4 : SPAN_RESERVE_MAX);
    rest->is_cut = 0;
    rest->lost_depth = 0;
    rest->walk_at = 0;
    inside->limit = (int16_t)(inside->limit - rest->reserve);
    inside->next_step = 1;
}

__attribute__((noinline)) static void step_begin_slow(struct blkin_span *span, const char *name,
                                                      size_t length, uint32_t kind)
{
    struct span_fields *inside = span_inside(span);
    const uint64_t now_ns = blkin_clock_now();
    const size_t at = inside->used;
    struct span_rest *rest = span_rest(inside);
    uint64_t parent_id;
    size_t size;

    if (blkin_is_misuse(span, CHECK_STEP_BEGIN))
        return;
    parent_id = span_is_streamed(span) ? blkin_open_id(span) : 0;
    if (!inside->next_step)
        set_reserve(inside);
    length = blkin_cut(name, length, SPAN_STEP_MAX);
    size = BEGIN_SIZE(length) + (rest->is_cut ? NUMBER_RECORD_SIZE : 0);
    if (rest->lost_depth || inside->depth == SPAN_DEPTH_MAX || inside->next_step > STEPS_MAX ||
        at + size > inside->end) {
        rest->lost_depth++;
        inside->failed |= SPAN_LOST_STEP;
        inside->limit = SPAN_SLOW;
        span_drop_record(span, false);
        return;
    }
    if (rest->is_cut)
        (void)put_step_number(span_at(inside, at), inside->next_step);
    inside->used = (uint16_t)(at + size);
    put_step_begin(span_at(inside, inside->used - BEGIN_SIZE(length)), name, length, kind,
                   now_ns - inside->base_ns);
    inside->depth++;
    inside->next_step++;
    if (rest->is_cut) {
        rest->is_cut = 0;
        set_limit(span);
    }
    if (span_is_streamed(span))
        blkin_stream_begin(span,
                           &(struct stream_begin){
                               .id = blkin_step_id(span->context.span_id, inside->next_step - 1),
                               .parent_id = parent_id,
                               .time_ns = now_ns,
                               .name = name,
                               .name_length = length,
                               .flags = inside->flags & BLKIN_SPAN_DEBUG,
                               .kind = (uint8_t)kind,
                           });
}

void blkin_step_begin_(struct blkin_span *span, const char *name, size_t length, uint32_t kind)
{
    struct span_fields *inside = span_inside(span);
    uint64_t now_ns;
    size_t at;

    if (__builtin_expect(!inside->next_step, 0) && inside->limit >= 0)
        set_reserve(inside);
    at = inside->used;
    if (__builtin_expect(length > SPAN_STEP_MAX || !span_has_room(inside, BEGIN_SIZE(length)) ||
                             inside->depth == SPAN_DEPTH_MAX ||
                             !blkin_clock_try(blkin_counter(), &now_ns),
                         0)) {
        step_begin_slow(span, name, length, kind);
        return;
    }
    inside->used = (uint16_t)(at + BEGIN_SIZE(length));
    put_step_begin(span_at(inside, at), name, length, kind, now_ns - inside->base_ns);
    inside->depth++;
    inside->next_step++;
}

/* ---- end ---- */

/* Records the innermost open step as an event of its own, and cuts it off the log, of which it is
 * the last part. is_open: the step ends because its span ends. */
static void record_step(struct blkin_span *span, uint64_t end_ns, bool is_open)
{
    struct span_fields *inside = span_inside(span);
    const struct blkin_provider *provider = blkin_provider();
    const struct blkin_service *own = span_own_service(inside);
    const struct blkin_service *service = own ? own : blkin_default_service();
    const unsigned depth = inside->depth;
    const size_t used = inside->used;
    struct blkin_thread *thread = blkin_this_thread();
    char payload[sizeof(struct blkin_span_event) + SPAN_STEP_MAX + 1 + BLKIN_HEAD_SIZE +
                 NUMBER_RECORD_SIZE + END_SIZE + 1 + SPAN_SIZE_MAX + sizeof(service->text)];
    char *at = payload;
    uint64_t offset_ns, start_ns, duration;
    size_t digits, name_length;
    const char *record;
    struct log_walk walk;

    find_open_steps(span, &walk);
    if (walk.depth < depth) /* the program has overwritten the span's memory */
        return;
    record = walk.open[depth - 1].begin;
    inside->used = (uint16_t)(walk.open[depth - 1].first - span_at(inside, 0));
    span_rest(inside)->is_cut = 1;
    inside->limit = SPAN_SLOW;
    if (!blkin_event_enabled(provider, BLKIN_EVENT_SPAN)) {
        span_drop_record(span, true);
        return;
    }
    digits = (size_t)blkin_number_at(record + 1, 2);
    name_length = digits & 127;
    offset_ns = blkin_number_at(record + 3, 8);
    start_ns = inside->base_ns + (uint64_t)((int64_t)(offset_ns << 16) >> 16);
    duration = end_ns > start_ns ? end_ns - start_ns : 0;
    record += BEGIN_SIZE(0);
    at = blkin_put_bytes(
        at,
        &(struct blkin_span_event){
            .trace_id = span->context.trace_id,
            .parent_id = id_at(span, &walk, depth - 1),
            .duration = duration,
            .flags = (uint8_t)(BLKIN_SPAN_STEP |
                               (inside->flags & (BLKIN_SPAN_DEBUG | BLKIN_SPAN_STREAMED)) |
                               (inside->failed >> depth & 1 ? BLKIN_SPAN_ERROR : 0)),
            .kind = (uint8_t)(digits >> 7),
        },
        sizeof(struct blkin_span_event));
    at = blkin_put_bytes(at, record, name_length);
    *at++ = '\0';
    record += name_length;
    span_put_head(false, at, span, id_at(span, &walk, depth), end_ns, thread, ++thread->sequence,
                  0);
    at = put_step_number(at + BLKIN_HEAD_SIZE, walk.open[depth - 1].number);
    *at++ = 'T';
    at = blkin_put_word(at, inside->base_ns - start_ns);
    if (is_open)
        *at++ = 'o';
    at = blkin_put_bytes(at, record, used - (size_t)(record - span_at(inside, 0)));
    at = blkin_put_bytes(at, service->text, service->length);
    blkin_record_event(provider, BLKIN_EVENT_SPAN, payload, (size_t)(at - payload));
    if (blkin_may_be_slow(duration))
        blkin_slow_step(span, id_at(span, &walk, depth), payload + sizeof(struct blkin_span_event),
                        duration, end_ns);
}

static inline void close_step(struct span_fields *inside)
{
    inside->failed &= (uint16_t) ~(1U << inside->depth);
    inside->depth--;
}

static inline void put_step_end(struct span_fields *inside, uint64_t end_ns)
{
    char *at = span_at(inside, inside->used);

    *at++ = ')';
    (void)blkin_put_word(at, end_ns - inside->base_ns);
    inside->used = (uint16_t)(inside->used + END_SIZE);
}

__attribute__((noinline)) static void step_end_slow(struct blkin_span *span)
{
    struct span_fields *inside = span_inside(span);
    const uint64_t now_ns = blkin_clock_now();
    uint64_t id;

    if (blkin_is_misuse(span, CHECK_STEP_END))
        return;
    if (inside->failed & SPAN_LOST_STEP) {
        if (--span_rest(inside)->lost_depth == 0) {
            inside->failed &= (uint16_t)~SPAN_LOST_STEP;
            set_limit(span);
        }
        return;
    }
    if (!inside->depth)
        return;
    id = span_is_streamed(span) ? blkin_open_id(span) : 0; /* before the log has the step's end */
    if (inside->used + END_SIZE <= span_room_of_log(inside))
        put_step_end(inside, now_ns);
    else
        record_step(span, now_ns, false);
    if (span_is_streamed(span))
        blkin_stream(span, id, BLKIN_EVENT_END, now_ns, NULL, 0);
    close_step(inside);
}

void blkin_step_end_(struct blkin_span *span)
{
    struct span_fields *inside = span_inside(span);
    uint64_t now_ns;

    if (__builtin_expect(!inside->depth || !span_has_room(inside, END_SIZE) ||
                             !blkin_clock_try(blkin_counter(), &now_ns),
                         0)) {
        step_end_slow(span);
        return;
    }
    put_step_end(inside, now_ns);
    close_step(inside);
}

/* Steps in the log get no record: readers end them with the span. A step that uses the reserve gets
 * an event of its own, before its streamed end as with spans. */
void blkin_end_steps(struct blkin_span *span, uint64_t end_ns, bool is_recorded)
{
    struct span_fields *inside = span_inside(span);

    inside->failed &= (uint16_t)~SPAN_LOST_STEP;
    for (; inside->depth > 0; close_step(inside)) {
        const uint64_t id = span_is_streamed(span) ? blkin_open_id(span) : 0;

        if (is_recorded && inside->used > span_room_of_log(inside))
            record_step(span, end_ns, true);
        if (span_is_streamed(span)) {
            blkin_stream(span, id, BLKIN_EVENT_TAG, end_ns, "o", 1);
            blkin_stream(span, id, BLKIN_EVENT_END, end_ns, NULL, 0);
        }
    }
}

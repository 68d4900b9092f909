/*
 * The span API's events. blkin:span is a span in one event; each step in its log is a span, too.
 * The other events belong to streamed spans.
 *
 * A log is read once. The open steps are on a stack, and a record belongs to the innermost open
 * step. A step is given out at its end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

#include "babeltrace-plugin/base/duration.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/step_id.h"

#include <inttypes.h>
#include <stdio.h>

/* More than any program has open. A hostile log could begin a step every 11 bytes. */
#define STEPS_OPEN_MAX 32

/* ---- records --------------------------------------------------------------------------------- */

static bool add_number(struct span *span, const struct log_record *record)
{
    char text[40];
    double real;

    if (record->type == 'i' || (record->type == 'u' && record->bits <= INT64_MAX))
        return span_add(span, SPAN_TAG_INTEGER, record->key, (struct text){NULL, 0},
                        (int64_t)record->bits);
    switch (record->type) {
    case 'd':
        memcpy(&real, &record->bits, sizeof(real));
        (void)real_show(text, sizeof(text), real);
        break;
    case 'b':
        snprintf(text, sizeof(text), "%s", record->bits ? "true" : "false");
        break;
    case 'u':
        snprintf(text, sizeof(text), "%" PRIu64, record->bits);
        break;
    default:
        return false;
    }
    return span_add(span, SPAN_TAG_TEXT, record->key, text_of(text), 0);
}

/* Moves the start of a streamed span. A whole span's event has the start. */
static bool move_start(struct open_span *open, int64_t by_ns)
{
    struct span *span = &open->span;
    int64_t start_ns;

    if (!open->streaming || __builtin_sub_overflow(span->start_ns, by_ns, &start_ns) ||
        start_ns < 0 || start_ns > span->end_ns)
        return false;
    span->start_ns = start_ns;
    return true;
}

/* Adds a record of a log to the span, except the records that make steps. Annotation times are
 * relative to from_ns. Returns false if the record has no room, or has no meaning for a span. */
static bool assembler_add_record(struct assembler *assembler, struct open_span *open,
                                 const struct log_record *record, int64_t from_ns)
{
    struct span *span = &open->span;
    const struct endpoint *endpoint;

    switch (record->type) {
    case 'a':
        return span_add(span, SPAN_ANNOTATION, record->key, record->value,
                        assembler_moment_after(from_ns, record->offset_ns));
    case 's':
        return span_add(span, SPAN_TAG_TEXT, record->key, record->value, 0);
    case 'l':
        return (record->link.trace_id | record->link.trace_id_high) && record->link.span_id &&
               span_add_link(span, &record->link);
    case 'r':
    case 'e':
        endpoint = endpoint_get(assembler->endpoints, record->value, record->key, record->port);
        if (endpoint)
            *(record->type == 'r' ? &span->remote : &span->endpoint) = endpoint;
        return endpoint != NULL;
    case 'n':
        return span_change_name(span, record->value);
    case 't':
        return move_start(open, record->offset_ns);
    case 'o':
        open->left_open = true;
        return true;
    default:
        return add_number(span, record);
    }
}

/* ---- whole spans ----------------------------------------------------------------------------- */

struct whole {
    struct assembler *assembler;
    const struct event *event;
    struct open_span *open[1 + STEPS_OPEN_MAX]; /* the span, and its open steps */
    unsigned depth;                             /* number of open steps */
    bool is_repeated;    /* the span was streamed, too: records of the span itself are ignored */
    uint64_t lost_depth; /* open steps beyond the stack: they and their records are lost */
    int64_t from_ns;     /* base of the times in the log */
    uint64_t number;     /* of the last step */
    uint64_t own_number; /* of the span, if it is a step */
};

static void add_dropped(struct assembler *assembler, struct span *span, uint64_t dropped)
{
    char text[24];

    if (!dropped)
        return;
    assembler->counts.log_errors += dropped;
    snprintf(text, sizeof(text), "%" PRIu64, dropped);
    if (!span_add(span, SPAN_TAG_TEXT, text_of("blkin.dropped"), text_of(text), 0))
        assembler_lose_part(assembler);
}

/* Returns true for the entry span of a trace in a process: see assembler_note_loss(). */
static bool whole_is_entry(const struct event *event)
{
    return !event->parent_id || event->flags & BLKIN_SPAN_REMOTE ||
           event->span_kind == SPAN_SERVER || event->span_kind == SPAN_CONSUMER;
}

/* Returns true if the same span was streamed, and is open or was given out recently. An open span
 * gets its end from this event, so it is complete even without its blkin:end. */
static bool is_repeated(struct assembler *assembler, struct open_span *open,
                        const struct event *event)
{
    const struct origin *origin = &event->origin;
    const struct span *span = &open->span;
    struct open_span *streamed;

    if (!(event->flags & BLKIN_SPAN_STREAMED))
        return false;
    streamed = open_spans_find_repeated(&assembler->open, span, origin->host);
    if (!streamed)
        return recent_take_streamed(&assembler->recent, span,
                                    source_get(assembler->sources, origin));
    assembler_set_end(&streamed->span, span->end_ns);
    streamed->left_open |= open->left_open;
    open->steps_given = streamed->steps_given;
    streamed->closing = true;
    open_queue_append(&assembler->closing, streamed, assembler->now_ns);
    return true;
}

/* Gives out the span or a step, with its content. */
static void whole_give_out(struct assembler *assembler, struct open_span *open,
                           const struct origin *origin)
{
    struct span *span = &open->span;

    if (open->left_open)
        assembler_mark_incomplete(assembler, span, ENDED_WITH_SPAN);
    /* the server's half may be one of the original's, and end later */
    if (assembler->has_original && span->kind == SPAN_CLIENT)
        recent_note_client(&assembler->recent, span);
    if (assembler->has_offsets)
        assembler_correct_times(assembler, span, source_get(assembler->sources, origin));
    assembler->counts.spans_finished++;
    assembler->give(assembler->context, span);
}

/* ---- steps ---- */

/* Returns NULL when out of memory. */
static struct open_span *take_named(struct open_spans *spans, struct text name)
{
    struct open_span *open = open_spans_take(spans);

    if (!open || span_set_name(&open->span, name))
        return open;
    open_spans_give(spans, open);
    return NULL;
}

static struct open_span *take_step(struct whole *whole, const struct log_record *record)
{
    const struct span *around = &whole->open[whole->depth]->span;
    const struct span *of = &whole->open[0]->span;
    struct open_span *step = take_named(&whole->assembler->open, record->value);
    const uint64_t before = whole->number - whole->own_number - 1;
    struct span *span;

    if (!step)
        return NULL;
    span = &step->span;
    span->endpoint = of->endpoint;
    span->trace_id_high = of->trace_id_high;
    span->trace_id = of->trace_id;
    span->id = blkin_step_id(of->id, before + 1);
    span->parent_id = around->id;
    span->kind = assembler_kind_of(record->bits);
    span->debug = whole->event->flags & BLKIN_SPAN_DEBUG;
    span->start_ns = assembler_moment_after(whole->from_ns, record->offset_ns);
    span->recorded_ns = of->recorded_ns;
    step->given_out = steps_given_has(&whole->open[0]->steps_given, before + 1, span->kind);
    assembler_tag_origin(whole->assembler, span, &whole->event->origin);
    return step;
}

static void begin_step(struct whole *whole, const struct log_record *record)
{
    struct open_span *step = NULL;

    whole->number++;
    if (!whole->lost_depth && whole->depth < STEPS_OPEN_MAX && whole->number <= BLKIN_STEPS_MAX)
        step = take_step(whole, record);
    if (step) {
        whole->open[++whole->depth] = step;
    } else {
        whole->lost_depth++;
        assembler_lose_part(whole->assembler);
    }
}

/* Finishes the innermost open step. */
static void finish_step(struct whole *whole, int64_t end_ns)
{
    struct assembler *assembler = whole->assembler;
    struct open_span *step = whole->open[whole->depth--];

    assembler_set_end(&step->span, end_ns);
    if (step->given_out || is_repeated(assembler, step, whole->event))
        assembler->counts.spans_duplicate++;
    else
        whole_give_out(assembler, step, &whole->event->origin);
    open_spans_give(&assembler->open, step);
}

static void end_step(struct whole *whole, int64_t offset_ns)
{
    if (whole->lost_depth)
        whole->lost_depth--;
    else if (whole->depth)
        finish_step(whole, assembler_moment_after(whole->from_ns, offset_ns));
    else
        whole->assembler->counts.log_errors++;
}

/* Sets the number of the next step. In the log of a step, the first number is the step's own.
 * Returns false for a number that is too large, or does not rise. */
static bool set_number(struct whole *whole, uint64_t number)
{
    if (number <= whole->number || number > BLKIN_STEPS_MAX)
        return false;
    if (whole->event->flags & BLKIN_SPAN_STEP && !whole->number)
        whole->number = whole->own_number = number;
    else
        whole->number = number - 1;
    return true;
}

/* ---- the log ---- */

/* Returns false if the record makes the rest of the log meaningless. */
static bool use_record(struct whole *whole, const struct log_record *record)
{
    struct assembler *assembler = whole->assembler;
    struct open_span *innermost = whole->open[whole->depth];

    switch (record->type) {
    case '(':
        begin_step(whole, record);
        return true;
    case ')':
        end_step(whole, record->offset_ns);
        return true;
    case '#':
        return set_number(whole, record->bits);
    case 'T':
        whole->from_ns = assembler_moment_after(whole->open[0]->span.start_ns, record->offset_ns);
        return true;
    default:
        if (whole->is_repeated && !whole->depth)
            return true;
        if (whole->lost_depth ||
            !assembler_add_record(assembler, innermost, record, whole->from_ns))
            assembler_lose_part(assembler);
        return true;
    }
}

/* After an invalid record the rest of the log is lost, and the span is complete without it. */
static void add_log(struct whole *whole, struct text log)
{
    struct log_record record;
    bool is_good = true;

    while (is_good && log_next(&log, &record))
        is_good = use_record(whole, &record);
    if (log.length || !is_good)
        whole->assembler->counts.log_errors++;
    while (whole->depth) {
        whole->open[whole->depth]->left_open = true;
        finish_step(whole, whole->open[0]->span.end_ns);
    }
}

/* ---- the event ---- */

static void add_whole(struct whole *whole)
{
    struct assembler *assembler = whole->assembler;
    const struct event *event = whole->event;
    struct open_span *open = whole->open[0];

    whole->is_repeated = is_repeated(assembler, open, event);
    if (!whole->is_repeated)
        assembler_tag_origin(assembler, &open->span, &event->origin);
    add_log(whole, event->log);
    if (whole->is_repeated) {
        assembler->counts.events_duplicate++;
        assembler->counts.spans_duplicate++;
        return;
    }
    add_dropped(assembler, &open->span, event->dropped);
    if (assembler->has_losses && whole_is_entry(event))
        assembler_tag_loss_below(assembler, &open->span, &event->origin);
    assembler->counts.events_in_span++;
    assembler->counts.steps_spilled += event->flags & BLKIN_SPAN_STEP ? 1 : 0;
    whole_give_out(assembler, open, &event->origin);
}

static void assembler_add_whole_span(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = open_spans_take(&assembler->open);
    struct whole whole;
    struct span *span;

    if (!open) {
        assembler_count(assembler, NULL, false);
        return;
    }
    span = &open->span;
    span->endpoint = assembler_endpoint(assembler, event);
    span->trace_id_high = event->trace_id_high;
    span->trace_id = event->trace_id;
    span->id = event->span_id;
    span->parent_id = event->parent_id;
    span->kind = assembler_kind_of(event->span_kind);
    span->debug = event->flags & BLKIN_SPAN_DEBUG;
    span->start_ns = assembler_moment_of(event, event->duration_ns);
    span->end_ns = assembler_moment_of(event, 0);
    span->recorded_ns = event->time_ns;
    if (!span->endpoint || !span_set_name(span, event->span_name)) {
        assembler_count(assembler, open, false);
    } else {
        whole.assembler = assembler;
        whole.event = event;
        whole.open[0] = open;
        whole.depth = 0;
        whole.lost_depth = 0;
        whole.from_ns = span->start_ns;
        whole.number = whole.own_number = 0;
        add_whole(&whole);
    }
    open_spans_give(&assembler->open, open);
}

/* ---- streamed spans -------------------------------------------------------------------------- */

/* An age beyond the epoch is ignored, and a moment before INT64_MIN becomes INT64_MIN: a trace may
 * contain any numbers. */
int64_t assembler_moment_of(const struct event *event, uint64_t before_ns)
{
    const bool is_age =
        event->age_ns >= -EVENT_AHEAD_NS && (event->time_ns < 0 || event->age_ns <= event->time_ns);
    int64_t moment_ns;

    if (__builtin_sub_overflow(event->time_ns, is_age ? event->age_ns : 0, &moment_ns) ||
        __builtin_sub_overflow(moment_ns, before_ns, &moment_ns))
        return INT64_MIN;
    return moment_ns;
}

static void begin_streamed(struct assembler *assembler, const struct event *event)
{
    const struct endpoint *endpoint = assembler_endpoint(assembler, event);
    struct open_span *open = endpoint ? assembler_open(assembler, event, endpoint) : NULL;

    assembler_count(assembler, open, open != NULL);
    if (!open)
        return;
    assembler->open.has_halves = true; /* no search has shown that the ids are unique */
    open->streaming = true;
    open->span.kind = assembler_kind_of(event->span_kind);
    open->span.debug = event->flags & BLKIN_SPAN_DEBUG;
    open->span.start_ns = assembler_moment_of(event, 0);
    open->span.end_ns = open->span.start_ns;
    open_queue_append(&assembler->streaming, open, assembler->now_ns);
}

static bool apply_detail(struct assembler *assembler, struct open_span *open,
                         const struct event *event, int64_t moment_ns)
{
    struct span *span = &open->span;
    struct text log = event->log;
    struct log_record record;

    if (event->kind == EVENT_ANNOTATION)
        return span_add(span, SPAN_ANNOTATION, event->key, event->value, moment_ns);
    if (!log_next(&log, &record) || strchr("a()#T?", record.type)) {
        assembler->counts.log_errors++; /* same as in the log of a whole span */
        return true;
    }
    assembler->counts.log_errors += log.length != 0; /* a second record is an error */
    /* records that the program has dropped */
    if (record.type == 'u' && record.bits <= BLKIN_DROPPED_MAX &&
        text_is(record.key, "blkin.dropped"))
        assembler->counts.log_errors += record.bits;
    return assembler_add_record(assembler, open, &record, span->start_ns);
}

static void add_detail(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = open_spans_find_streamed(&assembler->open, event);
    const int64_t moment_ns = assembler_moment_of(event, 0);
    uint32_t capacity;

    if (!open) {
        assembler->counts.events_late++;
        return;
    }
    if (event->kind == EVENT_END) {
        assembler_set_end(&open->span, moment_ns);
        assembler_count(assembler, open, true);
        open->closing = true;
        assembler_finish(assembler, open);
        return;
    }
    if (moment_ns > open->span.end_ns)
        open->span.end_ns = moment_ns;
    capacity = open->span.log_capacity;
    assembler_count(assembler, open, apply_detail(assembler, open, event, moment_ns));
    assembler_account(assembler, open, capacity);
    open_queue_append(&assembler->streaming, open, assembler->now_ns);
}

void assembler_add_span_api(struct assembler *assembler, const struct event *event)
{
    switch (event->kind) {
    case EVENT_SPAN:
        assembler_add_whole_span(assembler, event);
        break;
    case EVENT_BEGIN:
        begin_streamed(assembler, event);
        break;
    default:
        add_detail(assembler, event);
    }
}

/*
 * Losses, and the tags of spans that lost data.
 *
 * Gaps in the sequence numbers of a thread's series show losses that no counter shows, such as the
 * sub-buffer of a killed process. Losses that LTTng has counted show here a second time. A table of
 * fixed size has the state of each series. A series whose slot is taken replaces the series there,
 * whose next event counts as its first. With more series than slots some gaps stay unseen, and the
 * memory stays constant.
 *
 * Events arrive in order of time, but blkin_span_end_at() may set an end in the past. If the thread
 * moves between CPUs, a later number may arrive first. So a skipped number is awaited for a while.
 * A number that arrives still later is subtracted from the count.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/printer.h"
#include "tracepoints/format/events.h"

#include <inttypes.h>

enum sequence_kind { SERIES_WHOLE, SERIES_METRICS, SERIES_STREAMED };

/* A thread numbers its streamed events separately, and a host its metrics. */
static enum sequence_kind sequence_kind(const struct event *event)
{
    switch (event->kind) {
    case EVENT_SPAN:
    case EVENT_PROCESS:
        return SERIES_WHOLE;
    case EVENT_METRIC:
        return SERIES_METRICS;
    default:
        return SERIES_STREAMED;
    }
}

static bool loss_note(struct assembler *assembler, const struct event_source *source,
                      struct losses *losses, const struct loss_interval *interval)
{
    if (source->is_overflow || !losses_add(losses, interval))
        assembler->counts.not_noted++;
    return !source->is_overflow;
}

void assembler_note_loss(struct assembler *assembler, const struct loss *loss)
{
    struct event_source *source = source_get(assembler->sources, &loss->origin);
    const struct loss_interval interval = {
        .begin_ns = loss->has_times ? loss->begin_ns : assembler->now_ns,
        .end_ns = loss->has_times ? loss->end_ns : assembler->now_ns,
        .events = loss->events,
        .packets = loss->packets,
    };

    assembler->has_losses |= loss_note(assembler, source, &source->losses, &interval);
}

/* ---- missing numbers ------------------------------------------------------------------------- */

#define SEQUENCE_BITS    64                   /* of a slot */
#define SEQUENCE_LATE_NS INT64_C(10000000000) /* trace time that a number is awaited */

static uint64_t *sequence_count(struct assembler *assembler, const struct sequence_slot *slot)
{
    const bool is_metric = (slot->series >> BLKIN_THREAD_BITS & 3) == SERIES_METRICS;

    return is_metric ? &assembler->counts.metrics_missing : &assembler->counts.events_missing;
}

static void sequence_give_up(struct assembler *assembler, struct sequence_slot *slot)
{
    uint64_t *count = sequence_count(assembler, slot);

    *count += slot->awaited;
    if (count == &assembler->counts.events_missing)
        assembler->counts.events_unsure += slot->unsure;
    assembler->sequences.awaited -= slot->awaited;
    slot->missing += slot->awaited;
    slot->awaited = slot->unsure = 0;
}

void assembler_count_missing(struct assembler *assembler, int64_t since_ns)
{
    struct sequences *sequences = &assembler->sequences;

    for (size_t i = 0; sequences->awaited && i < SEQUENCE_SLOTS; i++)
        if (sequences->slots[i].awaited && sequences->slots[i].since_ns <= since_ns)
            sequence_give_up(assembler, &sequences->slots[i]);
}

void assembler_count_late(struct assembler *assembler)
{
    if (assembler->sequences.awaited)
        assembler_count_missing(assembler, assembler->now_ns - SEQUENCE_LATE_NS);
}

/* Handles a number below the highest: a skipped number, or a repetition. */
static void sequence_take_late(struct assembler *assembler, struct sequence_slot *slot,
                               uint64_t number)
{
    const uint64_t ago = slot->sequence - number;
    const uint64_t bit = ago < SEQUENCE_BITS ? UINT64_C(1) << ago : 0;

    if (number < slot->first || slot->seen & bit)
        return;
    slot->seen |= bit;
    if (slot->awaited) {
        slot->awaited--;
        if (slot->unsure > slot->awaited)
            slot->unsure = slot->awaited;
        assembler->sequences.awaited--;
    } else if (slot->missing) {
        slot->missing--;
        --*sequence_count(assembler, slot);
    }
}

static void sequence_begin(struct assembler *assembler, struct sequence_slot *slot, uint64_t series,
                           const struct event *event)
{
    /* plus 2^32: a late number is not below 0 */
    const uint64_t number = (UINT64_C(1) << 32) + (uint32_t)event->sequence;

    sequence_give_up(assembler, slot);
    *slot = (struct sequence_slot){.series = series,
                                   .first = number,
                                   .sequence = number,
                                   .time_ns = event->time_ns,
                                   .seen = 1};
}

__attribute__((noinline)) static void note_gap(struct assembler *assembler,
                                               const struct event *event, uint64_t skipped,
                                               struct sequence_slot *slot)
{
    struct event_source *source = source_get(assembler->sources, &event->origin);
    const struct loss_interval interval = {
        .begin_ns = slot->time_ns,
        .end_ns = event->time_ns,
        .process = origin_process(&event->origin),
        .events = skipped,
    };

    if (!slot->awaited)
        slot->since_ns = assembler->now_ns;
    slot->awaited += skipped;
    if (slot->time_ns < assembler->options.resumed_ns)
        slot->unsure += skipped;
    assembler->sequences.awaited += skipped;
    if (sequence_kind(event) == SERIES_STREAMED) /* other kinds touch no span */
        assembler->has_gaps |= loss_note(assembler, source, &source->gaps, &interval);
}

void assembler_note_sequence(struct assembler *assembler, const struct event *event)
{
    /* the kind is in the bits above the thread's number */
    const uint64_t series = event->thread ^ (uint64_t)sequence_kind(event) << BLKIN_THREAD_BITS;
    struct sequence_slot *slot =
        &assembler->sequences.slots[hash_mix(series) & (SEQUENCE_SLOTS - 1)];
    /* numbers have 32 bits and begin again at 0; in the slot they go on */
    const int32_t step = (int32_t)(uint32_t)(event->sequence - slot->sequence);

    if (slot->series != series || event->sequence > UINT32_MAX) {
        sequence_begin(assembler, slot, series, event);
        return;
    }
    if (step <= 0) {
        sequence_take_late(assembler, slot, slot->sequence + (uint64_t)step);
        return;
    }
    if (step > 1)
        note_gap(assembler, event, (uint64_t)step - 1, slot);
    slot->seen = (step < SEQUENCE_BITS ? slot->seen << step : 0) | 1;
    slot->sequence += (uint64_t)step;
    slot->time_ns = event->time_ns;
}

/* ---- tags ------------------------------------------------------------------------------------ */

#define LOST_MAX 400 /* bytes: more than the tag needs */

static void put_number(struct printer *line, uint64_t number, const char *noun)
{
    print(line, "%" PRIu64 " %s%s", number, noun, number == 1 ? "" : "s");
}

/* An interval may reach beyond the span on both sides, so the sum is a maximum. */
static void put_sum(struct printer *line, const struct loss_sum *sum)
{
    if (!sum->events && !sum->packets) {
        print_string(line, "events");
        return;
    }
    if (!sum->is_more)
        print_string(line, "up to ");
    if (sum->events)
        put_number(line, sum->events, "event");
    if (sum->events && sum->packets)
        print_string(line, " and ");
    if (sum->packets)
        put_number(line, sum->packets, "packet");
    if (sum->is_more)
        print_string(line, " or more");
}

static void tag(struct assembler *assembler, struct span *span, const struct event_source *source,
                const struct loss_sum *sum, const char *how, const char *consequence)
{
    char text[LOST_MAX];
    struct printer line = PRINTER_INTO(text);

    put_sum(&line, sum);
    print(&line, " %s", how);
    if (source->host.length)
        print(&line, " on %.*s", source->host.length > 64 ? 64 : (int)source->host.length,
              source->host.data);
    if (sum->process)
        print(&line, " in process %" PRId64, process_pid(sum->process));
    print(&line, " while it was open: %s", consequence);
    assembler->counts.spans_with_loss++;
    if (!span_add(span, SPAN_TAG_TEXT, text_of("blkin.lost"),
                  (struct text){text, line.buffer.length}, 0))
        assembler_lose_part(assembler);
}

void assembler_tag_loss_in(struct assembler *assembler, struct open_span *open)
{
    const struct event_source *source = open->source;
    struct span *span = &open->span;
    /* without a closing event, the span may be open until now: that event may be lost */
    const int64_t end_ns = open->closing ? span->end_ns : assembler->now_ns;
    const char *incomplete = "its data may be incomplete";
    struct loss_sum lost = {.events = 0}, missing = {.events = 0};
    bool is_lost, is_missing;

    is_lost = losses_may_touch(&source->losses, span->start_ns) &&
              losses_overlap(&source->losses, span->start_ns, end_ns, open->process, &lost);
    is_missing = open->streaming && losses_may_touch(&source->gaps, span->start_ns) &&
                 losses_overlap(&source->gaps, span->start_ns, end_ns, open->process, &missing);
    /* both may count the same events: LTTng's count is used, unless it is smaller */
    if (is_missing && (!is_lost || (missing.events > lost.events && !lost.packets)))
        tag(assembler, span, source, &missing, "lost or filtered out", incomplete);
    else if (is_lost)
        tag(assembler, span, source, &lost, "lost", incomplete);
}

static void tag_loss_during(struct assembler *assembler, struct span *span,
                            const struct event_source *source, uint64_t process,
                            const char *consequence)
{
    struct loss_sum lost;

    if (losses_may_touch(&source->losses, span->start_ns) &&
        losses_overlap(&source->losses, span->start_ns, span->end_ns, process, &lost))
        tag(assembler, span, source, &lost, "lost", consequence);
}

void assembler_tag_loss_below(struct assembler *assembler, struct span *span,
                              const struct origin *origin)
{
    tag_loss_during(assembler, span, source_get(assembler->sources, origin), origin_process(origin),
                    "spans below it may be missing");
}

/* A span whose own end was lost ended with a later event, so its content may be incomplete. */
void assembler_give_span(struct assembler *assembler, struct span *span,
                         const struct event_source *source, uint64_t process)
{
    if (assembler->has_losses)
        tag_loss_during(assembler, span, source, process, "its data may be incomplete");
    if (assembler->has_offsets)
        assembler_correct_times(assembler, span, source);
    assembler->counts.spans_finished++;
    assembler->give(assembler->context, span);
}

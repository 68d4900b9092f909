/*
 * Losses: what tells of them, and the spans that they have touched.
 *
 * Gaps in the sequence numbers of a thread's series show losses that nobody else counts, such as
 * those of a sub-buffer that a killed process has torn; those that LTTng has counted show here a
 * second time. What was seen of each series is in a table of fixed size: a series that finds its
 * place taken displaces the other one, whose next event then counts as its first. With more series
 * than places some gaps go unseen, and memory stays what it is.
 *
 * Events come in the order of their times, and a program may have set an end that lies in the past
 * (blkin_span_end_at()). Where its thread moves between CPUs, a later number may then come first.
 * So a number that was skipped is awaited for a while, and one that comes later still is counted
 * back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/printer.h"
#include "tracepoints/format/events.h"

#include <inttypes.h>

static struct sequence_place *sequence_place_of(struct sequences *sequences, uint64_t series)
{
    return &sequences->places[hash_mix(series) & (SEQUENCE_PLACES - 1)];
}

enum sequence_kind { SERIES_WHOLE, SERIES_METRICS, SERIES_STREAMED };

/* A thread numbers what it streams by itself, and a host its metrics. */
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

/* The kind is above the thread's number. */
static uint64_t sequence_series(const struct event *event)
{
    return event->thread ^ (uint64_t)sequence_kind(event) << BLKIN_THREAD_BITS;
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

/* ---- numbers that are skipped ---------------------------------------------------------------- */

#define SEQUENCE_BITS    64                   /* that a place has seen */
#define SEQUENCE_LATE_NS INT64_C(10000000000) /* trace time that a number is awaited */

static uint64_t *sequence_count(struct assembler *assembler, const struct sequence_place *place)
{
    const bool is_metric = (place->series >> BLKIN_THREAD_BITS & 3) == SERIES_METRICS;

    return is_metric ? &assembler->counts.metrics_missing : &assembler->counts.events_missing;
}

static void sequence_give_up(struct assembler *assembler, struct sequence_place *place)
{
    *sequence_count(assembler, place) += place->awaited;
    assembler->sequences.awaited -= place->awaited;
    place->missing += place->awaited;
    place->awaited = 0;
}

void assembler_count_missing(struct assembler *assembler, int64_t since_ns)
{
    struct sequences *sequences = &assembler->sequences;

    for (size_t i = 0; sequences->awaited && i < SEQUENCE_PLACES; i++)
        if (sequences->places[i].awaited && sequences->places[i].since_ns <= since_ns)
            sequence_give_up(assembler, &sequences->places[i]);
}

void assembler_count_late(struct assembler *assembler)
{
    if (assembler->sequences.awaited)
        assembler_count_missing(assembler, assembler->now_ns - SEQUENCE_LATE_NS);
}

/* A number that is not the highest: one of those that were skipped, or one that has come before. */
static void sequence_take_late(struct assembler *assembler, struct sequence_place *place,
                               uint64_t number)
{
    const uint64_t ago = place->sequence - number;
    const uint64_t bit = ago < SEQUENCE_BITS ? UINT64_C(1) << ago : 0;

    if (number < place->first || place->seen & bit)
        return;
    place->seen |= bit;
    if (place->awaited) {
        place->awaited--;
        assembler->sequences.awaited--;
    } else if (place->missing) {
        place->missing--;
        --*sequence_count(assembler, place);
    }
}

static void sequence_begin(struct assembler *assembler, struct sequence_place *place,
                           uint64_t series, const struct event *event)
{
    sequence_give_up(assembler, place);
    *place = (struct sequence_place){.series = series,
                                     .first = event->sequence,
                                     .sequence = event->sequence,
                                     .time_ns = event->time_ns,
                                     .seen = 1};
}

__attribute__((noinline)) static void note_gap(struct assembler *assembler,
                                               const struct event *event, uint64_t skipped,
                                               struct sequence_place *place)
{
    struct event_source *source = source_get(assembler->sources, &event->origin);
    const struct loss_interval interval = {
        .begin_ns = place->time_ns,
        .end_ns = event->time_ns,
        .process = origin_process(&event->origin),
        .events = skipped,
    };

    if (!place->awaited)
        place->since_ns = assembler->now_ns;
    place->awaited += skipped;
    assembler->sequences.awaited += skipped;
    if (sequence_kind(event) == SERIES_STREAMED) /* else no span is touched */
        assembler->has_gaps |= loss_note(assembler, source, &source->gaps, &interval);
}

void assembler_note_sequence(struct assembler *assembler, const struct event *event)
{
    const uint64_t series = sequence_series(event);
    struct sequence_place *place = sequence_place_of(&assembler->sequences, series);
    const uint64_t step = event->sequence - place->sequence;

    if (place->series != series) {
        sequence_begin(assembler, place, series, event);
        return;
    }
    if (event->sequence <= place->sequence) {
        sequence_take_late(assembler, place, event->sequence);
        return;
    }
    if (step - 1 > UINT32_MAX) { /* the numbers have 32 bits: this is damage */
        sequence_begin(assembler, place, series, event);
        return;
    }
    if (step > 1)
        note_gap(assembler, event, step - 1, place);
    place->seen = (step < SEQUENCE_BITS ? place->seen << step : 0) | 1;
    place->sequence = event->sequence;
    place->time_ns = event->time_ns;
}

/* ---- tags ------------------------------------------------------------------------------------ */

#define LOST_MAX 400 /* bytes of the tag, and more than it needs */

static void put_number(struct printer *line, uint64_t number, const char *what)
{
    print(line, "%" PRIu64 " %s%s", number, what, number == 1 ? "" : "s");
}

/* An interval may reach beyond the span on both sides, so what is known is a maximum. */
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
    /* what nothing has closed may be open until now: the event that closed it may be lost */
    const int64_t end_ns = open->closing ? span->end_ns : assembler->now_ns;
    const char *incomplete = "what it tells may be incomplete";
    struct loss_sum lost = {.events = 0}, missing = {.events = 0};
    bool is_lost, is_missing;

    is_lost = losses_may_touch(&source->losses, span->start_ns) &&
              losses_overlap(&source->losses, span->start_ns, end_ns, open->process, &lost);
    is_missing = open->streaming && losses_may_touch(&source->gaps, span->start_ns) &&
                 losses_overlap(&source->gaps, span->start_ns, end_ns, open->process, &missing);
    /* one of the two, as both may tell of the same events: LTTng, unless it knows of fewer */
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

/* An end that was lost made it end with a later one, and what was within may be missing. */
void assembler_give_span(struct assembler *assembler, struct span *span,
                         const struct event_source *source, uint64_t process)
{
    if (assembler->has_losses)
        tag_loss_during(assembler, span, source, process, "what it tells may be incomplete");
    if (assembler->has_offsets)
        assembler_correct_times(assembler, span, source);
    assembler->counts.spans_finished++;
    assembler->sink(assembler->sink_context, span);
}

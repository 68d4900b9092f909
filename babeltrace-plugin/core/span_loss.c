/*
 * Losses: what tells of them, and the spans that they have touched.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void note(struct assembler *assembler, const struct origin *origin,
                 const struct loss_interval *interval)
{
    struct source *source = source_get(assembler->sources, origin);

    if (!source->is_overflow && losses_add(&source->losses, interval))
        assembler->has_losses = true;
}

void assembler_note_loss(struct assembler *assembler, const struct loss *loss)
{
    note(assembler, &loss->origin,
         &(struct loss_interval){
             .begin_ns = loss->has_times ? loss->begin_ns : assembler->now_ns,
             .end_ns = loss->has_times ? loss->end_ns : assembler->now_ns,
             .pid = loss->origin.pid,
             .discarded = loss->events,
             .packets = loss->packets,
         });
}

void assembler_note_gap(struct assembler *assembler, const struct event *event, uint64_t missing,
                        int64_t since_ns)
{
    assembler->counts.events_missing += missing;
    note(assembler, &event->origin,
         &(struct loss_interval){
             .begin_ns = since_ns,
             .end_ns = event->time_ns,
             .pid = event->origin.pid,
             .missing = missing,
         });
}

struct line {
    char text[256];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *format, ...)
{
    const size_t room = sizeof(line->text) - line->length;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        line->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void put_number(struct line *line, uint64_t number, const char *what)
{
    put(line, "%" PRIu64 " %s%s", number, what, number == 1 ? "" : "s");
}

/* An interval may reach beyond the span on both sides, so what is known is a maximum. */
static void put_sum(struct line *line, const struct loss_sum *sum)
{
    if (!sum->events && !sum->packets) {
        put(line, "events");
        return;
    }
    if (!sum->is_more)
        put(line, "up to ");
    if (sum->events)
        put_number(line, sum->events, "event");
    if (sum->events && sum->packets)
        put(line, " and ");
    if (sum->packets)
        put_number(line, sum->packets, "packet");
    if (sum->is_more)
        put(line, " or more");
}

void assembler_tag_loss(struct assembler *assembler, struct span *span, const struct source *source,
                        int64_t pid, int64_t end_ns, const char *consequence)
{
    struct line line = {.length = 0};
    struct loss_sum sum;

    if (!losses_may_touch(&source->losses, span->start_ns) ||
        !losses_overlap(&source->losses, span->start_ns, end_ns, pid, &sum))
        return;
    put_sum(&line, &sum);
    put(&line, " lost");
    if (source->host.length)
        put(&line, " on %.*s", source->host.length > 64 ? 64 : (int)source->host.length,
            source->host.data);
    if (sum.pid)
        put(&line, " in process %" PRId64, sum.pid);
    put(&line, " while it was open: %s", consequence);
    assembler->counts.spans_with_loss++;
    if (!span_add(span, SPAN_TAG_TEXT, text_of("blkin.lost"), text_of(line.text), 0))
        assembler->counts.log_errors++;
}

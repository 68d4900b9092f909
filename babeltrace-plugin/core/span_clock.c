/*
 * Spans whose host's clock is off.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

void assembler_note_clock(struct assembler *assembler, const struct event *event)
{
    struct source *source;

    if (!assembler->options.correct_clocks)
        return;
    source = source_get(assembler->sources, &event->origin);
    if (source->is_overflow)
        assembler->counts.not_noted++;
    else if (clock_note(&source->correction, event->origin.pid, event->time_ns, event->realtime))
        assembler->has_offsets = true;
}

void assembler_correct_times(struct assembler *assembler, struct span *span,
                             const struct source *source)
{
    const int64_t offset_ns = clock_offset(&source->correction, span->start_ns);

    if (offset_ns && span_shift(span, offset_ns))
        assembler->counts.spans_corrected++;
}

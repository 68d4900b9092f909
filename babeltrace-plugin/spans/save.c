/*
 * The parts of an assembler, one after the other, and its open spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "save.h"

#include "assembler_parts.h"

/* ---- an open span ---------------------------------------------------------------------------- */

#define END_OF_LOG UINT64_C(255) /* in place of an entry's type */

/* The name and the log of a span. */
static void save_log(const struct span *span, struct state_writer *writer)
{
    state_put_text(writer, span_name(span));
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        state_put_number(writer, entry->type);
        state_put_signed(writer, entry->integer);
        state_put_text(writer, span_entry_key(entry));
        state_put_text(writer, span_entry_value(entry));
    }
    state_put_number(writer, END_OF_LOG);
}

/* That of a link is a struct, and so is no other one. */
static bool is_entry(uint64_t type, struct text key, struct text value)
{
    return type <= SPAN_LINK &&
           (type != SPAN_LINK || (key.length == 0 && value.length == sizeof(struct span_link)));
}

/* Into a span without a log. What there is no room for says so: it had room before. */
static void restore_log(struct span *span, struct state_reader *reader)
{
    const struct text name = state_get_text(reader);
    uint64_t type;

    if (!state_is_good(reader))
        return;
    if (!span_set_name(span, name))
        state_set_no_memory(reader);
    while (state_is_good(reader) && (type = state_get_number(reader)) != END_OF_LOG) {
        const int64_t integer = state_get_signed(reader);
        const struct text key = state_get_text(reader), value = state_get_text(reader);

        if (!is_entry(type, key, value))
            state_set_damaged(reader);
        else if (state_is_good(reader) &&
                 !span_add(span, (enum span_entry_type)type, key, value, integer))
            state_set_no_memory(reader);
    }
}

/* One bit each. */
enum {
    HAS_TIMESTAMP = 1,
    CLOSING = 2,
    STREAMING = 4,
    LEFT_OPEN = 8,
    DEBUG = 16,
    ALL_FLAGS = 31,
};

static uint64_t flags_of(const struct open_span *open)
{
    return (open->has_timestamp ? HAS_TIMESTAMP : 0U) | (open->closing ? CLOSING : 0U) |
           (open->streaming ? STREAMING : 0U) | (open->left_open ? LEFT_OPEN : 0U) |
           (open->span.debug ? DEBUG : 0U);
}

static void set_flags(struct open_span *open, uint64_t flags)
{
    open->has_timestamp = flags & HAS_TIMESTAMP;
    open->closing = flags & CLOSING;
    open->streaming = flags & STREAMING;
    open->left_open = flags & LEFT_OPEN;
    open->span.debug = flags & DEBUG;
}

static void save_open(struct assembler *assembler, const struct open_span *open,
                      struct state_writer *writer)
{
    const struct span *span = &open->span;

    endpoint_save(assembler->endpoints, span->endpoint, writer);
    endpoint_save(assembler->endpoints, span->remote, writer);
    source_save(assembler->sources, open->source, writer);
    state_put_number(writer, span->trace_id_high);
    state_put_number(writer, span->trace_id);
    state_put_number(writer, span->id);
    state_put_number(writer, span->parent_id);
    state_put_number(writer, span->kind);
    state_put_number(writer, flags_of(open));
    state_put_signed(writer, span->start_ns);
    state_put_signed(writer, span->end_ns);
    state_put_signed(writer, open->last_event_ns);
    state_put_number(writer, open->thread);
    state_put_signed(writer, open->pid);
    state_put_number(writer, open->events);
    state_put_number(writer, open->steps_given);
    save_log(span, writer);
}

/* What finishes a span relies on. */
static bool is_sound(const struct open_span *open)
{
    const struct span *span = &open->span;
    const bool has_end = open->streaming || open->has_timestamp;

    return span->endpoint && open->source && span->id && (span->trace_id | span->trace_id_high) &&
           (has_end ? span->end_ns : open->last_event_ns) >= span->start_ns;
}

static void restore_fields(struct assembler *assembler, struct open_span *open,
                           struct state_reader *reader)
{
    struct span *span = &open->span;
    int64_t pid;

    span->endpoint = endpoint_restore(assembler->endpoints, reader);
    span->remote = endpoint_restore(assembler->endpoints, reader);
    open->source = source_restore(assembler->sources, reader);
    span->trace_id_high = state_get_number(reader);
    span->trace_id = state_get_number(reader);
    span->id = state_get_number(reader);
    span->parent_id = state_get_number(reader);
    span->kind = (enum span_kind)state_get_limited(reader, SPAN_CONSUMER);
    set_flags(open, state_get_limited(reader, ALL_FLAGS));
    span->start_ns = state_get_signed(reader);
    span->end_ns = state_get_signed(reader);
    open->last_event_ns = state_get_signed(reader);
    open->thread = state_get_number(reader);
    pid = state_get_signed(reader);
    open->pid = (int32_t)pid;
    open->events = (uint32_t)state_get_limited(reader, UINT32_MAX);
    open->steps_given = state_get_number(reader);
    if (open->pid != pid || !is_sound(open))
        state_set_damaged(reader);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The first in is the first out: then nothing has changed. */
static void save_queue(struct assembler *assembler, struct queue *queue,
                       struct state_writer *writer)
{
    struct open_span *open;

    cds_list_for_each_entry(open, &queue->spans, in_queue)
    {
        state_put_number(writer, true);
        save_open(assembler, open, writer);
    }
    state_put_number(writer, false);
}

static void restore_open(struct assembler *assembler, struct queue *queue,
                         struct state_reader *reader)
{
    struct open_span *open = open_spans_take(&assembler->open);

    if (!open) {
        state_set_no_memory(reader);
        return;
    }
    restore_fields(assembler, open, reader);
    restore_log(&open->span, reader);
    if (state_is_good(reader) && open_spans_put(&assembler->open, open)) {
        queue_append(queue, open, open->last_event_ns);
        assembler->counts.open_bytes += sizeof(*open) + open->span.log_capacity;
        return;
    }
    state_set_damaged(reader);
    open_spans_give(&assembler->open, open);
}

static void restore_queue(struct assembler *assembler, struct queue *queue,
                          struct state_reader *reader)
{
    while (state_get_bool(reader))
        restore_open(assembler, queue, reader);
}

/* ---- the assembler --------------------------------------------------------------------------- */

/* What a source tells is of use for so long. */
static int64_t since_ns(const struct assembler *assembler)
{
    return assembler->now_ns < SAVED_SOURCE_NS ? 0 : assembler->now_ns - SAVED_SOURCE_NS;
}

static void save_flags(const struct assembler *assembler, struct state_writer *writer)
{
    state_put_number(writer, assembler->has_offsets);
    state_put_number(writer, assembler->has_losses);
    state_put_number(writer, assembler->has_gaps);
    state_put_number(writer, assembler->has_original);
    state_put_number(writer, assembler->open.has_halves);
}

static void restore_flags(struct assembler *assembler, struct state_reader *reader)
{
    assembler->has_offsets = state_get_bool(reader);
    assembler->has_losses = state_get_bool(reader);
    assembler->has_gaps = state_get_bool(reader);
    assembler->has_original = state_get_bool(reader);
    assembler->open.has_halves = state_get_bool(reader);
}

void assembler_save(struct assembler *assembler, struct state_writer *writer)
{
    writer->serial = ++assembler->saves;
    state_put_number(writer, true);
    state_put_signed(writer, assembler->now_ns);
    save_flags(assembler, writer);
    save_queue(assembler, &assembler->closing, writer);
    save_queue(assembler, &assembler->idle, writer);
    save_queue(assembler, &assembler->streaming, writer);
    recent_save(assembler->recent, assembler->endpoints, writer);
    sources_save(assembler->sources, since_ns(assembler), writer);
    sequence_table_save(assembler->sequences, writer);
}

void assembler_save_live(struct assembler *assembler, struct state_writer *writer)
{
    writer->serial = ++assembler->saves;
    state_put_number(writer, false);
    state_put_signed(writer, assembler->now_ns);
    save_flags(assembler, writer);
    sources_save(assembler->sources, since_ns(assembler), writer);
    sequence_table_save(assembler->sequences, writer);
}

static void restore_spans(struct assembler *assembler, struct state_reader *reader)
{
    assembler->now_ns = state_get_signed(reader);
    restore_flags(assembler, reader);
    restore_queue(assembler, &assembler->closing, reader);
    restore_queue(assembler, &assembler->idle, reader);
    restore_queue(assembler, &assembler->streaming, reader);
    recent_restore(assembler->recent, assembler->endpoints, reader);
}

static void restore_live(struct assembler *assembler, struct state_reader *reader)
{
    assembler->read_ns = state_get_signed(reader);
    restore_flags(assembler, reader);
}

void assembler_restore(struct assembler *assembler, struct state_reader *reader)
{
    if (state_get_bool(reader))
        restore_spans(assembler, reader);
    else
        restore_live(assembler, reader);
    sources_restore(assembler->sources, reader);
    sequence_table_restore(assembler->sequences, reader);
}

/* ---- a finished span that waits ---------------------------------------------------------------
 */

void span_save(const struct span *span, struct assembler *assembler, struct state_writer *writer)
{
    endpoint_save(assembler->endpoints, span->endpoint, writer);
    endpoint_save(assembler->endpoints, span->remote, writer);
    state_put_number(writer, span->trace_id_high);
    state_put_number(writer, span->trace_id);
    state_put_number(writer, span->id);
    state_put_number(writer, span->parent_id);
    state_put_number(writer, span->kind);
    state_put_number(writer, span->debug);
    state_put_number(writer, span->shared);
    state_put_signed(writer, span->start_ns);
    state_put_signed(writer, span->end_ns);
    save_log(span, writer);
}

void span_restore(struct span *span, struct assembler *assembler, struct state_reader *reader)
{
    span->endpoint = endpoint_restore(assembler->endpoints, reader);
    span->remote = endpoint_restore(assembler->endpoints, reader);
    span->trace_id_high = state_get_number(reader);
    span->trace_id = state_get_number(reader);
    span->id = state_get_number(reader);
    span->parent_id = state_get_number(reader);
    span->kind = (enum span_kind)state_get_limited(reader, SPAN_CONSUMER);
    span->debug = state_get_bool(reader);
    span->shared = state_get_bool(reader);
    span->start_ns = state_get_signed(reader);
    span->end_ns = state_get_signed(reader);
    restore_log(span, reader);
    if (!span->endpoint || !span->id || span->start_ns > span->end_ns)
        state_set_damaged(reader);
}

/*
 * The parts of an assembler, one after the other, and its open spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

/* ---- an open span ---------------------------------------------------------------------------- */

#define END_OF_LOG UINT64_C(255) /* in place of an entry's type */

/* The name and the log of a span. */
static void save_log(const struct span *span, struct state *state)
{
    state_put_text(state, span_name(span));
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        state_put_number(state, entry->type);
        state_put_signed(state, entry->integer);
        state_put_text(state, span_entry_key(entry));
        state_put_text(state, span_entry_value(entry));
    }
    state_put_number(state, END_OF_LOG);
}

/* That of a link is a struct, and so is no other one. */
static bool is_entry(uint64_t type, struct text value)
{
    return type <= SPAN_MESSAGE && (type != SPAN_LINK || value.length == sizeof(struct span_link));
}

/* Into a span without a log. What there is no room for says so: it had room before. */
static void restore_log(struct span *span, struct state *state)
{
    const struct text name = state_get_text(state);
    uint64_t type;

    if (!state_is_good(state))
        return;
    if (!span_set_name(span, name))
        state_set_no_memory(state);
    while (state_is_good(state) && (type = state_get_number(state)) != END_OF_LOG) {
        const int64_t integer = state_get_signed(state);
        const struct text key = state_get_text(state), value = state_get_text(state);

        if (!is_entry(type, value))
            state_set_damaged(state);
        else if (state_is_good(state) &&
                 !span_add(span, (enum span_entry_type)type, key, value, integer))
            state_set_no_memory(state);
    }
}

/* What every span has but its log. */
static void span_fields_state(struct span *span, struct assembler *assembler, struct state *state)
{
    endpoint_state(assembler->endpoints, &span->endpoint, state);
    endpoint_state(assembler->endpoints, &span->remote, state);
    state_number(state, &span->trace_id_high);
    state_number(state, &span->trace_id);
    state_number(state, &span->id);
    state_number(state, &span->parent_id);
    span->kind = (enum span_kind)state_limited(state, span->kind, SPAN_CONSUMER);
    state_bool(state, &span->debug);
    state_bool(state, &span->shared);
    state_signed(state, &span->start_ns);
    state_signed(state, &span->end_ns);
}

static void open_fields_state(struct open_span *open, struct assembler *assembler,
                              struct state *state)
{
    span_fields_state(&open->span, assembler, state);
    state_bool(state, &open->has_timestamp);
    state_bool(state, &open->closing);
    state_bool(state, &open->streaming);
    state_bool(state, &open->left_open);
    state_signed(state, &open->span.recorded_ns);
    state_number(state, &open->thread);
    state_number(state, &open->process);
    open->events = (uint32_t)state_limited(state, open->events, UINT32_MAX);
    state_number(state, &open->steps_given);
}

/* What finishes a span relies on. */
static bool is_sound(const struct open_span *open)
{
    const struct span *span = &open->span;
    const bool has_end = open->streaming || open->has_timestamp;

    return span->endpoint && open->source && span->id && (span->trace_id | span->trace_id_high) &&
           (has_end ? span->end_ns : open->span.recorded_ns) >= span->start_ns;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The first in is the first out: then nothing has changed. */
static void save_queue(struct assembler *assembler, struct queue *queue, struct state *state)
{
    struct open_span *open;

    cds_list_for_each_entry(open, &queue->spans, in_queue)
    {
        state_put_bool(state, true);
        source_save(assembler->sources, open->source, state);
        open_fields_state(open, assembler, state);
        save_log(&open->span, state);
    }
    state_put_bool(state, false);
}

static void restore_open(struct assembler *assembler, struct queue *queue, struct state *state)
{
    struct open_span *open = open_spans_take(&assembler->open);

    if (!open) {
        state_set_no_memory(state);
        return;
    }
    open->source = source_restore(assembler->sources, state);
    open_fields_state(open, assembler, state);
    if (!is_sound(open))
        state_set_damaged(state);
    restore_log(&open->span, state);
    if (state_is_good(state) && open_spans_put(&assembler->open, open)) {
        queue_append(queue, open, open->span.recorded_ns);
        assembler->counts.open_bytes += sizeof(*open) + open->span.log_capacity;
        return;
    }
    state_set_damaged(state);
    open_spans_give(&assembler->open, open);
}

static void restore_queue(struct assembler *assembler, struct queue *queue, struct state *state)
{
    while (state_get_bool(state))
        restore_open(assembler, queue, state);
}

/* ---- the assembler --------------------------------------------------------------------------- */

/*
 * Of a source (a session of a host, or with buffers per process one of its processes) without an
 * open span, what it tells is kept for so long after the last of it.
 */
#define SAVED_SOURCE_NS INT64_C(600000000000)

static int64_t since_ns(const struct assembler *assembler)
{
    return assembler->now_ns < SAVED_SOURCE_NS ? 0 : assembler->now_ns - SAVED_SOURCE_NS;
}

static void flags_state(struct assembler *assembler, struct state *state)
{
    state_bool(state, &assembler->has_offsets);
    state_bool(state, &assembler->has_losses);
    state_bool(state, &assembler->has_gaps);
    state_bool(state, &assembler->has_original);
    state_bool(state, &assembler->open.has_halves);
}

void assembler_save(struct assembler *assembler, bool is_live, struct state *state)
{
    state->serial = ++assembler->saves;
    state_put_bool(state, is_live);
    state_put_signed(state, assembler->now_ns);
    flags_state(assembler, state);
    if (!is_live) {
        save_queue(assembler, &assembler->closing, state);
        save_queue(assembler, &assembler->idle, state);
        save_queue(assembler, &assembler->streaming, state);
        recent_save(&assembler->recent, assembler->endpoints, state);
    }
    sources_save(assembler->sources, since_ns(assembler), state);
    sequences_save(&assembler->sequences, state);
}

void assembler_restore(struct assembler *assembler, struct state *state)
{
    const bool is_live = state_get_bool(state);

    state_signed(state, is_live ? &assembler->read_ns : &assembler->now_ns);
    flags_state(assembler, state);
    if (!is_live) {
        restore_queue(assembler, &assembler->closing, state);
        restore_queue(assembler, &assembler->idle, state);
        restore_queue(assembler, &assembler->streaming, state);
        recent_restore(&assembler->recent, assembler->endpoints, state);
    }
    sources_restore(assembler->sources, state);
    sequences_restore(&assembler->sequences, state);
}

void assembler_save_source(struct assembler *assembler, struct source *source, struct state *state)
{
    source_save(assembler->sources, source, state);
}

struct source *assembler_restore_source(struct assembler *assembler, struct state *state)
{
    return source_restore(assembler->sources, state);
}

/* ---- a finished span that waits -------------------------------------------------------------- */

void span_save(const struct span *span, struct assembler *assembler, struct state *state)
{
    struct span saved = *span;

    span_fields_state(&saved, assembler, state);
    save_log(span, state);
}

struct kept_span *span_restore(struct assembler *assembler, size_t spare, struct state *state)
{
    struct span span = {.log = NULL};
    struct kept_span *kept = NULL;

    span_fields_state(&span, assembler, state);
    restore_log(&span, state);
    if (!span.endpoint || !(span.trace_id | span.trace_id_high) || !span.id ||
        span.start_ns > span.end_ns)
        state_set_damaged(state);
    if (state_is_good(state)) {
        kept = span_keep(&span, spare);
        if (!kept)
            state_set_no_memory(state);
    }
    free(span.log);
    return kept;
}

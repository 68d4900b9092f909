/*
 * Two lines of records: what waits, and what waits of the trace before.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "hold.h"

#include "babeltrace-plugin/base/buffer.h"

#include <stdlib.h>

#define COMPACT_BYTES ((size_t)1 << 20)

/* Followed by the bytes of the texts; sizes are multiples of 8. */
struct record {
    size_t size;
    int64_t time_ns; /* not before that of the record before */
    bool is_loss;
    union {
        struct event event;
        struct loss loss;
    } of;
};

/* Oldest first. */
struct line {
    struct buffer buffer;
    size_t head; /* where the first one is */
    uint64_t events;
};

struct hold {
    struct assembler *assembler;
    struct line line;
    struct line before; /* of the trace before */
    int64_t now_ns;
};

/* ---- texts ----------------------------------------------------------------------------------- */

/* All texts of an event, in the order of their bytes. */
static const size_t event_texts[] = {
    offsetof(struct event, origin.host), offsetof(struct event, origin.process),
    offsetof(struct event, span_name),   offsetof(struct event, service),
    offsetof(struct event, ip),          offsetof(struct event, key),
    offsetof(struct event, value),       offsetof(struct event, log),
};

static const size_t loss_texts[] = {
    offsetof(struct loss, origin.host),
    offsetof(struct loss, origin.process),
};

#define TEXTS(of) (sizeof(of) / sizeof((of)[0]))

/* The i-th text of a record, NULL after the last one. */
static struct text *text_at(struct record *record, size_t i)
{
    if (record->is_loss)
        return i < TEXTS(loss_texts)
                   ? (struct text *)(void *)((char *)&record->of.loss + loss_texts[i])
                   : NULL;
    return i < TEXTS(event_texts)
               ? (struct text *)(void *)((char *)&record->of.event + event_texts[i])
               : NULL;
}

/* ---- a line ---------------------------------------------------------------------------------- */

static struct record *line_first(const struct line *line)
{
    if (line->head == line->buffer.length)
        return NULL;
    return (struct record *)(void *)(line->buffer.data + line->head);
}

static size_t line_bytes(const struct line *line)
{
    return line->buffer.length - line->head;
}

static void remove_first(struct line *line)
{
    const struct record *record = line_first(line);

    line->events -= !record->is_loss;
    line->head += record->size;
    if (line->head == line->buffer.length) {
        line->head = line->buffer.length = 0;
    } else if (line->head >= COMPACT_BYTES && line->head >= line->buffer.length / 2) {
        memmove(line->buffer.data, line->buffer.data + line->head, line_bytes(line));
        line->buffer.length -= line->head;
        line->head = 0;
    }
}

/* Returns false when out of memory. */
static bool line_append(struct line *line, struct record *record)
{
    const struct text *text;
    char *at;

    record->size = sizeof(*record);
    for (size_t i = 0; (text = text_at(record, i)); i++)
        record->size += text->length;
    record->size = (record->size + 7) & ~(size_t)7;
    if (!buffer_reserve(&line->buffer, record->size))
        return false;
    at = line->buffer.data + line->buffer.length;
    memcpy(at, record, sizeof(*record));
    at += sizeof(*record);
    for (size_t i = 0; (text = text_at(record, i)); i++)
        at = text_copy(at, *text);
    line->buffer.length += record->size;
    line->events += !record->is_loss;
    return true;
}

/* The buffer moves when it grows: before a record is used its texts are put right. */
static void set_texts(struct record *record)
{
    const char *at = (const char *)(record + 1);
    struct text *text;

    for (size_t i = 0; (text = text_at(record, i)); i++) {
        text->data = at;
        at += text->length;
    }
}

/* ---- the way to the assembler ---------------------------------------------------------------- */

static void give(struct hold *hold, const struct record *record)
{
    if (record->is_loss)
        assembler_note_loss(hold->assembler, &record->of.loss);
    else
        assembler_add(hold->assembler, &record->of.event);
}

static void give_first(struct hold *hold)
{
    struct record *record = line_first(&hold->line);

    set_texts(record);
    give(hold, record);
    remove_first(&hold->line);
}

/* Unsigned: a trace may claim any time. */
static bool is_over(const struct hold *hold, int64_t time_ns)
{
    return time_ns <= hold->now_ns &&
           (uint64_t)hold->now_ns - (uint64_t)time_ns >= (uint64_t)HOLD_NS;
}

static void give_what_is_over(struct hold *hold)
{
    const struct record *record;

    while ((record = line_first(&hold->line)) &&
           (is_over(hold, record->time_ns) || line_bytes(&hold->line) > HOLD_BYTES_MAX))
        give_first(hold);
}

static void give_all(struct hold *hold)
{
    while (line_first(&hold->line))
        give_first(hold);
}

static void hold_append(struct hold *hold, struct record *record)
{
    if (line_append(&hold->line, record))
        return;
    give_all(hold);
    give(hold, record);
}

/* Of what waits since the trace before, all that is not later. */
static void take_in_before(struct hold *hold, int64_t time_ns)
{
    struct record *record;

    while ((record = line_first(&hold->before)) && record->time_ns <= time_ns) {
        set_texts(record);
        hold_append(hold, record);
        remove_first(&hold->before);
    }
}

static void hold_take(struct hold *hold, struct record *record)
{
    if (record->time_ns > hold->now_ns)
        hold->now_ns = record->time_ns;
    record->time_ns = hold->now_ns;
    take_in_before(hold, record->time_ns);
    hold_append(hold, record);
    give_what_is_over(hold);
}

void hold_add(struct hold *hold, const struct event *event)
{
    struct record record = {.time_ns = event->time_ns, .of.event = *event};

    hold_take(hold, &record);
}

void hold_note_loss(struct hold *hold, const struct loss *loss)
{
    struct record record = {.time_ns = loss->has_times ? loss->end_ns : hold->now_ns,
                            .is_loss = true,
                            .of.loss = *loss};

    hold_take(hold, &record);
}

void hold_end_trace(struct hold *hold, int64_t end_ns)
{
    take_in_before(hold, INT64_MAX);
    if (end_ns > hold->now_ns)
        hold->now_ns = end_ns;
    give_what_is_over(hold);
    if (hold->now_ns > INT64_MIN + HOLD_NS)
        assembler_advance(hold->assembler, hold->now_ns - HOLD_NS);
}

void hold_flush(struct hold *hold)
{
    take_in_before(hold, INT64_MAX);
    give_all(hold);
}

uint64_t hold_events(const struct hold *hold)
{
    return hold->line.events + hold->before.events;
}

struct hold *hold_new(struct assembler *assembler)
{
    struct hold *hold = calloc(1, sizeof(*hold));

    if (hold) {
        hold->assembler = assembler;
        hold->now_ns = INT64_MIN;
    }
    return hold;
}

void hold_free(struct hold *hold)
{
    if (!hold)
        return;
    buffer_free(&hold->line.buffer);
    buffer_free(&hold->before.buffer);
    free(hold);
}

/* ---- from one run to the next ---------------------------------------------------------------- */

static void origin_state(struct origin *origin, struct state *state)
{
    state_bytes(state, &origin->host);
    state_signed(state, &origin->clock);
    state_bytes(state, &origin->process);
    state_signed(state, &origin->pid);
    state_signed(state, &origin->tid);
    state_number(state, &origin->pid_ns);
}

static void event_state(struct event *event, struct state *state)
{
    event->kind = (enum event_kind)state_limited(state, event->kind, EVENT_RULE);
    state_signed(state, &event->time_ns);
    origin_state(&event->origin, state);
    state_number(state, &event->trace_id_high);
    state_number(state, &event->trace_id);
    state_number(state, &event->span_id);
    state_number(state, &event->parent_id);
    state_bytes(state, &event->span_name);
    state_bytes(state, &event->service);
    state_bytes(state, &event->ip);
    state_signed(state, &event->port);
    state_bytes(state, &event->key);
    state_bytes(state, &event->value);
    state_signed(state, &event->integer);
    state_bytes(state, &event->log);
    state_number(state, &event->duration_ns);
    state_signed(state, &event->age_ns);
    state_number(state, &event->thread);
    state_number(state, &event->sequence);
    state_number(state, &event->span_kind);
    state_number(state, &event->flags);
    state_number(state, &event->dropped);
    state_number(state, &event->realtime);
}

static void loss_state(struct loss *loss, struct state *state)
{
    origin_state(&loss->origin, state);
    state_bool(state, &loss->has_times);
    state_signed(state, &loss->begin_ns);
    state_signed(state, &loss->end_ns);
    state_number(state, &loss->events);
    state_number(state, &loss->packets);
}

static void record_state(struct record *record, struct state *state)
{
    if (record->is_loss)
        loss_state(&record->of.loss, state);
    else
        event_state(&record->of.event, state);
}

enum { END, EVENT, LOSS };

static void save_line(const struct line *line, struct state *state)
{
    struct record *record;

    for (size_t at = line->head; at < line->buffer.length; at += record->size) {
        record = (struct record *)(void *)(line->buffer.data + at);
        set_texts(record);
        state_put_number(state, record->is_loss ? LOSS : EVENT);
        state_put_signed(state, record->time_ns);
        record_state(record, state);
    }
}

void hold_save(const struct hold *hold, struct state *state)
{
    save_line(&hold->line, state);
    save_line(&hold->before, state); /* there is one of the two: hold_end_trace() */
    state_put_number(state, END);
}

void hold_restore(struct hold *hold, struct state *state)
{
    int64_t last_ns = INT64_MIN;
    uint64_t type;

    while ((type = state_get_limited(state, LOSS)) != END) {
        struct record record = {.time_ns = state_get_signed(state), .is_loss = type == LOSS};

        record_state(&record, state);
        if (record.time_ns < last_ns)
            state_set_damaged(state);
        else if (state_is_good(state) && !line_append(&hold->before, &record))
            state_set_no_memory(state);
        last_ns = record.time_ns;
    }
}

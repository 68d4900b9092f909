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

/* Those that an event of its kind has, a bit each: who decodes leaves the others as they were. */
enum {
    ORIGIN = 0x03,
    NAMES = 0x1c,
    GROUP = 0x0c,
    KEY = 0x20,
    VALUE = 0x40,
    LOG = 0x80,
};

static const unsigned texts_of[] = {
    [EVENT_TIMESTAMP] = ORIGIN | NAMES | VALUE,
    [EVENT_KEYVAL_TEXT] = ORIGIN | NAMES | KEY | VALUE,
    [EVENT_KEYVAL_INTEGER] = ORIGIN | NAMES | KEY,
    [EVENT_SPAN] = ORIGIN | NAMES | LOG,
    [EVENT_BEGIN] = ORIGIN | NAMES,
    [EVENT_ANNOTATION] = ORIGIN | KEY | VALUE,
    [EVENT_TAG] = ORIGIN | LOG,
    [EVENT_END] = ORIGIN,
    [EVENT_PROCESS] = ORIGIN,
    [EVENT_METRIC] = ORIGIN | GROUP | VALUE | LOG,
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

static struct record *first_of(const struct line *line)
{
    if (line->head == line->buffer.length)
        return NULL;
    return (struct record *)(void *)(line->buffer.data + line->head);
}

static size_t bytes_of(const struct line *line)
{
    return line->buffer.length - line->head;
}

static void remove_first(struct line *line)
{
    const struct record *record = first_of(line);

    line->events -= !record->is_loss;
    line->head += record->size;
    if (line->head == line->buffer.length) {
        line->head = line->buffer.length = 0;
    } else if (line->head >= COMPACT_BYTES && line->head >= line->buffer.length / 2) {
        memmove(line->buffer.data, line->buffer.data + line->head, bytes_of(line));
        line->buffer.length -= line->head;
        line->head = 0;
    }
}

/* Returns false when out of memory. */
static bool append(struct line *line, struct record *record)
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
    struct record *record = first_of(&hold->line);

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

    while ((record = first_of(&hold->line)) &&
           (is_over(hold, record->time_ns) || bytes_of(&hold->line) > HOLD_BYTES_MAX))
        give_first(hold);
}

static void give_all(struct hold *hold)
{
    while (first_of(&hold->line))
        give_first(hold);
}

static void add(struct hold *hold, struct record *record)
{
    if (append(&hold->line, record))
        return;
    give_all(hold);
    give(hold, record);
}

/* Of what waits since the trace before, all that is not later. */
static void take_in_before(struct hold *hold, int64_t time_ns)
{
    struct record *record;

    while ((record = first_of(&hold->before)) && record->time_ns <= time_ns) {
        set_texts(record);
        add(hold, record);
        remove_first(&hold->before);
    }
}

static void take(struct hold *hold, struct record *record)
{
    if (record->time_ns > hold->now_ns)
        hold->now_ns = record->time_ns;
    record->time_ns = hold->now_ns;
    take_in_before(hold, record->time_ns);
    add(hold, record);
    give_what_is_over(hold);
}

void hold_add(struct hold *hold, const struct event *event)
{
    struct record record = {.time_ns = event->time_ns, .of.event = *event};
    struct text *text;

    for (size_t i = 0; (text = text_at(&record, i)); i++) {
        if (!(texts_of[event->kind] >> i & 1))
            *text = (struct text){NULL, 0};
    }
    take(hold, &record);
}

void hold_note_loss(struct hold *hold, const struct loss *loss)
{
    struct record record = {.time_ns = loss->has_times ? loss->end_ns : hold->now_ns,
                            .is_loss = true,
                            .of.loss = *loss};

    take(hold, &record);
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

static void save_origin(const struct origin *origin, struct state_writer *writer)
{
    state_put_text(writer, origin->host);
    state_put_signed(writer, origin->clock);
    state_put_text(writer, origin->process);
    state_put_signed(writer, origin->pid);
    state_put_signed(writer, origin->tid);
}

static void restore_origin(struct origin *origin, struct state_reader *reader)
{
    origin->host = state_get_text(reader);
    origin->clock = state_get_signed(reader);
    origin->process = state_get_text(reader);
    origin->pid = state_get_signed(reader);
    origin->tid = state_get_signed(reader);
}

static void save_event(const struct event *event, struct state_writer *writer)
{
    state_put_number(writer, event->kind);
    state_put_signed(writer, event->time_ns);
    save_origin(&event->origin, writer);
    state_put_number(writer, event->trace_id_high);
    state_put_number(writer, event->trace_id);
    state_put_number(writer, event->span_id);
    state_put_number(writer, event->parent_id);
    state_put_text(writer, event->span_name);
    state_put_text(writer, event->service);
    state_put_text(writer, event->ip);
    state_put_signed(writer, event->port);
    state_put_text(writer, event->key);
    state_put_text(writer, event->value);
    state_put_signed(writer, event->integer);
    state_put_text(writer, event->log);
    state_put_number(writer, event->duration_ns);
    state_put_signed(writer, event->age_ns);
    state_put_number(writer, event->thread);
    state_put_number(writer, event->sequence);
    state_put_number(writer, event->span_kind);
    state_put_number(writer, event->flags);
    state_put_number(writer, event->dropped);
    state_put_number(writer, event->realtime);
}

static void restore_event(struct event *event, struct state_reader *reader)
{
    event->kind = (enum event_kind)state_get_limited(reader, EVENT_METRIC);
    event->time_ns = state_get_signed(reader);
    restore_origin(&event->origin, reader);
    event->trace_id_high = state_get_number(reader);
    event->trace_id = state_get_number(reader);
    event->span_id = state_get_number(reader);
    event->parent_id = state_get_number(reader);
    event->span_name = state_get_text(reader);
    event->service = state_get_text(reader);
    event->ip = state_get_text(reader);
    event->port = state_get_signed(reader);
    event->key = state_get_text(reader);
    event->value = state_get_text(reader);
    event->integer = state_get_signed(reader);
    event->log = state_get_text(reader);
    event->duration_ns = state_get_number(reader);
    event->age_ns = state_get_signed(reader);
    event->thread = state_get_number(reader);
    event->sequence = state_get_number(reader);
    event->span_kind = state_get_number(reader);
    event->flags = state_get_number(reader);
    event->dropped = state_get_number(reader);
    event->realtime = state_get_number(reader);
}

static void save_loss(const struct loss *loss, struct state_writer *writer)
{
    save_origin(&loss->origin, writer);
    state_put_number(writer, loss->has_times);
    state_put_signed(writer, loss->begin_ns);
    state_put_signed(writer, loss->end_ns);
    state_put_number(writer, loss->events);
    state_put_number(writer, loss->packets);
}

static void restore_loss(struct loss *loss, struct state_reader *reader)
{
    restore_origin(&loss->origin, reader);
    loss->has_times = state_get_bool(reader);
    loss->begin_ns = state_get_signed(reader);
    loss->end_ns = state_get_signed(reader);
    loss->events = state_get_number(reader);
    loss->packets = state_get_number(reader);
}

enum { END, EVENT, LOSS };

static void save_line(const struct line *line, struct state_writer *writer)
{
    struct record *record;

    for (size_t at = line->head; at < line->buffer.length; at += record->size) {
        record = (struct record *)(void *)(line->buffer.data + at);
        set_texts(record);
        state_put_number(writer, record->is_loss ? LOSS : EVENT);
        state_put_signed(writer, record->time_ns);
        if (record->is_loss)
            save_loss(&record->of.loss, writer);
        else
            save_event(&record->of.event, writer);
    }
}

void hold_save(const struct hold *hold, struct state_writer *writer)
{
    save_line(&hold->line, writer);
    save_line(&hold->before, writer); /* there is one of the two: hold_end_trace() */
    state_put_number(writer, END);
}

void hold_restore(struct hold *hold, struct state_reader *reader)
{
    int64_t last_ns = INT64_MIN;
    uint64_t type;

    while ((type = state_get_limited(reader, LOSS)) != END) {
        struct record record = {.time_ns = state_get_signed(reader), .is_loss = type == LOSS};

        if (record.is_loss)
            restore_loss(&record.of.loss, reader);
        else
            restore_event(&record.of.event, reader);
        if (record.time_ns < last_ns)
            state_set_damaged(reader);
        else if (state_is_good(reader) && !append(&hold->before, &record))
            state_set_no_memory(reader);
        last_ns = record.time_ns;
    }
}

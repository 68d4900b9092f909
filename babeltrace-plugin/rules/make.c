/*
 * Makes a span of a begin and the event that ends it. Lookups supply some texts of the span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include "babeltrace-plugin/base/hash.h"
#include "tracepoints/format/join.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- ids ------------------------------------------------------------------------------------- */

/* The ids depend only on the events, so a second reading makes the same ids. */
const struct pair_ids *pair_ids_of(struct pair_open *open)
{
    const struct span_rule *rule = open->run->rule;
    uint64_t hash;

    if (open->ids.span)
        return &open->ids;
    hash = hash_mix(key_host(open->host, open->process) ^ hash_mix((uint64_t)open->begin_ns));
    hash = hash_mix(hash ^ (open->process << 32 | (uint64_t)(uint32_t)open->tid));
    hash = hash_mix(hash ^ ((uint64_t)open->run->number << 32 | open->ordinal));
    /* 0 is no id, and the parent may have the same hash if times go back */
    while (hash == 0 || hash == open->ids.parent)
        hash = hash_mix(hash + 1);
    open->ids.span = hash;
    if (open->ids.trace | open->ids.trace_high)
        return &open->ids;
    open->ids.trace = hash_mix(hash ^ 1);
    open->ids.trace_high =
        rule->join.count && rule->kind == SPAN_SERVER ? JOIN_TRACE_HIGH : hash_mix(hash ^ 2) | 1;
    return &open->ids;
}

/* ---- lookups --------------------------------------------------------------------------------- */

void pair_lookup_free(struct table_link *link)
{
    free(caa_container_of(link, struct pair_lookup, in_table));
}

static struct pair_lookup *pair_lookup_find(struct pairing *pairing)
{
    const size_t bytes = pairing->key.count * sizeof(uint64_t);
    struct pair_lookup *found;

    table_find(found, &pairing->lookups, pairing->key.hash, in_table,
               found->key_bytes == bytes && memcmp(found->data, pairing->key.words, bytes) == 0);
    return found;
}

/* Adds an entry for pairing->key. */
static void pair_lookup_add(struct pairing *pairing, struct text value)
{
    const size_t bytes = pairing->key.count * sizeof(uint64_t);
    const bool has_room = pairing->lookups.count < PAIR_LOOKUPS_MAX;
    struct pair_lookup *lookup = has_room ? malloc(sizeof(*lookup) + bytes + value.length) : NULL;

    if (!lookup) {
        pairing->runs[0].counts.no_room++;
        return;
    }
    lookup->key_bytes = bytes;
    lookup->value_length = value.length;
    memcpy(lookup->data, pairing->key.words, bytes);
    (void)text_copy(lookup->data + bytes, value);
    table_add(&pairing->lookups, &lookup->in_table, pairing->key.hash);
}

static struct text pair_lookup_value(const struct pair_lookup *lookup)
{
    return (struct text){lookup->data + lookup->key_bytes, lookup->value_length};
}

/* Sets the value of the current key. before: the existing entry, or NULL. */
static void pair_lookup_set(struct pairing *pairing, struct pair_lookup *before, struct text value)
{
    if (before && text_equal(pair_lookup_value(before), value))
        return;
    if (before) {
        pairing->named = NULL;
        table_remove(&pairing->lookups, &before->in_table);
        free(before);
    }
    pair_lookup_add(pairing, value);
}

/* Notes the value in the current event; a newer value replaces an older one. */
void pair_lookup_note(struct pairing *pairing, uint16_t number)
{
    const struct rule_lookup *lookup = &pairing->rules->lookups[number];
    const struct origin *origin = &pairing->event->origin;
    const struct pair_open of = {
        .host = pairing->ruled->host, .process = origin_process(origin), .tid = origin->tid};
    char room[VALUE_SHOWN_MAX];
    const struct text value = value_show(pair_value(pairing, lookup->value), room);

    if (!pair_key_lookup(pairing, number, pair_value(pairing, lookup->key.fields[0]), &of))
        return;
    pair_lookup_set(pairing, pair_lookup_find(pairing), value);
}

/* ---- values ---------------------------------------------------------------------------------- */

struct pair_view {
    struct pairing *pairing;
    struct pair_open *open;
    struct rule_value value; /* the last value that was read */
};

/* Returns the value that the field had at the begin; if there is none, the value at the end. */
static const struct rule_value *pair_field(struct pair_view *view, uint16_t field)
{
    if (!stored_find(open_stored(view->open), field, (struct text){NULL, 0}, &view->value))
        view->value = *pair_value(view->pairing, field);
    return &view->value;
}

static const struct rule_value *pair_operand(struct pair_view *view,
                                             const struct rule_operand *operand)
{
    const struct rule_value *value = pair_field(view, operand->field);
    struct pair_lookup *found;

    if (operand->lookup == RULE_NO_LOOKUP ||
        !pair_key_lookup(view->pairing, operand->lookup, value, view->open))
        return value;
    found = pair_lookup_find(view->pairing);
    if (found)
        view->value = (struct rule_value){.type = VALUE_TEXT, .text = pair_lookup_value(found)};
    return value;
}

/* Returns the value of the field at the end; if there is none, the value at the begin. For errors.
 */
static const struct rule_value *pair_late_field(void *context, uint16_t field)
{
    struct pair_view *view = context;
    const struct rule_value *value = pair_value(view->pairing, field);

    return value->type == VALUE_NONE ? pair_field(view, field) : value;
}

struct pair_text {
    char bytes[VALUE_SHOWN_MAX];
    size_t length;
};

static void pair_append(struct pair_text *text, struct text more)
{
    more = text_cut(more, sizeof(text->bytes) - text->length);
    text->length = (size_t)(text_copy(text->bytes + text->length, more) - text->bytes);
}

static struct text pair_fill(struct pair_view *view, const struct rule_template *template,
                             struct pair_text *text)
{
    char room[VALUE_SHOWN_MAX];

    text->length = 0;
    for (size_t i = 0; i < template->count; i++) {
        const struct rule_piece *piece = &template->pieces[i];

        pair_append(text, piece->literal);
        if (piece->has_operand)
            pair_append(text, value_show(pair_operand(view, &piece->operand), room));
    }
    return (struct text){text->bytes, text->length};
}

/* ---- tags ------------------------------------------------------------------------------------ */

static void pair_add(struct pair_view *view, enum span_entry_type type, struct text key,
                     struct text value, int64_t integer)
{
    if (!span_add(&view->pairing->span, type, key, value, integer))
        view->open->run->counts.no_room++;
}

static void pair_tag(struct pair_view *view, struct text key, const struct rule_value *value)
{
    const struct text none = {NULL, 0};
    char room[VALUE_SHOWN_MAX];

    if (value->type == VALUE_INTEGER && !value->is_hex &&
        (value->is_negative || value->integer <= INT64_MAX))
        pair_add(view, SPAN_TAG_INTEGER, key, none, (int64_t)value->integer);
    else if (value->type == VALUE_TEXT)
        pair_add(view, SPAN_TAG_TEXT, key, value->text, 0);
    else if (value->type != VALUE_NONE)
        pair_add(view, SPAN_TAG_TEXT, key, value_show(value, room), 0);
}

/* Tags the members of the begin and the stages, then those that only the end has. */
static void pair_tag_all(struct pair_view *view)
{
    struct text left = open_stored(view->open);
    struct rule_event *event = view->pairing->ruled;
    struct stored_value stored;
    struct rule_value value;

    while (stored_next(&left, &stored)) {
        if (stored.field == STORED_NAMED)
            pair_tag(view, stored.name, &stored.value);
    }
    for (size_t i = 0; event->member && event->member(event, i, &stored.name, &stored.value); i++) {
        if (!stored_find(open_stored(view->open), STORED_NAMED, stored.name, &value))
            pair_tag(view, stored.name, &stored.value);
    }
}

/* Tags the span, which is half of a request, with its join key: tracepoints/format/join.h. */
static void pair_tag_join(struct pair_view *view, const struct span_rule *rule)
{
    char room[VALUE_SHOWN_MAX], digits[17];
    uint64_t hash = 0;

    for (size_t i = 0; i < rule->join.count; i++)
        hash = hash_text(hash, value_show(pair_field(view, rule->join.fields[i]), room));
    (void)snprintf(digits, sizeof(digits), "%016" PRIx64, hash);
    pair_add(view, SPAN_TAG_TEXT, text_of(JOIN_TAG), text_of(digits), 0);
}

static void pair_tag_error(struct pair_view *view, const struct span_rule *rule)
{
    if (!rule->error.count || !pair_condition_holds(&rule->error, pair_late_field, view))
        return;
    if (rule->error_field == RULE_NO_FIELD) {
        pair_add(view, SPAN_TAG_TEXT, text_of("error"), text_of("true"), 0);
    } else {
        char room[VALUE_SHOWN_MAX];

        pair_add(view, SPAN_TAG_TEXT, text_of("error"),
                 value_show(pair_late_field(view, rule->error_field), room), 0);
    }
}

static void pair_tag_marks(struct pair_view *view)
{
    struct text left = open_stored(view->open);
    struct stored_value stored;

    while (stored_next(&left, &stored)) {
        if (stored.field == STORED_MARK)
            pair_add(view, SPAN_ANNOTATION, (struct text){NULL, 0}, stored.name,
                     (int64_t)stored.value.integer);
    }
}

/* Adds the same tags as libblkin's spans have. */
static void pair_tag_origin(struct pair_view *view, struct text process)
{
    const struct pair_open *open = view->open;

    assembler_tag_origin(view->pairing->assembler, &view->pairing->span,
                         &(struct origin){.host = open->source->host,
                                          .process = process,
                                          .pid = process_pid(open->process),
                                          .tid = open->tid});
}

/* ---- spans ----------------------------------------------------------------------------------- */

static struct text pair_process(const struct pairing *pairing)
{
    struct rule_event *ruled = pairing->ruled;

    return ruled->process ? ruled->process(ruled) : pairing->event->origin.process;
}

/*
 * Returns the name of a process. A thread may have its own name, so the name comes from the
 * statedump or the main thread. Until one of these names is known, the name of the first thread is
 * used.
 */
static struct text pair_service(struct pairing *pairing, struct text thread_name)
{
    const struct origin *origin = &pairing->event->origin;
    const struct rule_value pid = {.type = VALUE_INTEGER, .integer = (uint64_t)origin->pid};
    const struct pair_open of = {.host = pairing->ruled->host, .process = origin_process(origin)};
    const bool is_main = origin->tid == origin->pid && thread_name.length;
    struct pair_lookup *found;

    if (pairing->named && pairing->named_process == of.process && pairing->named_host == of.host &&
        (!is_main || text_equal(pair_lookup_value(pairing->named), thread_name)))
        return pair_lookup_value(pairing->named);
    if (origin->pid <= 0 || !pair_key_lookup(pairing, RULES_PROCESS_NAMES, &pid, &of))
        return thread_name;
    found = pair_lookup_find(pairing);
    if (!found || is_main) {
        pair_lookup_set(pairing, found, thread_name);
        found = pair_lookup_find(pairing);
    }
    pairing->named = found;
    pairing->named_host = of.host;
    pairing->named_process = of.process;
    return found ? pair_lookup_value(found) : thread_name;
}

static void pair_give(struct pair_view *view)
{
    view->pairing->span.mark = view->open->mark;
    assembler_give_span(view->pairing->assembler, &view->pairing->span, view->open->source,
                        view->open->process);
}

/* Makes a child span of each stage, which ends with the next stage or with the span. */
static void pair_give_stages(struct pair_view *view, struct text process, int64_t end_ns)
{
    struct pairing *pairing = view->pairing;
    struct span *span = &pairing->span;
    const uint64_t parent_id = view->open->ids.span;
    struct text left = open_stored(view->open);
    struct stored_value stored, next;
    bool has_next = false;

    span->parent_id = parent_id;
    span->kind = SPAN_LOCAL;
    for (uint64_t number = 1;; stored = next) {
        do {
            has_next = stored_next(&left, &next);
        } while (has_next && next.field != STORED_STAGE);
        if (number++ > 1) {
            span->start_ns = (int64_t)stored.value.integer;
            span->end_ns = has_next ? (int64_t)next.value.integer : end_ns;
            span->id = hash_mix(parent_id + number) | 1;
            if (span->end_ns >= span->start_ns && span_set_name(span, stored.name)) {
                pair_tag_origin(view, process);
                view->open->run->counts.stages++;
                pair_give(view);
            } else {
                view->open->run->counts.no_room++;
            }
        }
        if (!has_next)
            return;
    }
}

static bool pair_fill_span(struct pair_view *view, const struct span_rule *rule, int64_t end_ns)
{
    struct pairing *pairing = view->pairing;
    const struct pair_ids *ids = pair_ids_of(view->open);
    const struct text process = pair_process(pairing);
    struct span *span = &pairing->span;
    struct pair_text text;
    const struct text service = rule->service.count ? pair_fill(view, &rule->service, &text)
                                                    : pair_service(pairing, process);

    *span = (struct span){
        .trace_id_high = ids->trace_high,
        .trace_id = ids->trace,
        .id = ids->span,
        .parent_id = ids->parent,
        .endpoint = assembler_service(pairing->assembler, service.length ? service : text_of("?")),
        .kind = rule->kind,
        .start_ns = view->open->begin_ns,
        .end_ns = end_ns,
        .recorded_ns = pairing->event->time_ns,
        .log = span->log,
        .log_capacity = span->log_capacity,
    };
    if (!span->endpoint || !span_set_name(span, pair_fill(view, &rule->name, &text)))
        return false;
    pair_tag_origin(view, process);
    for (size_t i = 0; i < rule->tag_count; i++)
        pair_tag(view, rule->tags[i].key, pair_operand(view, &rule->tags[i].operand));
    if (rule->tags_all)
        pair_tag_all(view);
    if (rule->join.count)
        pair_tag_join(view, rule);
    pair_tag_error(view, rule);
    if (view->open->has_notes)
        pair_tag_marks(view);
    return true;
}

void pair_make(struct pairing *pairing, struct pair_open *open, int64_t end_ns)
{
    struct rule_run *run = open->run;
    struct pair_view view = {.pairing = pairing, .open = open};

    if (pair_fill_span(&view, run->rule, end_ns)) {
        run->counts.spans++;
        if (run->examples)
            report_note_span(open, &pairing->span);
        pair_give(&view);
        if (open->has_notes)
            pair_give_stages(&view, pair_process(pairing), end_ns);
    } else {
        run->counts.unusable++;
    }
}

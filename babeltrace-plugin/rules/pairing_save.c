/*
 * What is kept of pairing from one run to the next, and events that wait in hold.h.
 *
 * Numbers of rules and fields are those of one set of rules: its digest goes with them. Of other
 * rules nothing is used.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include <stdlib.h>

/* ---- what is open ---------------------------------------------------------------------------- */

static void open_state(struct pair_open *open, struct state *state)
{
    state_number(state, &open->host);
    state_signed(state, &open->begin_ns);
    open->ordinal = (uint32_t)state_limited(state, open->ordinal, UINT32_MAX);
    state_number(state, &open->process);
    state_signed(state, &open->tid);
    state_bool(state, &open->has_notes);
    state_number(state, &open->ids.trace_high);
    state_number(state, &open->ids.trace);
    state_number(state, &open->ids.span);
    state_number(state, &open->ids.parent);
}

static int open_compare(const void *a, const void *b)
{
    const struct pair_open *const *first = (const struct pair_open *const *)a;
    const struct pair_open *const *second = (const struct pair_open *const *)b;

    return (*first)->serial < (*second)->serial ? -1 : (*first)->serial > (*second)->serial;
}

/* All that is open, in the order of the begins; NULL: there is no memory. */
static struct pair_open **open_sorted(struct pairing *pairing)
{
    struct pair_open **sorted =
        (struct pair_open **)malloc((pairing->open_count + 1) * sizeof(*sorted));
    struct pair_open *open;
    size_t count = 0;

    if (!sorted)
        return NULL;
    for (size_t i = 0; i < pairing->run_count; i++) {
        cds_list_for_each_entry(open, &pairing->runs[i].queue, in_queue) sorted[count++] = open;
    }
    qsort((void *)sorted, count, sizeof(*sorted), open_compare);
    return sorted;
}

static void open_save(struct pairing *pairing, struct assembler *assembler, struct state *state)
{
    struct pair_open **sorted = open_sorted(pairing);

    state->has_failed |= !sorted;
    for (size_t i = 0; sorted && i < pairing->open_count; i++) {
        struct pair_open *open = sorted[i];

        state_put_bool(state, true);
        state_put_number(state, open->run->number);
        assembler_save_source(assembler, open->source, state);
        open_state(open, state);
        state_put_bool(state, open->thread != NULL);
        state_put_text(state, (struct text){open->data.data, open->key_bytes});
        state_put_text(state, open_kept(open));
    }
    state_put_bool(state, false);
    free((void *)sorted);
}

static bool ids_are_sound(const struct pair_ids *ids)
{
    return !ids->span || ((ids->trace | ids->trace_high) && ids->parent != ids->span);
}

/* Returns false if it is to be given back. */
static bool open_fill(struct pairing *pairing, struct pair_open *open, bool is_on_stack,
                      struct text key, struct text kept, struct state *state)
{
    if (!pair_key_set(pairing, key) || !open->source || !ids_are_sound(&open->ids))
        state_set_damaged(state);
    else if (!open_reserve(pairing, open, key.length + kept.length))
        state_set_no_memory(state);
    if (!state_is_good(state))
        return false;
    open->key_bytes = key.length;
    buffer_put(&open->data, key.data, key.length);
    buffer_put(&open->data, kept.data, kept.length);
    open->serial = ++pairing->serial;
    open_enter(pairing, open);
    if (is_on_stack && !open_push(pairing, open))
        state_set_no_memory(state);
    return true;
}

static void open_restore(struct pairing *pairing, struct assembler *assembler, bool is_of_us,
                         struct state *state)
{
    const uint64_t rule = state_get_limited(state, RULES_COUNT_MAX);
    struct source *source = assembler_restore_source(assembler, state);
    struct pair_open fields = {.source = source}, *open;
    struct text key, kept;
    bool is_on_stack;

    open_state(&fields, state);
    is_on_stack = state_get_bool(state);
    key = state_get_text(state);
    kept = state_get_text(state);
    if (!state_is_good(state) || !pairing->rules)
        return;
    if (!is_of_us) {
        pairing->runs[0].counts.begins++;
        pairing->runs[0].counts.unmatched++;
        return;
    }
    open = rule < pairing->run_count ? open_take(pairing) : NULL;
    if (!open) {
        state_set_damaged(state);
        return;
    }
    fields.data = open->data;
    *open = fields;
    open->run = &pairing->runs[rule];
    if (open_fill(pairing, open, is_on_stack, key, kept, state))
        open->run->counts.begins++;
    else
        open_give(pairing, open);
}

/* ---- lookups --------------------------------------------------------------------------------- */

static void lookups_save(struct pairing *pairing, struct state *state)
{
    struct pair_lookup *lookup;

    table_for_each(lookup, &pairing->lookups, in_table)
    {
        state_put_bool(state, true);
        state_put_text(state, (struct text){lookup->data, lookup->key_bytes});
        state_put_text(state,
                       (struct text){lookup->data + lookup->key_bytes, lookup->value_length});
    }
    state_put_bool(state, false);
}

static void lookups_restore(struct pairing *pairing, bool is_of_us, struct state *state)
{
    while (state_get_bool(state)) {
        const struct text key = state_get_text(state), value = state_get_text(state);

        if (!state_is_good(state) || !is_of_us)
            continue;
        if (pair_key_set(pairing, key))
            pair_lookup_add(pairing, value);
        else
            state_set_damaged(state);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

void pairing_save(struct stage *stage, struct assembler *assembler, struct state *state)
{
    struct pairing *pairing = caa_container_of(stage, struct pairing, stage);

    state_put_number(state, pairing->rules ? pairing->rules->digest : 0);
    state_put_signed(state, pairing->now_ns);
    state_put_signed(state, pairing->last_begin_ns);
    state_put_number(state, pairing->ordinal);
    if (pairing->rules) {
        open_save(pairing, assembler, state);
        lookups_save(pairing, state);
    } else {
        state_put_bool(state, false);
        state_put_bool(state, false);
    }
}

void pairing_restore(struct stage *stage, struct assembler *assembler, struct state *state)
{
    struct pairing *pairing = caa_container_of(stage, struct pairing, stage);
    const bool is_of_us =
        state_get_number(state) == (pairing->rules ? pairing->rules->digest : 0) && pairing->rules;

    state_signed(state, &pairing->now_ns);
    state_signed(state, &pairing->last_begin_ns);
    pairing->ordinal = (uint32_t)state_get_limited(state, UINT32_MAX);
    if (pairing->open_count) /* twice in one state */
        state_set_damaged(state);
    while (state_get_bool(state))
        open_restore(pairing, assembler, is_of_us, state);
    lookups_restore(pairing, is_of_us, state);
}

/* ---- events that wait ------------------------------------------------------------------------ */

bool pairing_pack(struct stage *stage, struct event *event, struct buffer *buffer)
{
    const struct pairing *pairing = caa_container_of(stage, struct pairing, stage);
    struct rule_event *ruled = event->ruled;
    struct kept_value kept = {.field = KEPT_NAMED};
    bool has_room = true;

    buffer->length = 0;
    for (size_t place = 0; place < ruled->class->field_count; place++) {
        if (ruled->values[place].type == VALUE_UNREAD)
            ruled->read(ruled, place);
        has_room &= kept_put(buffer, &(struct kept_value){.field = ruled->class->fields[place],
                                                          .value = ruled->values[place]});
    }
    for (size_t i = 0; ruled->member && ruled->member(ruled, i, &kept.name, &kept.value); i++)
        has_room &= kept_put(buffer, &kept);
    if (ruled->process)
        event->origin.process = ruled->process(ruled);
    event->span_name = ruled->class->name;
    event->log = (struct text){buffer->data, buffer->length};
    event->trace_id = pairing->rules->digest;
    event->ruled = NULL;
    return has_room;
}

static bool packed_member(struct rule_event *event, size_t i, struct text *name,
                          struct rule_value *value)
{
    struct pairing *pairing = caa_container_of(event, struct pairing, unpacked);
    struct kept_value kept;

    if (i == 0)
        pairing->packed_left = pairing->packed;
    while (kept_next(&pairing->packed_left, &kept)) {
        if (kept.field != KEPT_NAMED)
            continue;
        *name = kept.name;
        *value = kept.value;
        return true;
    }
    return false;
}

bool pairing_unpack(struct pairing *pairing, const struct event *event)
{
    struct rule_event *unpacked = &pairing->unpacked;
    struct text left = event->log;
    struct kept_value kept;
    bool is_starved = false;

    if (!pairing->rules || event->trace_id != pairing->rules->digest)
        return false;
    *unpacked =
        (struct rule_event){.class = rules_class(pairing->rules, event->span_name, &is_starved),
                            .values = pairing->unpacked_values,
                            .member = packed_member};
    pairing->is_starved |= is_starved;
    if (!unpacked->class)
        return false;
    for (size_t i = 0; i < unpacked->class->field_count; i++)
        unpacked->values[i].type = VALUE_NONE;
    while (kept_next(&left, &kept)) {
        if (kept.field < pairing->rules->field_count &&
            unpacked->class->slots[kept.field] != RULE_NO_FIELD)
            unpacked->values[unpacked->class->slots[kept.field]] = kept.value;
    }
    pairing->packed = event->log;
    pairing->ruled = unpacked;
    return true;
}

/*
 * Takes an event that rules name: begins and ends spans. All functions that most events need are
 * here, so that the compiler makes one function of them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include "babeltrace-plugin/base/hash.h"

/* ---- the table ------------------------------------------------------------------------------- */

static void open_remove_from_table(struct pairing *pairing, struct pair_open *open)
{
    if (open->older)
        open->older->newer = open->newer;
    if (open->newer) {
        open->newer->older = open->older;
        return;
    }
    table_remove(&pairing->open, &open->in_table);
    if (open->older)
        table_add(&pairing->open, &open->older->in_table, open->in_table.hash);
}

inline void open_enter(struct pairing *pairing, struct pair_open *open)
{
    struct rule_run *run = open->run;
    const int64_t expiry_ns = open_expiry(open);

    if (run->rule->is_stack && (open->older = open_find(pairing))) {
        /* the table has only the newest span of a key */
        open->older->newer = open;
        table_remove(&pairing->open, &open->older->in_table);
    }
    table_add(&pairing->open, &open->in_table, pairing->key.hash);
    cds_list_add_tail(&open->in_queue, &run->queue);
    run->counts.open++;
    pairing->open_count++;
    if (expiry_ns < pairing->next_expiry_ns)
        pairing->next_expiry_ns = expiry_ns;
}

/* Returns false when out of memory. */
static inline bool open_set_key(struct pairing *pairing, struct pair_open *open)
{
    const struct pair_key *key = &pairing->key;
    const size_t count = key->count, bytes = count * sizeof(key->words[0]);
    uint64_t *words;

    if (bytes > open->data.capacity && !open_reserve(pairing, open, bytes))
        return false;
    words = (uint64_t *)(void *)open->data.data;
    for (size_t i = 0; i < count; i += 2) {
        words[i] = key->words[i];
        words[i + 1] = key->words[i + 1];
    }
    open->key_bytes = open->data.length = bytes;
    return true;
}

static inline __attribute__((always_inline)) struct pair_open *open_begin(struct pairing *pairing,
                                                                          struct rule_run *run)
{
    struct pair_open *open = open_take(pairing);
    const struct event *event = pairing->event;

    if (!open)
        return NULL;
    if (!open_set_key(pairing, open)) {
        open_give(pairing, open);
        return NULL;
    }
    pairing->ordinal = event->time_ns == pairing->last_begin_ns ? pairing->ordinal + 1 : 0;
    pairing->last_begin_ns = event->time_ns;
    /* clearing the whole struct first would take longer than all else */
    open->older = open->newer = NULL;
    open->thread = NULL;
    open->run = run;
    open->has_notes = false;
    open->ordinal = pairing->ordinal;
    open->serial = ++pairing->serial;
    open->source = pairing->ruled->source;
    open->host = pairing->ruled->host;
    open->begin_ns = event->time_ns;
    open->process = origin_process(&event->origin);
    open->tid = event->origin.tid;
    open->ids = (struct pair_ids){.trace = 0};
    return open;
}

struct pair_open *open_new(struct pairing *pairing, struct rule_run *run)
{
    return open_begin(pairing, run);
}

inline void open_end(struct pairing *pairing, struct pair_open *open)
{
    open_pop(pairing, open);
    open_remove_from_table(pairing, open);
    cds_list_del(&open->in_queue);
    open->run->counts.open--;
    pairing->open_count--;
    open_give(pairing, open);
}

/* ---- begins and ends ------------------------------------------------------------------------- */

static inline void pair_begin(struct pairing *pairing, struct rule_run *run)
{
    const struct span_rule *rule = run->rule;
    struct pair_open *open;

    if (!pair_key_of(pairing, run))
        return;
    run->counts.begins++;
    if (!rule->is_stack && (open = open_find(pairing))) {
        run->counts.begun_again++;
        open_end(pairing, open);
    }
    open = open_begin(pairing, run);
    if (!open) {
        run->counts.unusable++;
        return;
    }
    if (rule->parent != PARENT_NONE) {
        pair_set_parent(pairing, run, &open->ids);
        (void)pair_key_of(pairing, run); /* pair_set_parent() may have replaced the key */
    }
    open_enter(pairing, open);
    if (rule->stored.count || rule->tags_all)
        pair_store_values(pairing, open);
    if (rule->encloses && open->tid && !open_push(pairing, open))
        run->counts.no_room++;
    if (pairing->open_count > pairing->options.max_open ||
        pairing->open_bytes > pairing->options.max_open_bytes)
        open_make_room(pairing);
}

static inline void pair_end(struct pairing *pairing, struct rule_run *run)
{
    struct pair_open *open;

    if (!pair_key_of(pairing, run))
        return;
    open = open_find(pairing);
    if (!open) {
        run->counts.ends_unmatched++;
        if (run->examples)
            report_note_end(run, pairing->event);
        return;
    }
    if (!run->rule->has_key)
        open_drop_above(pairing, open);
    pair_make_or_count(pairing, open, pairing->event->time_ns);
    open_end(pairing, open);
}

/* A key from renamed fields is not valid for the next rule. */
static inline void pair_rename(struct pairing *pairing, const struct rule_point *point)
{
    if (!pairing->renaming && !(point && point->rename_count))
        return;
    pairing->renaming = point && point->rename_count ? point : NULL;
    pairing->key.form = RULE_NO_FORM;
}

/* ---- events ---------------------------------------------------------------------------------- */

__attribute__((noinline)) static void pair_set_source(struct pairing *pairing,
                                                      const struct origin *origin)
{
    pairing->ruled->source = assembler_source(pairing->assembler, origin);
    pairing->ruled->host = hash_text(0, origin->host);
}

void pairing_take(struct stage *stage, const struct event *event)
{
    struct pairing *pairing = caa_container_of(stage, struct pairing, stage);
    const struct rule_class *class;

    pairing->ruled = event->ruled;
    pairing->event = event;
    pairing->key.form = RULE_NO_FORM;
    pairing->renaming = NULL;
    if (event->time_ns > pairing->now_ns)
        pairing->now_ns = event->time_ns;
    if (!pairing->ruled->source)
        pair_set_source(pairing, &event->origin);
    if (pairing->now_ns > pairing->next_expiry_ns)
        open_expire(pairing);
    class = pairing->ruled->class;
    for (size_t i = 0; i < class->point_count; i++) {
        const struct rule_point *point = class->points[i];

        pair_rename(pairing, NULL);
        if (point->condition.count &&
            !pair_condition_holds(&point->condition, pair_event_value, pairing))
            continue;
        pair_rename(pairing, point);
        if (point->kind == POINT_END)
            pair_end(pairing, &pairing->runs[point->owner]);
        else if (point->kind == POINT_BEGIN)
            pair_begin(pairing, &pairing->runs[point->owner]);
        else
            pair_take_other(pairing, point);
    }
}

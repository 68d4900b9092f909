/*
 * Takes an event that rules name: begins and ends spans. Open spans: their memory, their threads,
 * and their age. All functions that most events need are here, so that the compiler makes one
 * function of them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>

#define THREADS_IDLE_MAX 4096 /* also while no span is open on them */

/* ---- memory ---------------------------------------------------------------------------------- */

static struct pair_open *open_allocate(void)
{
    struct pair_open *open = malloc(sizeof(*open));

    if (!open)
        return NULL;
    open->data = (struct buffer){
        .data = malloc(DATA_FIRST), .capacity = DATA_FIRST, .limit = PAIR_STORED_MAX};
    if (open->data.data)
        return open;
    free(open);
    return NULL;
}

static void open_free(struct pair_open *open)
{
    free(open->data.data);
    free(open);
}

static bool open_reserve(struct pairing *pairing, struct pair_open *open, size_t bytes)
{
    const size_t before = open->data.capacity;
    const bool has_room = buffer_reserve(&open->data, bytes);

    pairing->open_bytes += open->data.capacity - before;
    return has_room;
}

void open_store(struct pairing *pairing, struct pair_open *open, const struct stored_value *stored)
{
    const size_t before = open->data.capacity;

    if (stored->value.type == VALUE_NONE)
        return;
    if (!stored_put(&open->data, stored))
        open->run->counts.no_room++;
    pairing->open_bytes += open->data.capacity - before;
}

/* Returns an open span in no table and no queue, with empty data. Its bytes count as open until
 * open_give(). Returns NULL when out of memory. */
static inline struct pair_open *open_take(struct pairing *pairing)
{
    struct pair_open *open = pairing->pool;

    if (open) {
        pairing->pool = open->older;
        pairing->pool_length--;
        open->data.length = 0;
    } else {
        open = open_allocate();
        if (!open)
            return NULL;
    }
    open->mark = marks_hold(assembler_marks(pairing->assembler), 0);
    pairing->open_bytes += sizeof(*open) + open->data.capacity;
    return open;
}

inline void open_give(struct pairing *pairing, struct pair_open *open)
{
    pairing->open_bytes -= sizeof(*open) + open->data.capacity;
    marks_release(assembler_marks(pairing->assembler), open->mark);
    if (pairing->pool_length >= PAIR_POOL_MAX || open->data.capacity > 4 * (size_t)DATA_FIRST) {
        open_free(open);
        return;
    }
    open->older = pairing->pool;
    pairing->pool = open;
    pairing->pool_length++;
}

/* ---- threads --------------------------------------------------------------------------------- */

static uint64_t open_thread_hash(const struct pairing *pairing, uint64_t host, uint64_t process,
                                 int64_t tid)
{
    return hash_mix(pairing->threads.seed ^ key_host(host, process) ^
                    (process << 32 | (uint64_t)(uint32_t)tid));
}

static struct pair_thread *open_thread_of(struct pairing *pairing, uint64_t host, uint64_t process,
                                          int64_t tid)
{
    struct pair_thread *thread = pairing->thread;

    if (thread && thread->tid == tid && thread->process == process && thread->host == host)
        return thread;
    table_find(thread, &pairing->threads, open_thread_hash(pairing, host, process, tid), in_table,
               thread->tid == tid && thread->process == process && thread->host == host);
    pairing->thread = thread;
    return thread;
}

struct pair_thread *open_thread(struct pairing *pairing)
{
    const struct origin *origin = &pairing->event->origin;

    return origin->tid
               ? open_thread_of(pairing, pairing->ruled->host, origin_process(origin), origin->tid)
               : NULL;
}

static bool open_push(struct pairing *pairing, struct pair_open *open)
{
    struct pair_thread *thread = open_thread_of(pairing, open->host, open->process, open->tid);

    if (!thread) {
        thread = malloc(sizeof(*thread));
        if (!thread)
            return false;
        *thread =
            (struct pair_thread){.host = open->host, .process = open->process, .tid = open->tid};
        table_add(&pairing->threads, &thread->in_table,
                  open_thread_hash(pairing, open->host, open->process, open->tid));
    }
    open->thread = thread;
    open->below = thread->top;
    open->above = NULL;
    if (thread->top)
        thread->top->above = open;
    thread->top = open;
    return true;
}

static void open_pop(struct pairing *pairing, struct pair_open *open)
{
    struct pair_thread *thread = open->thread;

    if (!thread)
        return;
    if (open->above)
        open->above->below = open->below;
    else
        thread->top = open->below;
    if (open->below)
        open->below->above = open->above;
    open->thread = NULL;
    open->above = open->below = NULL;
    if (!thread->top && pairing->threads.count > THREADS_IDLE_MAX) {
        table_remove(&pairing->threads, &thread->in_table);
        if (pairing->thread == thread)
            pairing->thread = NULL;
        free(thread);
    }
}

/* Returns the time-out of the span, or INT64_MAX. */
static inline int64_t open_expiry(const struct pair_open *open)
{
    int64_t expiry_ns;

    return __builtin_add_overflow(open->begin_ns, open->run->rule->timeout_ns, &expiry_ns)
               ? INT64_MAX
               : expiry_ns;
}

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

/* Adds the span, whose data begin with pairing->key, to table and queue. */
static inline void open_enter(struct pairing *pairing, struct pair_open *open)
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

/* Removes the span from all lists, and frees it. */
static inline void open_end(struct pairing *pairing, struct pair_open *open)
{
    open_pop(pairing, open);
    open_remove_from_table(pairing, open);
    cds_list_del(&open->in_queue);
    open->run->counts.open--;
    pairing->open_count--;
    open_give(pairing, open);
}

/* Drops the spans above on the stack: each ended no more, or is no parent any more. */
static void open_drop_above(struct pairing *pairing, struct pair_open *open)
{
    struct pair_open *above;

    while (open->thread && (above = open->thread->top) != open) {
        if (above->run->rule->has_key) {
            open_pop(pairing, above); /* the span may still end, but is no parent any more */
        } else {
            above->run->counts.dropped++;
            open_end(pairing, above);
        }
    }
}

/* ---- limits ---------------------------------------------------------------------------------- */

static struct pair_open *open_oldest_of(struct rule_run *run)
{
    return cds_list_empty(&run->queue)
               ? NULL
               : cds_list_first_entry(&run->queue, struct pair_open, in_queue);
}

static void open_give_up(struct pairing *pairing, struct pair_open *open)
{
    open->run->counts.unmatched++;
    if (open->run->examples)
        report_note_begin(open);
    open_end(pairing, open);
}

/* Ends expired spans after pairing->next_expiry_ns. */
static void open_expire(struct pairing *pairing)
{
    pairing->next_expiry_ns = INT64_MAX;
    for (size_t i = 0; i < pairing->run_count; i++) {
        struct pair_open *open;

        while ((open = open_oldest_of(&pairing->runs[i])) && open_expiry(open) < pairing->now_ns)
            open_give_up(pairing, open);
        if (open && open_expiry(open) < pairing->next_expiry_ns)
            pairing->next_expiry_ns = open_expiry(open);
    }
}

static struct pair_open *open_oldest(const struct pairing *pairing)
{
    struct pair_open *oldest = NULL;

    for (size_t i = 0; i < pairing->run_count; i++) {
        struct pair_open *open = open_oldest_of(&pairing->runs[i]);

        if (open && (!oldest || open->serial < oldest->serial))
            oldest = open;
    }
    return oldest;
}

/* Ends the oldest spans beyond a limit. */
static void open_make_room(struct pairing *pairing)
{
    while (pairing->open_count > 1 && (pairing->open_count > pairing->options.max_open ||
                                       pairing->open_bytes > pairing->options.max_open_bytes)) {
        struct pair_open *oldest = open_oldest(pairing);

        oldest->run->counts.evicted++;
        open_give_up(pairing, oldest);
    }
}

void open_flush(struct pairing *pairing)
{
    struct pair_open *open;

    for (size_t i = 0; i < pairing->run_count; i++) {
        while ((open = open_oldest_of(&pairing->runs[i])))
            open_give_up(pairing, open);
    }
}

void open_free_thread(struct table_link *link)
{
    free(caa_container_of(link, struct pair_thread, in_table));
}

void open_free_all(struct pairing *pairing)
{
    open_flush(pairing);
    while (pairing->pool) {
        struct pair_open *open = pairing->pool;

        pairing->pool = open->older;
        open_free(open);
    }
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
        (void)pair_key_of(pairing, run); /* the parent's key may have replaced it */
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
            pair_rest(pairing, point);
    }
}

/*
 * What is open: by key, by thread, and by age.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>

#define THREADS_KEPT 4096 /* also while nothing is open on them */

/* ---- threads --------------------------------------------------------------------------------- */

static uint64_t open_thread_hash(const struct pairing *pairing, uint64_t host, int64_t pid,
                                 int64_t tid)
{
    return hash_mix(pairing->threads.seed ^ host ^ ((uint64_t)pid << 32 | (uint64_t)(uint32_t)tid));
}

static struct pair_thread *open_thread_of(struct pairing *pairing, uint64_t host, int64_t pid,
                                          int64_t tid)
{
    struct pair_thread *thread = pairing->thread;

    if (thread && thread->tid == tid && thread->pid == pid && thread->host == host)
        return thread;
    table_find(thread, &pairing->threads, open_thread_hash(pairing, host, pid, tid), in_table,
               thread->tid == tid && thread->pid == pid && thread->host == host);
    pairing->thread = thread;
    return thread;
}

struct pair_thread *open_thread(struct pairing *pairing)
{
    const struct origin *origin = &pairing->event->origin;

    return origin->tid ? open_thread_of(pairing, pairing->ruled->host, origin->pid, origin->tid)
                       : NULL;
}

bool open_push(struct pairing *pairing, struct pair_open *open)
{
    struct pair_thread *thread = open_thread_of(pairing, open->host, open->pid, open->tid);

    if (!thread) {
        thread = malloc(sizeof(*thread));
        if (!thread)
            return false;
        *thread = (struct pair_thread){.host = open->host, .pid = open->pid, .tid = open->tid};
        table_add(&pairing->threads, &thread->in_table,
                  open_thread_hash(pairing, open->host, open->pid, open->tid));
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
    if (!thread->top && pairing->threads.count > THREADS_KEPT) {
        table_remove(&pairing->threads, &thread->in_table);
        if (pairing->thread == thread)
            pairing->thread = NULL;
        free(thread);
    }
}

void open_drop_above(struct pairing *pairing, struct pair_open *open)
{
    struct pair_open *above;

    while (open->thread && (above = open->thread->top) != open) {
        if (pairing->rules->rules[above->rule].has_key) {
            open_pop(pairing, above); /* it may still end, but encloses nothing any more */
        } else {
            pairing->counts[above->rule].dropped++;
            open_end(pairing, above);
        }
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool open_has_key(const struct pair_open *open, const struct pair_key *key)
{
    const uint64_t *words = (const uint64_t *)(const void *)open->data.data;
    size_t i = 0;

    if (open->key_bytes != key->count * sizeof(*words))
        return false;
    while (i < key->count && words[i] == key->words[i])
        i++;
    return i == key->count;
}

struct pair_open *open_find(struct pairing *pairing)
{
    struct pair_open *open;

    table_find(open, &pairing->open, pairing->key.hash, in_table,
               open_has_key(open, &pairing->key));
    return open;
}

static void open_add_to_table(struct pairing *pairing, struct pair_open *open)
{
    if (pairing->rules->rules[open->rule].is_stack) {
        open->older = open_find(pairing);
        if (open->older) {
            open->older->newer = open;
            table_remove(&pairing->open, &open->older->in_table);
        }
    }
    table_add(&pairing->open, &open->in_table, pairing->key.hash);
}

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

void open_enter(struct pairing *pairing, struct pair_open *open)
{
    const struct span_rule *rule = &pairing->rules->rules[open->rule];
    int64_t expiry_ns;

    open_add_to_table(pairing, open);
    cds_list_add_tail(&open->in_queue, &pairing->queues[open->rule]);
    pairing->counts[open->rule].open++;
    pairing->open_count++;
    if (__builtin_add_overflow(open->begin_ns, rule->timeout_ns, &expiry_ns))
        expiry_ns = INT64_MAX;
    if (expiry_ns < pairing->next_expiry_ns)
        pairing->next_expiry_ns = expiry_ns;
}

struct pair_open *open_new(struct pairing *pairing, uint16_t rule)
{
    struct pair_open *open = open_take(pairing);
    const struct event *event = pairing->event;
    const size_t bytes = pairing->key.count * sizeof(uint64_t);

    if (!open || (bytes > open->data.capacity && !open_reserve(pairing, open, bytes))) {
        if (open)
            open_give(pairing, open);
        return NULL;
    }
    pairing->ordinal = event->time_ns == pairing->last_begin_ns ? pairing->ordinal + 1 : 0;
    pairing->last_begin_ns = event->time_ns;
    /* each by itself: to clear all of it first takes longer than the rest */
    open->older = open->newer = open->above = open->below = NULL;
    open->thread = NULL;
    open->has_notes = false;
    open->rule = rule;
    open->ordinal = pairing->ordinal;
    open->serial = ++pairing->serial;
    open->source = pairing->ruled->source;
    open->host = pairing->ruled->host;
    open->begin_ns = event->time_ns;
    open->pid = event->origin.pid;
    open->tid = event->origin.tid;
    open->ids = (struct pair_ids){.trace = 0};
    open->key_bytes = bytes;
    buffer_put(&open->data, (const char *)pairing->key.words, bytes);
    return open;
}

void open_end(struct pairing *pairing, struct pair_open *open)
{
    open_pop(pairing, open);
    open_remove_from_table(pairing, open);
    cds_list_del(&open->in_queue);
    pairing->counts[open->rule].open--;
    pairing->open_count--;
    open_give(pairing, open);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static struct pair_open *open_oldest_of(const struct pairing *pairing, size_t rule)
{
    return cds_list_empty(&pairing->queues[rule])
               ? NULL
               : cds_list_first_entry(&pairing->queues[rule], struct pair_open, in_queue);
}

static void open_give_up(struct pairing *pairing, struct pair_open *open)
{
    pairing->counts[open->rule].unmatched++;
    if (pairing->examples)
        report_note_begin(pairing, open);
    open_end(pairing, open);
}

/* Is it older than its rule's time-out? */
static bool open_is_over(const struct pairing *pairing, const struct pair_open *open,
                         int64_t *expiry_ns)
{
    if (__builtin_add_overflow(open->begin_ns, pairing->rules->rules[open->rule].timeout_ns,
                               expiry_ns))
        *expiry_ns = INT64_MAX;
    return *expiry_ns < pairing->now_ns;
}

void open_expire(struct pairing *pairing)
{
    pairing->next_expiry_ns = INT64_MAX;
    for (size_t rule = 0; rule < pairing->rules->count; rule++) {
        struct pair_open *open;
        int64_t expiry_ns = INT64_MAX;

        while ((open = open_oldest_of(pairing, rule)) && open_is_over(pairing, open, &expiry_ns))
            open_give_up(pairing, open);
        if (open && expiry_ns < pairing->next_expiry_ns)
            pairing->next_expiry_ns = expiry_ns;
    }
}

static struct pair_open *open_oldest(const struct pairing *pairing)
{
    struct pair_open *oldest = NULL;

    for (size_t rule = 0; rule < pairing->rules->count; rule++) {
        struct pair_open *open = open_oldest_of(pairing, rule);

        if (open && (!oldest || open->serial < oldest->serial))
            oldest = open;
    }
    return oldest;
}

void open_make_room(struct pairing *pairing)
{
    while (pairing->open_count > 1 && (pairing->open_count > pairing->options.max_open ||
                                       pairing->open_bytes > pairing->options.max_open_bytes)) {
        struct pair_open *oldest = open_oldest(pairing);

        pairing->counts[oldest->rule].evicted++;
        open_give_up(pairing, oldest);
    }
}

void open_flush(struct pairing *pairing)
{
    struct pair_open *open;

    for (size_t rule = 0; rule < pairing->rules->count; rule++) {
        while ((open = open_oldest_of(pairing, rule)))
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
    open_free_pool(pairing);
}

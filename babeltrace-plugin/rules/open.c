/*
 * Open spans of rules: their memory, their threads, and their age.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>

#define THREADS_KEPT_MAX 4096 /* with more threads, a thread without open spans is freed */

/* ---- memory ---------------------------------------------------------------------------------- */

struct pair_open *open_allocate(void)
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

void open_free(struct pair_open *open)
{
    free(open->data.data);
    free(open);
}

bool open_reserve(struct pairing *pairing, struct pair_open *open, size_t bytes)
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

bool open_push(struct pairing *pairing, struct pair_open *open)
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

void open_pop(struct pairing *pairing, struct pair_open *open)
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
    if (!thread->top && pairing->threads.count > THREADS_KEPT_MAX) {
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

void open_expire(struct pairing *pairing)
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

void open_make_room(struct pairing *pairing)
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

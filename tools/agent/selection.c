/* SPDX-License-Identifier: BSD-2-Clause */
#include "selection.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>

#define FOUND_SLOTS ((size_t)1 << 12) /* the first size */

/* The arguments of a call of selection_add(). */
struct selection_filter {
    struct table_link in_table;    /* by the lower half of the id; in no table if for all traces */
    struct selection_filter *next; /* the next one for all traces */
    uint64_t number;               /* in the order of selection_add() */
    struct trace_id id;            /* high is 0: not known */
    int64_t from_ns;
    int64_t until_ns;
    bool is_sent;
    char why[];
};

struct found_span {
    uint64_t id;
    uint64_t parent_id; /* 0: none */
};

struct found_trace {
    struct table_link in_table; /* by the lower half of its id */
    struct found_trace *next;   /* in order of discovery */
    struct trace_id id;         /* high is 0: no span has the upper half */
    int64_t begin_ns;           /* of its first span */
    uint64_t count;             /* of its spans */
    uint32_t listed;            /* of the spans whose ids are listed */
    size_t room;
    struct found_span *spans;
};

/* The lower halves of ids: a hash table that is small enough for the CPU's cache at first. */
struct found_set {
    uint64_t *slots; /* 0: free */
    size_t size;     /* number of slots: 0, or a power of two */
    size_t count;
};

struct found_traces {
    struct table traces;
    struct found_trace *first, **last;
    struct found_trace *recent; /* the last trace, because its spans come one after another */
    uint64_t told_max;          /* the most traces in the list */
    struct found_set untold;
    uint64_t recent_untold; /* the lower half of the last id in `untold`; 0: none */
    uint64_t listed;        /* of all spans */
    bool is_starved;
};

struct selection {
    struct table wanted;
    struct selection_filter *any, **last_any; /* for all traces */
    uint64_t count;
    struct found_traces found;
};

struct selection *selection_new(void)
{
    struct selection *selection = calloc(1, sizeof(*selection));

    if (!selection || !table_init(&selection->wanted) || !table_init(&selection->found.traces)) {
        selection_free(selection);
        return NULL;
    }
    selection->last_any = &selection->any;
    selection->found.last = &selection->found.first;
    selection->found.told_max = SELECTION_FOUND_MAX;
    return selection;
}

static void selection_free_linked(struct table_link *link)
{
    free(caa_container_of(link, struct selection_filter, in_table));
}

void selection_free(struct selection *selection)
{
    if (!selection)
        return;
    for (struct selection_filter *next; selection->any; selection->any = next) {
        next = selection->any->next;
        free(selection->any);
    }
    table_destroy(&selection->wanted, selection_free_linked);
    for (struct found_trace *trace = selection->found.first, *next; trace; trace = next) {
        next = trace->next;
        free(trace->spans);
        free(trace);
    }
    table_destroy(&selection->found.traces, NULL);
    free(selection->found.untold.slots);
    free(selection);
}

/* ---- the wanted traces ----------------------------------------------------------------------- */

bool selection_add(struct selection *selection, const struct trace_id *id, int64_t from_ns,
                   int64_t until_ns, const char *why)
{
    const struct text reason = text_of(why);
    struct selection_filter *filter = calloc(1, sizeof(*filter) + reason.length + 1);

    if (!filter)
        return false;
    filter->number = selection->count++;
    filter->from_ns = from_ns;
    filter->until_ns = until_ns;
    filter->is_sent = !why;
    (void)text_copy(filter->why, reason);
    if (id) {
        filter->id = *id;
        table_add(&selection->wanted, &filter->in_table,
                  hash_number(selection->wanted.seed, id->low));
    } else {
        *selection->last_any = filter;
        selection->last_any = &filter->next;
    }
    return true;
}

static bool is_in_time(const struct selection_filter *filter, int64_t time_ns)
{
    return (!filter->from_ns || time_ns >= filter->from_ns) &&
           (!filter->until_ns || time_ns < filter->until_ns);
}

/* Returns true if a filter of this kind fits. */
static bool has_filter(const struct selection *selection, bool is_sent, struct trace_id id,
                       int64_t time_ns)
{
    const struct selection_filter *filter;

    table_find(filter, &selection->wanted, hash_number(selection->wanted.seed, id.low), in_table,
               filter->is_sent == is_sent && trace_id_equal(filter->id, id) &&
                   is_in_time(filter, time_ns));
    if (filter)
        return true;
    for (filter = selection->any; filter; filter = filter->next) {
        if (filter->is_sent == is_sent && is_in_time(filter, time_ns))
            return true;
    }
    return false;
}

bool selection_wants(const struct selection *selection, uint64_t trace_id_high, uint64_t trace_id,
                     int64_t time_ns)
{
    return has_filter(selection, false, (struct trace_id){trace_id_high, trace_id}, time_ns);
}

bool selection_was_sent(const struct selection *selection, const struct span *span)
{
    return span->recorded_ns &&
           has_filter(selection, true, (struct trace_id){span->trace_id_high, span->trace_id},
                      span->recorded_ns);
}

struct text selection_why(const struct selection *selection, uint64_t trace_id_high,
                          uint64_t trace_id)
{
    const struct trace_id id = {trace_id_high, trace_id};
    const struct selection_filter *filter, *first = selection->any;

    while (first && first->is_sent)
        first = first->next;
    table_for_each_of(filter, &selection->wanted, hash_number(selection->wanted.seed, trace_id),
                      in_table)
    {
        if (!filter->is_sent && trace_id_equal(filter->id, id) &&
            (!first || filter->number < first->number))
            first = filter;
    }
    return text_of(first ? first->why : "");
}

/* ---- the found spans ------------------------------------------------------------------------- */

static struct found_trace *found_find(const struct found_traces *found, const struct span *span)
{
    const struct trace_id id = {span->trace_id_high, span->trace_id};
    struct found_trace *trace;

    if (found->recent && trace_id_equal(found->recent->id, id))
        return found->recent;
    table_find(trace, &found->traces, hash_number(found->traces.seed, id.low), in_table,
               trace_id_equal(trace->id, id));
    return trace;
}

/* Returns the slot with the id, or the free slot for the id. */
static uint64_t *found_slot(const struct found_set *set, uint64_t seed, uint64_t low)
{
    size_t at = hash_number(seed, low) & (set->size - 1);

    while (set->slots[at] && set->slots[at] != low)
        at = (at + 1) & (set->size - 1);
    return &set->slots[at];
}

/* Grows the table: at least half of the slots stay free. Returns false when out of memory. */
static bool found_fit(struct found_set *set, uint64_t seed)
{
    struct found_set bigger = {.size = set->size ? 2 * set->size : FOUND_SLOTS,
                               .count = set->count};

    if (2 * set->count < set->size)
        return true;
    bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < set->size; i++) {
        if (set->slots[i])
            *found_slot(&bigger, seed, set->slots[i]) = set->slots[i];
    }
    free(set->slots);
    *set = bigger;
    return true;
}

/* Notes a span of a trace that is not in the list. */
static void found_note_untold(struct found_traces *found, uint64_t low)
{
    const uint64_t seed = found->traces.seed;
    uint64_t *slot;

    if (low == found->recent_untold)
        return;
    found->recent_untold = low;
    if (!found_fit(&found->untold, seed)) {
        found->is_starved = true;
        return;
    }
    slot = found_slot(&found->untold, seed, low);
    found->untold.count += *slot == 0 && low;
    *slot = low;
}

/* Returns NULL when out of memory or at the limit. */
static struct found_trace *found_add(struct found_traces *found, const struct span *span)
{
    struct found_trace *trace;

    if (found->traces.count >= found->told_max) {
        found_note_untold(found, span->trace_id);
        return NULL;
    }
    trace = calloc(1, sizeof(*trace));
    if (!trace) {
        found->is_starved = true;
        return NULL;
    }
    trace->id.low = span->trace_id;
    table_add(&found->traces, &trace->in_table, hash_number(found->traces.seed, trace->id.low));
    *found->last = trace;
    found->last = &trace->next;
    return trace;
}

void selection_limit_traces(struct selection *selection, uint64_t traces)
{
    selection->found.told_max = traces;
}

void selection_note(struct selection *selection, const struct span *span)
{
    struct found_traces *found = &selection->found;
    struct found_trace *trace = found_find(found, span);

    if (!trace)
        trace = found_add(found, span);
    if (!trace)
        return;
    found->recent = trace;
    if (trace->count++ == 0 || span->start_ns < trace->begin_ns)
        trace->begin_ns = span->start_ns;
    if (!trace->id.high)
        trace->id.high = span->trace_id_high;
    if (trace->listed >= SELECTION_SPANS_MAX || found->listed >= SELECTION_LISTED_MAX)
        return;
    if (!ARRAY_FITS(trace->spans, trace->room, trace->listed)) {
        found->is_starved = true;
        return;
    }
    trace->spans[trace->listed++] = (struct found_span){span->id, span->parent_id};
    found->listed++;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static int compare_ids(const void *left, const void *right)
{
    const struct found_span *a = left, *b = right;

    return (a->id > b->id) - (a->id < b->id);
}

static int compare_parents(const void *left, const void *right)
{
    const struct found_span *a = left, *b = right;

    return (a->parent_id > b->parent_id) - (a->parent_id < b->parent_id);
}

static void found_append(struct found_traces *found, json_t *list, json_t *value)
{
    found->is_starved |= json_array_append_new(list, value) != 0;
}

/* Lists the ids or the parents, sorted, without 0 and without repetitions: two halves of a shared
 * span, or late pieces of a span, have one id. */
static json_t *found_ids(struct found_traces *found, struct found_trace *trace, bool of_parents)
{
    json_t *list = json_array();
    uint64_t before = 0;

    if (trace->listed)
        qsort(trace->spans, trace->listed, sizeof(*trace->spans),
              of_parents ? compare_parents : compare_ids);
    for (uint32_t i = 0; i < trace->listed; i++) {
        const uint64_t id = of_parents ? trace->spans[i].parent_id : trace->spans[i].id;

        if (id != before)
            found_append(found, list, span_id_json(id));
        before = id;
    }
    return list;
}

/* Lists the parents that are missing. The span ids are sorted. */
static json_t *found_want(struct found_traces *found, struct found_trace *trace)
{
    for (uint32_t i = 0; i < trace->listed; i++) {
        const struct found_span parent = {.id = trace->spans[i].parent_id};

        if (bsearch(&parent, trace->spans, trace->listed, sizeof(parent), compare_ids))
            trace->spans[i].parent_id = 0;
    }
    return found_ids(found, trace, true);
}

static json_t *found_trace_json(struct found_traces *found, struct found_trace *trace)
{
    const bool is_cut = trace->listed < trace->count;
    json_t *have = found_ids(found, trace, false); /* sorts: first */
    json_t *want = is_cut ? json_array() : found_want(found, trace);
    char id[TRACE_ID_TEXT];

    trace_id_text(trace->id, id);
    return json_pack("{ss, sI, sI, so, so, sb}", "id", id, "begin", (json_int_t)trace->begin_ns,
                     "spans", (json_int_t)trace->count, "have", have, "want", want, "cut", is_cut);
}

json_t *selection_found(struct selection *selection)
{
    struct found_traces *found = &selection->found;
    json_t *traces = json_array();

    for (struct found_trace *trace = found->first; trace; trace = trace->next)
        found_append(found, traces, found_trace_json(found, trace));
    if (found->is_starved) {
        json_decref(traces);
        return NULL;
    }
    return json_pack("{sI, so}", "untold", (json_int_t)found->untold.count, "traces", traces);
}

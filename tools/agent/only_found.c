/* SPDX-License-Identifier: BSD-2-Clause */
#include "only_found.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FOUND_SLOTS ((size_t)1 << 12) /* the first size */

struct found_span {
    uint64_t id;
    uint64_t parent_id; /* 0: none */
};

struct found_trace {
    struct table_link in_table; /* by the lower half of its id */
    struct found_trace *next;   /* in order of discovery */
    uint64_t high;              /* 0: no span has the upper half */
    uint64_t low;
    int64_t begin_ns; /* of its first span */
    uint64_t count;   /* of its spans */
    uint32_t listed;  /* of the spans whose ids are listed */
    size_t room;
    struct found_span *spans;
};

/* The lower halves of ids, in a table that fits into the CPU's cache. */
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
    uint64_t recent_untold; /* same as recent; 0: none */
    uint64_t listed;        /* of all spans */
    uint64_t more;          /* spans of traces that are in no list */
    bool is_starved;
};

struct found_traces *found_new(void)
{
    struct found_traces *found = calloc(1, sizeof(*found));

    if (!found || !table_init(&found->traces)) {
        free(found);
        return NULL;
    }
    found->last = &found->first;
    found->told_max = ONLY_FOUND_MAX;
    return found;
}

void found_tell_of(struct found_traces *found, uint64_t traces)
{
    found->told_max = traces < ONLY_FOUND_MAX ? traces : ONLY_FOUND_MAX;
}

void found_free(struct found_traces *found)
{
    struct found_trace *trace, *next;

    if (!found)
        return;
    for (trace = found->first; trace; trace = next) {
        next = trace->next;
        free(trace->spans);
        free(trace);
    }
    table_destroy(&found->traces, NULL);
    free(found->untold.slots);
    free(found);
}

/* ---- noting spans ---------------------------------------------------------------------------- */

static bool found_is_of(const struct found_trace *trace, const struct span *span)
{
    return trace->low == span->trace_id &&
           (trace->high == span->trace_id_high || !trace->high || !span->trace_id_high);
}

static struct found_trace *found_find(const struct found_traces *found, const struct span *span)
{
    struct found_trace *trace;

    if (found->recent && found_is_of(found->recent, span))
        return found->recent;
    table_find(trace, &found->traces, hash_number(found->traces.seed, span->trace_id), in_table,
               found_is_of(trace, span));
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
        if (found->told_max < ONLY_FOUND_MAX)
            found_note_untold(found, span->trace_id);
        else
            found->more++;
        return NULL;
    }
    trace = calloc(1, sizeof(*trace));
    if (!trace) {
        found->is_starved = true;
        return NULL;
    }
    trace->low = span->trace_id;
    table_add(&found->traces, &trace->in_table, hash_number(found->traces.seed, trace->low));
    *found->last = trace;
    found->last = &trace->next;
    return trace;
}

void found_note(struct found_traces *found, const struct span *span)
{
    struct found_trace *trace;

    trace = found_find(found, span);
    if (!trace)
        trace = found_add(found, span);
    if (!trace)
        return;
    found->recent = trace;
    if (trace->count++ == 0 || span->start_ns < trace->begin_ns)
        trace->begin_ns = span->start_ns;
    if (!trace->high)
        trace->high = span->trace_id_high;
    if (trace->listed >= ONLY_SPANS_MAX || found->listed >= ONLY_LISTED_MAX)
        return;
    if (!ARRAY_FITS(trace->spans, trace->room, trace->listed)) {
        found->is_starved = true;
        return;
    }
    trace->spans[trace->listed++] = (struct found_span){span->id, span->parent_id};
    found->listed++;
}

/* ---- the text -------------------------------------------------------------------------------- */

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

static void put_id(FILE *file, const char **joint, uint64_t id)
{
    fprintf(file, "%s\"%016" PRIx64 "\"", *joint, id);
    *joint = ", ";
}

/* Sorts the ids and removes repetitions: two halves of a shared span, or late pieces of a span,
 * have one id. */
static void put_have(FILE *file, struct found_trace *trace)
{
    const char *joint = "";

    qsort(trace->spans, trace->listed, sizeof(*trace->spans), compare_ids);
    for (uint32_t i = 0; i < trace->listed; i++) {
        if (i == 0 || trace->spans[i].id != trace->spans[i - 1].id)
            put_id(file, &joint, trace->spans[i].id);
    }
}

/* Lists the parents that are missing. The span ids are sorted. */
static void put_want(FILE *file, struct found_trace *trace)
{
    const char *joint = "";

    for (uint32_t i = 0; i < trace->listed; i++) {
        const struct found_span parent = {.id = trace->spans[i].parent_id};

        if (bsearch(&parent, trace->spans, trace->listed, sizeof(parent), compare_ids))
            trace->spans[i].parent_id = 0;
    }
    qsort(trace->spans, trace->listed, sizeof(*trace->spans), compare_parents);
    for (uint32_t i = 0; i < trace->listed; i++) {
        const uint64_t parent_id = trace->spans[i].parent_id;

        if (parent_id && (i == 0 || parent_id != trace->spans[i - 1].parent_id))
            put_id(file, &joint, parent_id);
    }
}

static void put_trace(FILE *file, struct found_trace *trace)
{
    const bool is_cut = trace->listed < trace->count;

    fprintf(file,
            "{\"id\": \"%016" PRIx64 "%016" PRIx64 "\", \"begin\": %" PRId64 ", \"spans\": %" PRIu64
            ", \"have\": [",
            trace->high, trace->low, trace->begin_ns, trace->count);
    if (trace->listed)
        put_have(file, trace);
    fprintf(file, "], \"want\": [");
    if (!is_cut)
        put_want(file, trace);
    fprintf(file, "], \"cut\": %s}", is_cut ? "true" : "false");
}

static void put_all(FILE *file, struct found_traces *found, int64_t oldest_ns, int64_t newest_ns)
{
    fprintf(file, "{\"oldest\": %" PRId64 ", \"newest\": %" PRId64 ", \"more\": %" PRIu64,
            oldest_ns, newest_ns, found->more);
    if (found->told_max < ONLY_FOUND_MAX)
        fprintf(file, ", \"untold\": %zu", found->untold.count);
    fprintf(file, ", \"traces\": [");
    for (struct found_trace *trace = found->first; trace; trace = trace->next) {
        fprintf(file, "%s\n", trace == found->first ? "" : ",");
        put_trace(file, trace);
    }
    fprintf(file, "\n]}\n");
}

char *found_text(struct found_traces *found, int64_t oldest_ns, int64_t newest_ns)
{
    char *text = NULL;
    size_t length;
    FILE *file = found->is_starved ? NULL : open_memstream(&text, &length);

    if (!file)
        return NULL;
    put_all(file, found, oldest_ns, newest_ns);
    if (!(ferror(file) | fclose(file)))
        return text;
    free(text);
    return NULL;
}

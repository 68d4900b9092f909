/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdk_store.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>

/* The memory that glibc's malloc(3) takes for n bytes. */
#define MALLOC_BYTES(n) (((n) + 23) & ~(uint64_t)15)

/* A resource, or a scope, which holds its resource. */
struct stored_origin {
    struct stored_origin *resource; /* NULL: this is a resource */
    uint64_t number;             /* unique among all resources and scopes that were ever stored */
    uint64_t uses;               /* by spans; of a resource: by scopes */
    struct text message, schema; /* point into `bytes` */
    struct text service;         /* of a resource; points into `bytes`, too */
    char bytes[];
};

/* A trace with at least one span. */
struct stored_trace {
    struct table_link in_table;
    uint64_t id_high, id;
    uint64_t spans; /* that the store has */
    struct stored_span *newest;
};

struct stored_span {
    struct stored_span *newer; /* the next one of the store */
    struct stored_span *older; /* the next one of the trace; valid if the store has it still */
    struct stored_trace *trace;
    struct stored_origin *scope;
    uint64_t number;           /* in the order in which spans arrived, from 1 */
    int64_t came_ns, ended_ns; /* CLOCK_MONOTONIC */
    uint32_t length;
    char raw[];
};

struct sdk_store {
    struct sdk_memory *memory;
    struct cds_list_head in_list;
    struct stored_span *oldest, *newest;
    struct stored_origin *scope;            /* of the last span; NULL: not known */
    uint64_t resource_number, scope_number; /* their numbers in the request; 0: not known */
    struct table traces;
    struct stored_trace *trace; /* of the last span, as spans of one trace follow each other; NULL:
                                 * not known */
    struct sdk_held held;       /* without `traces` */
};

/* Counts bytes that were taken; sign -1: that were freed. */
static void store_count(struct sdk_store *store, uint64_t bytes, int sign)
{
    const uint64_t change = (uint64_t)sign * MALLOC_BYTES(bytes);

    store->held.bytes += change;
    store->memory->used += change;
}

static uint64_t store_hash(const struct sdk_store *store, uint64_t high, uint64_t low)
{
    return hash_mix(hash_mix(store->traces.seed ^ high) ^ low);
}

/* NULL: the store has no span of this trace. */
static struct stored_trace *store_trace(const struct sdk_store *store, uint64_t high, uint64_t low)
{
    struct stored_trace *trace;

    table_find(trace, &store->traces, store_hash(store, high, low), in_table,
               trace->id_high == high && trace->id == low);
    return trace;
}

/* Returns the trace, which may be new and empty. NULL: out of memory. */
static struct stored_trace *store_use_trace(struct sdk_store *store, uint64_t high, uint64_t low)
{
    struct stored_trace *trace = store->trace;

    if (trace && trace->id_high == high && trace->id == low)
        return trace;
    trace = store_trace(store, high, low);
    if (!trace) {
        trace = malloc(sizeof(*trace));
        if (!trace)
            return NULL;
        trace->id_high = high;
        trace->id = low;
        trace->spans = 0;
        trace->newest = NULL;
        table_add(&store->traces, &trace->in_table, store_hash(store, high, low));
        store_count(store, sizeof(*trace), 1);
    }
    store->trace = trace;
    return trace;
}

/* Frees the trace if no span is left. */
static void store_release_trace(struct sdk_store *store, struct stored_trace *trace)
{
    if (trace->spans)
        return;
    if (store->trace == trace)
        store->trace = NULL;
    table_remove(&store->traces, &trace->in_table);
    store_count(store, sizeof(*trace), -1);
    free(trace);
}

/* ---- resources and scopes -------------------------------------------------------------------- */

/* Compares numbers before bytes, because a request may have 300,000 spans of one resource. */
static bool store_is_same(const struct stored_origin *stored, uint64_t *known, uint64_t number,
                          struct text message, struct text schema)
{
    if ((!number || *known != number) &&
        !(text_equal(stored->message, message) && text_equal(stored->schema, schema)))
        return false;
    *known = number;
    return true;
}

/* Returns an origin with one use. NULL: out of memory. */
static struct stored_origin *origin_new(struct sdk_store *store, struct stored_origin *resource,
                                        struct text message, struct text schema)
{
    const uint64_t bytes = sizeof(struct stored_origin) + message.length + schema.length;
    struct stored_origin *origin = malloc(bytes);

    if (!origin)
        return NULL;
    *origin = (struct stored_origin){
        .resource = resource,
        .number = ++store->memory->origins,
        .uses = 1,
        .message = {origin->bytes, message.length},
        .schema = {origin->bytes + message.length, schema.length},
    };
    (void)text_copy(text_copy(origin->bytes, message), schema);
    store_count(store, bytes, 1);
    return origin;
}

/* Ends a use. NULL is allowed. */
static void origin_release(struct sdk_store *store, struct stored_origin *origin)
{
    struct stored_origin *resource;

    if (!origin || --origin->uses)
        return;
    if (store->scope == origin)
        store->scope = NULL;
    resource = origin->resource;
    store_count(store, sizeof(*origin) + origin->message.length + origin->schema.length, -1);
    free(origin);
    origin_release(store, resource);
}

/* Returns the scope for one more span: the last one if it is the same. NULL: out of memory. */
static struct stored_origin *store_use_scope(struct sdk_store *store,
                                             const struct otlp_origin *origin)
{
    struct stored_origin *scope = store->scope, *resource = scope ? scope->resource : NULL;

    if (!resource || !store_is_same(resource, &store->resource_number, origin->number,
                                    origin->resource, origin->schema)) {
        resource = origin_new(store, NULL, origin->resource, origin->schema);
        if (resource && origin->service.length)
            resource->service =
                (struct text){resource->bytes + (origin->service.data - origin->resource.data),
                              origin->service.length};
    } else if (store_is_same(scope, &store->scope_number, origin->scope_number, origin->scope,
                             origin->scope_schema)) {
        scope->uses++;
        return scope;
    } else {
        resource->uses++;
    }
    scope = resource ? origin_new(store, resource, origin->scope, origin->scope_schema) : NULL;
    if (!scope)
        origin_release(store, resource);
    store->scope = scope;
    store->resource_number = origin->number;
    store->scope_number = origin->scope_number;
    return scope;
}

/* ---- overwriting ----------------------------------------------------------------------------- */

static int64_t store_later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void store_note_lost(struct sdk_held *held, int64_t came_ns, int64_t ended_ns)
{
    held->came_ns = store_later(held->came_ns, came_ns);
    held->ended_ns = store_later(held->ended_ns, ended_ns);
}

/* Removes the oldest span of the store, which is the oldest of its trace, too. */
static void store_forget(struct sdk_store *store)
{
    struct stored_span *span = store->oldest;
    struct stored_trace *trace = span->trace;

    store->oldest = span->newer;
    trace->spans--;
    store->held.spans--;
    store->held.overwritten++;
    store_note_lost(&store->held, span->came_ns, span->ended_ns);
    store_count(store, sizeof(*span) + span->length, -1);
    store_release_trace(store, trace);
    origin_release(store, span->scope);
    free(span);
}

/* Drops the oldest span of the largest store until `bytes` are free. Returns false if this store is
 * empty, and no other store has more than `bytes`. */
static bool store_make_room(struct sdk_store *store, uint64_t bytes)
{
    const struct sdk_memory *memory = store->memory;

    while (memory->used + bytes > memory->bytes) {
        uint64_t most = store->held.bytes + bytes;
        struct sdk_store *largest = store, *other;

        cds_list_for_each_entry(other, &memory->stores, in_list)
        {
            if (other->held.bytes > most) {
                largest = other;
                most = other->held.bytes;
            }
        }
        if (!largest->oldest)
            return false;
        store_forget(largest);
    }
    return true;
}

/* ---- adding ---------------------------------------------------------------------------------- */

void sdk_store_begin(struct sdk_store *store)
{
    store->resource_number = store->scope_number = 0;
}

enum sdk_added sdk_store_add(struct sdk_store *store, const struct otlp_origin *origin,
                             const struct otlp_span *span, int64_t now_ns)
{
    struct sdk_memory *memory = store->memory;
    const uint64_t bytes = sizeof(struct stored_span) + span->raw.length;
    const uint64_t part = memory->bytes / 16;
    const uint64_t shared = origin->resource.length + origin->schema.length + origin->scope.length +
                            origin->scope_schema.length;
    struct stored_origin *scope;
    struct stored_trace *trace;
    struct stored_span *stored;

    if (shared > (part < SDK_ORIGIN_MAX ? part : SDK_ORIGIN_MAX) || bytes > 2 * part ||
        !store_make_room(store, MALLOC_BYTES(bytes) + MALLOC_BYTES(sizeof(*trace)) + shared +
                                    2 * MALLOC_BYTES(sizeof(struct stored_origin))))
        return SDK_TOO_LARGE;
    stored = malloc(bytes);
    trace = stored ? store_use_trace(store, span->trace_id_high, span->trace_id) : NULL;
    scope = trace ? store_use_scope(store, origin) : NULL;
    if (!scope) {
        if (trace)
            store_release_trace(store, trace);
        free(stored);
        return SDK_NO_MEMORY;
    }
    *stored = (struct stored_span){
        .older = trace->newest,
        .trace = trace,
        .scope = scope,
        .number = ++memory->came,
        .came_ns = now_ns - memory->offset_ns,
        /* an end in the future shows a wrong clock: the time of arrival counts instead */
        .ended_ns = (span->end_ns < now_ns ? span->end_ns : now_ns) - memory->offset_ns,
        .length = (uint32_t)span->raw.length,
    };
    (void)text_copy(stored->raw, span->raw);
    store_count(store, bytes, 1);
    store->held.spans++;
    *(store->oldest ? &store->newest->newer : &store->oldest) = stored;
    store->newest = trace->newest = stored;
    trace->spans++;
    return SDK_ADDED;
}

/* ---- giving ---------------------------------------------------------------------------------- */

/* Gives the span if it was open at any time from from_ns until until_ns. */
static void store_give(const struct stored_span *stored, int64_t from_ns, int64_t until_ns,
                       otlp_span_fn *call, void *context)
{
    const struct stored_origin *scope = stored->scope, *resource = scope->resource;
    const struct otlp_origin origin = {
        .resource = resource->message,
        .scope = scope->message,
        .service = resource->service,
        .schema = resource->schema,
        .scope_schema = scope->schema,
        .number = resource->number,
        .scope_number = scope->number,
    };
    struct otlp_span span;

    if (otlp_read_span((struct text){stored->raw, stored->length}, &span) &&
        span.end_ns >= from_ns && span.start_ns <= until_ns)
        call(context, &origin, &span);
}

/* Returns the number of the newest span of the trace. 0: the store has none. */
static uint64_t store_take(const struct sdk_store *store, struct sdk_wanted *wanted,
                           otlp_span_fn *call, void *context)
{
    const struct stored_trace *trace = store_trace(store, wanted->trace_id_high, wanted->trace_id);
    const struct stored_span *span = NULL;

    if (!trace)
        return 0;
    wanted->ended_ns = store_later(wanted->ended_ns, store->held.ended_ns);
    for (uint64_t i = 0; i < trace->spans; i++) {
        span = i ? span->older : trace->newest;
        if (span->number <= wanted->after)
            break;
        if (call)
            store_give(span, INT64_MIN, INT64_MAX, call, context);
        wanted->spans++;
    }
    return trace->newest->number;
}

void sdk_memory_take(const struct sdk_memory *memory, struct sdk_wanted *wanted, otlp_span_fn *call,
                     void *context)
{
    const struct sdk_store *store;
    uint64_t newest = wanted->after;

    wanted->spans = 0;
    wanted->ended_ns = memory->gone.ended_ns;
    cds_list_for_each_entry(store, &memory->stores, in_list)
    {
        const uint64_t number = store_take(store, wanted, call, context);

        newest = number > newest ? number : newest;
    }
    wanted->after = newest;
}

void sdk_memory_copy(const struct sdk_memory *memory, int64_t from_ns, int64_t until_ns,
                     otlp_span_fn *call, void *context)
{
    const struct sdk_store *store;
    const struct stored_span *span;

    cds_list_for_each_entry(store, &memory->stores, in_list)
    {
        for (span = store->oldest; span; span = span->newer)
            store_give(span, from_ns, until_ns, call, context);
    }
}

struct sdk_held sdk_store_held(const struct sdk_store *store)
{
    struct sdk_held held = store->held;

    held.traces = store->traces.count;
    return held;
}

struct sdk_held sdk_memory_held(const struct sdk_memory *memory)
{
    struct sdk_held held = memory->gone;
    const struct sdk_store *store;

    held.bytes = memory->used;
    cds_list_for_each_entry(store, &memory->stores, in_list)
    {
        held.spans += store->held.spans;
        held.traces += store->traces.count;
        held.overwritten += store->held.overwritten;
        store_note_lost(&held, store->held.came_ns, store->held.ended_ns);
    }
    return held;
}

/* ---- memory and stores ----------------------------------------------------------------------- */

void sdk_memory_begin(struct sdk_memory *memory, uint64_t bytes)
{
    *memory = (struct sdk_memory){.bytes = bytes < SDK_MEMORY_MIN ? SDK_MEMORY_MIN : bytes};
    CDS_INIT_LIST_HEAD(&memory->stores);
}

struct sdk_store *sdk_store_new(struct sdk_memory *memory)
{
    struct sdk_store *store = calloc(1, sizeof(*store));

    if (!store || !table_init(&store->traces)) {
        free(store);
        return NULL;
    }
    store->memory = memory;
    cds_list_add_tail(&store->in_list, &memory->stores);
    return store;
}

void sdk_store_free(struct sdk_store *store)
{
    if (!store)
        return;
    while (store->oldest)
        store_forget(store);
    store->memory->gone.overwritten += store->held.overwritten;
    store_note_lost(&store->memory->gone, store->held.came_ns, store->held.ended_ns);
    cds_list_del(&store->in_list);
    table_destroy(&store->traces, NULL);
    free(store);
}

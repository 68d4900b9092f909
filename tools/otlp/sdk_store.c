/*
 * The memory of spans: a ring of records.
 *
 * A position is the number of bytes that were written before a record, plus the size of the memory.
 * Positions only grow, so a position below the tail is that of an overwritten record.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sdk_store.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>
#include <sys/mman.h>

/* The usual size of a block after its resource, but at most a sixteenth of the memory. */
#define BLOCK_MAX (UINT64_C(64) << 10)
#define ROUND(n)  (((n) + 7) & ~(uint64_t)7)
#define PAGE      UINT64_C(4096)

enum record_kind { RECORD_FILL, RECORD_RESOURCE, RECORD_SCOPE, RECORD_SPAN };

/* The head of each record. The size is a multiple of 8. */
struct record {
    uint32_t size;
    uint32_t kind;
};

/* A resource, with which a block begins, or a scope. */
struct stored_origin {
    struct record record;
    uint32_t length, schema;      /* lengths of the message, and of the URL behind the message */
    uint32_t resource;            /* of a scope: its position minus the resource's position */
    uint32_t service_at, service; /* of a resource: index and length of service.name */
    int64_t came_ns, ended_ns;    /* of a resource: the latest times of the block's spans */
    char bytes[];
};

struct stored_span {
    struct record record;
    uint32_t length;
    uint32_t scope; /* the span's position minus the scope's position */
    uint64_t trace_id_high, trace_id;
    uint64_t number;                /* in the order in which spans came, from 1 */
    uint64_t before, before_number; /* position and number of the trace's span before; 0: none */
    int64_t start_ns, end_ns;
    struct table_link in_table; /* of the newest span of a trace; in other spans, `at` is NULL */
    char raw[];
};

struct sdk_store {
    struct sdk_memory *memory;
    struct cds_list_head in_list;
    char *bytes;
    uint64_t size;
    uint64_t head, tail;                    /* positions of the next and of the oldest record */
    uint64_t resource;                      /* the position of the open block; 0: none */
    uint64_t scope;                         /* the position of its last scope; 0: none */
    uint64_t resource_number, scope_number; /* their numbers in the request; 0: not known */
    struct table newest;
    struct sdk_held held;
};

/* ---- records --------------------------------------------------------------------------------- */

static void *store_at(const struct sdk_store *store, uint64_t position)
{
    return store->bytes + position % store->size;
}

static uint64_t store_hash(const struct sdk_store *store, uint64_t high, uint64_t low)
{
    return hash_mix(hash_mix(store->newest.seed ^ high) ^ low);
}

static struct stored_span *store_newest(const struct sdk_store *store, uint64_t high, uint64_t low,
                                        uint64_t hash)
{
    struct stored_span *span;

    table_find(span, &store->newest, hash, in_table,
               span->trace_id_high == high && span->trace_id == low);
    return span;
}

/* Returns the position of a held span. */
static uint64_t store_position(const struct sdk_store *store, const struct stored_span *span)
{
    const uint64_t offset = (uint64_t)((const char *)span - store->bytes);
    const uint64_t tail = store->tail % store->size;

    return store->tail + (offset + store->size - tail) % store->size;
}

/* ---- overwriting ----------------------------------------------------------------------------- */

static int64_t store_later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void store_forget_span(struct sdk_store *store, struct stored_span *span)
{
    if (span->in_table.at) {
        table_remove(&store->newest, &span->in_table);
        store->held.traces--;
    }
    store->held.spans--;
    store->held.overwritten++;
}

static void store_note_lost(struct sdk_held *held, int64_t came_ns, int64_t ended_ns)
{
    held->came_ns = store_later(held->came_ns, came_ns);
    held->ended_ns = store_later(held->ended_ns, ended_ns);
}

/* Returns the pages from this position to the tail to the kernel, so that other stores can use as
 * much memory. A single store keeps its pages. */
static void store_release(const struct sdk_store *store, uint64_t from)
{
    const uint64_t end = store->tail & ~(PAGE - 1);
    uint64_t at = from & ~(PAGE - 1);

    if (at + store->size < store->head) /* this page has newer records, too */
        at += PAGE;
    while (at < end && store->memory->stores.next != store->memory->stores.prev) {
        const uint64_t left = store->size - at % store->size;
        const uint64_t length = end - at < left ? end - at : left;

        (void)madvise(store_at(store, at), length, MADV_DONTNEED);
        at += length;
    }
}

static const struct record *store_oldest(const struct sdk_store *store)
{
    return store_at(store, store->tail);
}

/* Drops the records up to the next resource: a block, or only the filling record before one. */
static void store_forget_block(struct sdk_store *store)
{
    const uint64_t from = store->tail;

    do {
        struct record *record = store_at(store, store->tail);
        const struct stored_origin *resource = (const void *)record;

        if (record->kind == RECORD_SPAN)
            store_forget_span(store, (struct stored_span *)(void *)record);
        if (record->kind == RECORD_RESOURCE)
            store_note_lost(&store->held, resource->came_ns, resource->ended_ns);
        store->tail += record->size;
    } while (store->tail < store->head && store_oldest(store)->kind != RECORD_RESOURCE);
    if (store->resource < store->tail)
        store->resource = 0;
    store->memory->used -= store->tail - from;
    store_release(store, from);
}

/* Drops the oldest block of the largest store until `size` bytes are free. Returns false if this
 * store is empty, and no other store has more than `size` bytes. */
static bool store_make_room(struct sdk_store *store, uint64_t size)
{
    const struct sdk_memory *memory = store->memory;

    while (memory->used + size > memory->bytes) {
        uint64_t most = store->head - store->tail + size;
        struct sdk_store *largest = store, *other;

        cds_list_for_each_entry(other, &memory->stores, in_list)
        {
            if (other->head - other->tail > most) {
                largest = other;
                most = other->head - other->tail;
            }
        }
        if (largest->head == largest->tail)
            return false;
        store_forget_block(largest);
    }
    return true;
}

/* Returns the next record, which is contiguous. store_make_room() must have made room. */
static void *store_reserve(struct sdk_store *store, uint64_t size, enum record_kind kind)
{
    const uint64_t left = store->size - store->head % store->size;
    struct record *record;

    if (left < size)
        (void)store_reserve(store, left, RECORD_FILL);
    record = store_at(store, store->head);
    *record = (struct record){.size = (uint32_t)size, .kind = kind};
    store->head += size;
    store->memory->used += size;
    return record;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static struct text store_message(const struct stored_origin *stored)
{
    return (struct text){stored->bytes, stored->length};
}

static struct text store_schema(const struct stored_origin *stored)
{
    return (struct text){stored->bytes + stored->length, stored->schema};
}

/* Returns whether message and schema are the stored ones. Compares numbers before bytes, because a
 * request may have 300,000 spans of one resource. */
static bool store_is_same(const struct stored_origin *stored, uint64_t *known, uint64_t number,
                          struct text message, struct text schema)
{
    if ((!number || *known != number) &&
        !(text_equal(store_message(stored), message) && text_equal(store_schema(stored), schema)))
        return false;
    *known = number;
    return true;
}

static uint64_t store_part(const struct sdk_store *store, uint64_t most)
{
    return store->size / 16 < most ? store->size / 16 : most;
}

/* Returns whether the span may go into the open block. The room for a block's spans is at least the
 * size of the resource, so that resources use at most half of the memory. */
static bool store_is_in_block(struct sdk_store *store, const struct otlp_origin *origin)
{
    const struct stored_origin *stored = store->resource ? store_at(store, store->resource) : NULL;
    uint64_t most = store_part(store, BLOCK_MAX);

    if (!stored)
        return false;
    if (most < stored->record.size)
        most = stored->record.size;
    return store->head - store->resource - stored->record.size < most &&
           store_is_same(stored, &store->resource_number, origin->number, origin->resource,
                         origin->schema);
}

static struct stored_origin *store_put(struct sdk_store *store, enum record_kind kind,
                                       struct text message, struct text schema)
{
    struct stored_origin *stored =
        store_reserve(store, ROUND(sizeof(*stored) + message.length + schema.length), kind);

    stored->length = (uint32_t)message.length;
    stored->schema = (uint32_t)schema.length;
    stored->came_ns = stored->ended_ns = 0;
    (void)text_copy(text_copy(stored->bytes, message), schema);
    return stored;
}

static void store_begin_block(struct sdk_store *store, const struct otlp_origin *origin)
{
    struct stored_origin *stored =
        store_put(store, RECORD_RESOURCE, origin->resource, origin->schema);

    store->resource = store->head - stored->record.size;
    store->resource_number = origin->number;
    store->scope = 0;
    stored->service = (uint32_t)origin->service.length;
    stored->service_at =
        stored->service ? (uint32_t)(origin->service.data - origin->resource.data) : 0;
}

static void store_set_scope(struct sdk_store *store, const struct otlp_origin *origin)
{
    struct stored_origin *stored = store->scope ? store_at(store, store->scope) : NULL;

    if (stored && store_is_same(stored, &store->scope_number, origin->scope_number, origin->scope,
                                origin->scope_schema))
        return;
    stored = store_put(store, RECORD_SCOPE, origin->scope, origin->scope_schema);
    store->scope = store->head - stored->record.size;
    store->scope_number = origin->scope_number;
    stored->resource = (uint32_t)(store->scope - store->resource);
}

void sdk_store_begin(struct sdk_store *store)
{
    store->resource_number = store->scope_number = 0;
}

static void store_link(struct sdk_store *store, struct stored_span *span)
{
    const uint64_t hash = store_hash(store, span->trace_id_high, span->trace_id);
    struct stored_span *before = store_newest(store, span->trace_id_high, span->trace_id, hash);

    span->before = span->before_number = 0;
    if (before) {
        span->before = store_position(store, before);
        span->before_number = before->number;
        table_replace(&span->in_table, &before->in_table);
        before->in_table.at = NULL;
    } else {
        store->held.traces++;
        table_add(&store->newest, &span->in_table, hash);
    }
}

bool sdk_store_add(struct sdk_store *store, const struct otlp_origin *origin,
                   const struct otlp_span *span, int64_t now_ns)
{
    const uint64_t size = ROUND(sizeof(struct stored_span) + span->raw.length);
    const uint64_t shared = origin->resource.length + origin->schema.length + origin->scope.length +
                            origin->scope_schema.length;
    struct stored_origin *block;
    const uint64_t most = shared + size + 2 * sizeof(*block);
    struct stored_span *stored;

    /* twice: records are rounded, and one of them may not fit before the end of the memory */
    if (shared > store_part(store, SDK_ORIGIN_MAX) || size > store->size / 8 ||
        !store_make_room(store, 2 * ROUND(most)))
        return false;
    if (!store_is_in_block(store, origin))
        store_begin_block(store, origin);
    store_set_scope(store, origin);
    stored = store_reserve(store, size, RECORD_SPAN);
    stored->length = (uint32_t)span->raw.length;
    stored->scope = (uint32_t)(store->head - size - store->scope);
    stored->trace_id_high = span->trace_id_high;
    stored->trace_id = span->trace_id;
    stored->number = ++store->memory->came;
    stored->start_ns = span->start_ns;
    stored->end_ns = span->end_ns;
    (void)text_copy(stored->raw, span->raw);
    store_link(store, stored);
    /* an end in the future shows a wrong clock: the time of arrival counts instead */
    block = store_at(store, store->resource);
    block->came_ns = store_later(block->came_ns, now_ns);
    block->ended_ns = store_later(block->ended_ns, span->end_ns < now_ns ? span->end_ns : now_ns);
    store->held.spans++;
    return true;
}

/* ---- giving ---------------------------------------------------------------------------------- */

static void store_give(const struct sdk_store *store, const struct stored_span *stored,
                       uint64_t position, otlp_span_fn *call, void *context)
{
    const struct stored_origin *scope = store_at(store, position - stored->scope);
    const uint64_t block = position - stored->scope - scope->resource;
    const struct stored_origin *resource = store_at(store, block);
    const struct otlp_origin origin = {
        .resource = store_message(resource),
        .scope = store_message(scope),
        .schema = store_schema(resource),
        .scope_schema = store_schema(scope),
        .service = {resource->bytes + resource->service_at, resource->service},
        /* positions are unique only within a store, so the store's seed is mixed in */
        .number = hash_mix(store->newest.seed ^ block),
        .scope_number = hash_mix(store->newest.seed ^ (position - stored->scope)),
    };
    struct otlp_span span;

    if (otlp_read_span((struct text){stored->raw, stored->length}, &span))
        call(context, &origin, &span);
}

/* Returns the number of the newest span of the trace. 0: the store has none. */
static uint64_t store_take(const struct sdk_store *store, struct sdk_wanted *wanted,
                           otlp_span_fn *call, void *context)
{
    const uint64_t high = wanted->trace_id_high, low = wanted->trace_id;
    const struct stored_span *span = store_newest(store, high, low, store_hash(store, high, low));
    uint64_t position = span ? store_position(store, span) : 0;
    uint64_t number = span ? span->number : 0;
    const uint64_t newest = number;

    if (span)
        wanted->ended_ns = store_later(wanted->ended_ns, store->held.ended_ns);
    while (number > wanted->after && position >= store->tail) {
        span = store_at(store, position);
        store_give(store, span, position, call, context);
        wanted->spans++;
        position = span->before;
        number = span->before_number;
    }
    if (number > wanted->after)
        wanted->is_overwritten = true;
    return newest;
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

static void store_copy(const struct sdk_store *store, int64_t from_ns, int64_t until_ns,
                       otlp_span_fn *call, void *context)
{
    const struct stored_span *span;

    for (uint64_t position = store->tail; position < store->head; position += span->record.size) {
        span = store_at(store, position);
        if (span->record.kind == RECORD_SPAN && span->end_ns >= from_ns &&
            span->start_ns <= until_ns)
            store_give(store, span, position, call, context);
    }
}

void sdk_memory_copy(const struct sdk_memory *memory, int64_t from_ns, int64_t until_ns,
                     otlp_span_fn *call, void *context)
{
    const struct sdk_store *store;

    cds_list_for_each_entry(store, &memory->stores, in_list)
        store_copy(store, from_ns, until_ns, call, context);
}

struct sdk_held sdk_store_held(const struct sdk_store *store)
{
    struct sdk_held held = store->held;

    held.bytes = store->head - store->tail;
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
        held.traces += store->held.traces;
        held.overwritten += store->held.overwritten;
        store_note_lost(&held, store->held.came_ns, store->held.ended_ns);
    }
    return held;
}

/* ---- memory and stores ----------------------------------------------------------------------- */

void sdk_memory_begin(struct sdk_memory *memory, uint64_t bytes)
{
    *memory = (struct sdk_memory){.bytes = (bytes < SDK_MEMORY_MIN ? SDK_MEMORY_MIN : bytes) &
                                           ~(PAGE - 1)};
    CDS_INIT_LIST_HEAD(&memory->stores);
}

struct sdk_store *sdk_store_new(struct sdk_memory *memory)
{
    struct sdk_store *store = calloc(1, sizeof(*store));

    if (!store)
        return NULL;
    store->memory = memory;
    store->size = memory->bytes;
    store->head = store->tail = store->size; /* no position is 0 */
    store->bytes = mmap(NULL, store->size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (store->bytes != MAP_FAILED && table_init(&store->newest)) {
        /* a child of the service runs another program, so fork() need not copy these pages */
        (void)madvise(store->bytes, store->size, MADV_DONTFORK);
        cds_list_add_tail(&store->in_list, &memory->stores);
        return store;
    }
    if (store->bytes != MAP_FAILED)
        (void)munmap(store->bytes, store->size);
    free(store);
    return NULL;
}

void sdk_store_free(struct sdk_store *store)
{
    if (!store)
        return;
    while (store->tail < store->head)
        store_forget_block(store);
    store->memory->gone.overwritten += store->held.overwritten;
    store_note_lost(&store->memory->gone, store->held.came_ns, store->held.ended_ns);
    cds_list_del(&store->in_list);
    table_destroy(&store->newest, NULL);
    (void)munmap(store->bytes, store->size);
    free(store);
}

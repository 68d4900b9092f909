/*
 * The memory of spans: a ring of records.
 *
 * A position is the number of bytes that were ever written before a record. It never falls, so a
 * position below the tail's is that of a record that was overwritten.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sdk_store.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>
#include <sys/mman.h>

/* So much is overwritten at once beside the resource, or a sixteenth of the memory. With a resource
 * of a sixteenth before it, and a scope and a span behind it, the block that is open is never the
 * oldest. */
#define BLOCK_MAX (UINT64_C(64) << 10)
#define ROUND(n)  (((n) + 7) & ~(uint64_t)7)

enum record_kind { RECORD_FILL, RECORD_RESOURCE, RECORD_SCOPE, RECORD_SPAN };

/* How each record begins. Its size is a multiple of 8. */
struct record {
    uint32_t size;
    uint32_t kind;
};

/* A block begins with it. */
struct stored_resource {
    struct record record;
    uint32_t length, service_at, service;
    uint32_t schema; /* bytes behind those */
    char bytes[];
};

struct stored_scope {
    struct record record;
    uint32_t length;
    uint32_t schema;   /* bytes behind those */
    uint32_t resource; /* so far before the scope in positions */
    char bytes[];
};

struct stored_span {
    struct record record;
    uint32_t length;
    uint32_t scope; /* so far before the span in positions */
    uint64_t trace_id_high, trace_id;
    uint64_t before; /* the position of the one before of the trace; 0: none was held */
    int64_t came_ns, start_ns, end_ns;
    struct table_link in_table; /* of the newest one of its trace; else its at is NULL */
    char raw[];
};

struct sdk_store {
    char *bytes;
    uint64_t size;
    uint64_t head, tail;                    /* positions: the next record, and the oldest */
    uint64_t resource;                      /* the position of the block that is open; 0: none */
    uint64_t scope;                         /* and of its last scope */
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

/* Of a span that is held. */
static uint64_t store_position(const struct sdk_store *store, const struct stored_span *span)
{
    const uint64_t place = (uint64_t)((const char *)span - store->bytes);
    const uint64_t tail = store->tail % store->size;

    return store->tail + (place + store->size - tail) % store->size;
}

/* ---- the oldest is overwritten --------------------------------------------------------------- */

static int64_t store_later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void store_forget_span(struct sdk_store *store, struct stored_span *span)
{
    struct sdk_held *held = &store->held;
    /* an end in the future is a clock that is wrong: no later than the span came */
    const int64_t end_ns = span->end_ns < span->came_ns ? span->end_ns : span->came_ns;

    if (span->in_table.at) {
        table_remove(&store->newest, &span->in_table);
        held->traces--;
    }
    held->came_ns = store_later(held->came_ns, span->came_ns);
    held->ended_ns = store_later(held->ended_ns, end_ns);
    held->spans--;
    held->overwritten++;
}

static const struct record *store_oldest(const struct sdk_store *store)
{
    return store_at(store, store->tail);
}

/* Forgets a block, with the record that fills the end of the memory before or in the block. */
static void store_forget_block(struct sdk_store *store)
{
    do {
        struct record *record = store_at(store, store->tail);

        if (record->kind == RECORD_SPAN)
            store_forget_span(store, (struct stored_span *)(void *)record);
        store->tail += record->size;
    } while (store->tail < store->head && store_oldest(store)->kind != RECORD_RESOURCE);
}

static void store_make_room(struct sdk_store *store, uint64_t size)
{
    while (store->head + size - store->tail > store->size)
        store_forget_block(store);
}

/* The next record, which lies in one piece. */
static void *store_reserve(struct sdk_store *store, uint64_t size, enum record_kind kind)
{
    const uint64_t left = store->size - store->head % store->size;
    struct record *record;

    if (left < size)
        (void)store_reserve(store, left, RECORD_FILL);
    store_make_room(store, size);
    record = store_at(store, store->head);
    *record = (struct record){.size = (uint32_t)size, .kind = kind};
    store->head += size;
    return record;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static struct text store_resource(const struct stored_resource *stored)
{
    return (struct text){stored->bytes, stored->length};
}

static struct text store_schema(const struct stored_resource *stored)
{
    return (struct text){stored->bytes + stored->length, stored->schema};
}

static struct text store_scope(const struct stored_scope *stored)
{
    return (struct text){stored->bytes, stored->length};
}

static struct text store_scope_schema(const struct stored_scope *stored)
{
    return (struct text){stored->bytes + stored->length, stored->schema};
}

/* Bytes are compared only where numbers do not tell: a request may have 300,000 spans of one
 * resource. */
static bool store_is_known(uint64_t known, uint64_t number)
{
    return number && known == number;
}

static bool store_is_of_resource(struct sdk_store *store, const struct stored_resource *stored,
                                 const struct otlp_origin *origin)
{
    if (!store_is_known(store->resource_number, origin->number) &&
        !(text_equal(store_resource(stored), origin->resource) &&
          text_equal(store_schema(stored), origin->schema)))
        return false;
    store->resource_number = origin->number;
    return true;
}

static bool store_is_of_scope(struct sdk_store *store, const struct stored_scope *stored,
                              const struct otlp_origin *origin)
{
    if (!store_is_known(store->scope_number, origin->scope_number) &&
        !(text_equal(store_scope(stored), origin->scope) &&
          text_equal(store_scope_schema(stored), origin->scope_schema)))
        return false;
    store->scope_number = origin->scope_number;
    return true;
}

static uint64_t store_part(const struct sdk_store *store, uint64_t most)
{
    return store->size / 16 < most ? store->size / 16 : most;
}

/* Of a block what follows the resource is no shorter than that, if the resource does not change:
 * so storing resources costs no more than storing spans. */
static bool store_can_go_on(struct sdk_store *store, const struct otlp_origin *origin)
{
    const struct stored_resource *stored =
        store->resource ? store_at(store, store->resource) : NULL;
    uint64_t most = store_part(store, BLOCK_MAX);

    if (!stored)
        return false;
    if (most < stored->record.size)
        most = stored->record.size;
    return store->head - store->resource - stored->record.size < most &&
           store_is_of_resource(store, stored, origin);
}

static void store_begin_block(struct sdk_store *store, const struct otlp_origin *origin)
{
    struct stored_resource *stored = store_reserve(
        store, ROUND(sizeof(*stored) + origin->resource.length + origin->schema.length),
        RECORD_RESOURCE);

    store->resource = store->head - stored->record.size;
    store->resource_number = origin->number;
    store->scope = 0;
    stored->length = (uint32_t)origin->resource.length;
    stored->service = (uint32_t)origin->service.length;
    stored->service_at =
        stored->service ? (uint32_t)(origin->service.data - origin->resource.data) : 0;
    stored->schema = (uint32_t)origin->schema.length;
    (void)text_copy(text_copy(stored->bytes, origin->resource), origin->schema);
}

static void store_set_scope(struct sdk_store *store, const struct otlp_origin *origin)
{
    struct stored_scope *stored = store->scope ? store_at(store, store->scope) : NULL;

    if (stored && store_is_of_scope(store, stored, origin))
        return;
    stored = store_reserve(
        store, ROUND(sizeof(*stored) + origin->scope.length + origin->scope_schema.length),
        RECORD_SCOPE);
    store->scope = store->head - stored->record.size;
    store->scope_number = origin->scope_number;
    stored->length = (uint32_t)origin->scope.length;
    stored->resource = (uint32_t)(store->scope - store->resource);
    stored->schema = (uint32_t)origin->scope_schema.length;
    (void)text_copy(text_copy(stored->bytes, origin->scope), origin->scope_schema);
}

void sdk_store_begin(struct sdk_store *store)
{
    store->resource_number = store->scope_number = 0;
}

static void store_link(struct sdk_store *store, struct stored_span *span)
{
    const uint64_t hash = store_hash(store, span->trace_id_high, span->trace_id);
    struct stored_span *before = store_newest(store, span->trace_id_high, span->trace_id, hash);

    span->before = 0;
    if (before) {
        span->before = store_position(store, before);
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
    struct stored_span *stored;

    if (shared > store_part(store, SDK_ORIGIN_MAX) || size > store->size / 8)
        return false;
    if (!store_can_go_on(store, origin))
        store_begin_block(store, origin);
    store_set_scope(store, origin);
    stored = store_reserve(store, size, RECORD_SPAN);
    stored->length = (uint32_t)span->raw.length;
    stored->scope = (uint32_t)(store->head - size - store->scope);
    stored->trace_id_high = span->trace_id_high;
    stored->trace_id = span->trace_id;
    stored->came_ns = now_ns;
    stored->start_ns = span->start_ns;
    stored->end_ns = span->end_ns;
    (void)text_copy(stored->raw, span->raw);
    store_link(store, stored);
    store->held.spans++;
    return true;
}

/* ---- giving ---------------------------------------------------------------------------------- */

static void store_give(const struct sdk_store *store, const struct stored_span *stored,
                       uint64_t position, otlp_span_fn *call, void *context)
{
    const struct stored_scope *scope = store_at(store, position - stored->scope);
    const uint64_t block = position - stored->scope - scope->resource;
    const struct stored_resource *resource = store_at(store, block);
    const struct otlp_origin origin = {
        .resource = store_resource(resource),
        .scope = store_scope(scope),
        .schema = store_schema(resource),
        .scope_schema = store_scope_schema(scope),
        .service = {resource->bytes + resource->service_at, resource->service},
        .number = block,
        .scope_number = position - stored->scope,
    };
    struct otlp_span span;

    if (otlp_read_span((struct text){stored->raw, stored->length}, &span))
        call(context, &origin, &span);
}

void sdk_store_take(const struct sdk_store *store, struct sdk_wanted *wanted, otlp_span_fn *call,
                    void *context)
{
    const uint64_t high = wanted->trace_id_high, low = wanted->trace_id;
    const struct stored_span *span = store_newest(store, high, low, store_hash(store, high, low));
    uint64_t position = span ? store_position(store, span) : 0;
    const uint64_t newest = position;

    wanted->spans = 0;
    while (position > wanted->after && position >= store->tail) {
        span = store_at(store, position);
        store_give(store, span, position, call, context);
        wanted->spans++;
        position = span->before;
    }
    if (position > wanted->after)
        wanted->is_overwritten = true;
    if (newest)
        wanted->after = newest;
}

void sdk_store_copy(const struct sdk_store *store, int64_t from_ns, int64_t until_ns,
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

struct sdk_held sdk_store_held(const struct sdk_store *store)
{
    struct sdk_held held = store->held;

    held.bytes = store->head - store->tail;
    return held;
}

/* ---- the store ------------------------------------------------------------------------------- */

struct sdk_store *sdk_store_new(uint64_t bytes)
{
    struct sdk_store *store = calloc(1, sizeof(*store));

    if (!store)
        return NULL;
    store->size = (bytes < SDK_STORE_MIN ? SDK_STORE_MIN : bytes) & ~UINT64_C(4095);
    store->head = store->tail = store->size; /* no position is 0 */
    store->bytes = mmap(NULL, store->size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (store->bytes != MAP_FAILED && table_init(&store->newest)) {
        /* a child of the service, which runs another program, is not to cost a copy of its pages */
        (void)madvise(store->bytes, store->size, MADV_DONTFORK);
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
    table_destroy(&store->newest, NULL);
    (void)munmap(store->bytes, store->size);
    free(store);
}

/*
 * Links a trace into a tree.
 *
 * A trace can be incomplete or nonsense: a parent may be missing, an id may occur twice, two spans
 * may be parents of each other. Even so, every span is in the tree exactly once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "model.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <stdlib.h>

/* ---- traces ---------------------------------------------------------------------------------- */

#define MODEL_FIRST_SPANS 64U
#define SORTED_RUN        16U

/* The spans with one id that are compared. An RPC has two. */
#define SAME_ID_MAX 8

struct trace_span trace_span_of(const struct span *span, struct names *names)
{
    int64_t duration_ns;

    if (__builtin_sub_overflow(span->end_ns, span->start_ns, &duration_ns))
        duration_ns = INT64_MAX; /* a trace may have any times */
    return (struct trace_span){
        .id = span->id,
        .parent_id = span->parent_id,
        .start_ns = span->start_ns,
        .duration_ns = duration_ns,
        .service = names_id(names, span->endpoint->service),
        .name = names_id(names, span_name(span)),
        .remote_service = span->remote ? names_id(names, span->remote->service) : NAMES_NONE,
        .kind = (uint8_t)span->kind,
        .is_error = span_find_tag(span, text_of("error")) != NULL,
        .is_shared = span->shared,
    };
}

void trace_model_destroy(struct trace_model *model)
{
    free(model->spans);
    free(model->nodes);
    free(model->table);
    *model = (struct trace_model){.count = 0};
}

void trace_model_clear(struct trace_model *model)
{
    model->count = 0;
}

/* ---- adding */

static bool model_grow(struct trace_model *model)
{
    const uint32_t capacity = model->capacity ? model->capacity * 2 : MODEL_FIRST_SPANS;
    struct trace_span *spans;
    struct trace_node *nodes;

    if (capacity > TRACE_NONE / 4)
        return false;
    spans = reallocarray(model->spans, capacity, sizeof(*spans));
    if (!spans)
        return false;
    model->spans = spans;
    nodes = reallocarray(model->nodes, capacity, sizeof(*nodes));
    if (!nodes)
        return false;
    model->nodes = nodes;
    model->capacity = capacity;
    return true;
}

bool trace_model_add(struct trace_model *model, const struct trace_span *span)
{
    struct trace_span *added;

    if (model->count == model->capacity && !model_grow(model))
        return false;
    added = &model->spans[model->count++];
    *added = *span;
    if (added->start_ns < 0 || added->start_ns == INT64_MAX)
        added->start_ns = 0;
    if (added->duration_ns < 0 || added->duration_ns > INT64_MAX - 1 - added->start_ns)
        added->duration_ns = 0;
    if (added->parent_id == added->id && !added->is_shared)
        added->parent_id = 0;
    return true;
}

/* ---- in order of time */

static bool is_before(const struct trace_span *a, const struct trace_span *b)
{
    /* the subtraction sorts a missing start (0) last */
    return (uint64_t)a->start_ns - 1 < (uint64_t)b->start_ns - 1;
}

/* Insertion sort, for few or nearly sorted spans. */
static void sort_run(struct trace_span *spans, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct trace_span moved;
        uint32_t at = i;

        if (!is_before(&spans[i], &spans[i - 1]))
            continue;
        moved = spans[i];
        do {
            spans[at] = spans[at - 1];
            at--;
        } while (at > 0 && is_before(&moved, &spans[at - 1]));
        spans[at] = moved;
    }
}

/* Merges two sorted runs. The first one ends at middle. */
static void merge_runs(struct trace_span *to, const struct trace_span *from, uint32_t middle,
                       uint32_t end)
{
    uint32_t left = 0, right = middle;

    for (uint32_t i = 0; i < end; i++) {
        if (left < middle && (right == end || !is_before(&from[right], &from[left])))
            to[i] = from[left++];
        else
            to[i] = from[right++];
    }
}

static bool sort_many(struct trace_model *model)
{
    const uint32_t count = model->count;
    struct trace_span *from = model->spans;
    struct trace_span *to = reallocarray(NULL, model->capacity, sizeof(*to));

    if (!to)
        return false;
    for (uint32_t i = 0; i < count; i += SORTED_RUN)
        sort_run(&from[i], count - i < SORTED_RUN ? count - i : SORTED_RUN);
    for (uint32_t run = SORTED_RUN; run < count; run *= 2) {
        struct trace_span *const merged = to;

        for (uint32_t i = 0; i < count; i += 2 * run) {
            const uint32_t left = count - i;

            merge_runs(&to[i], &from[i], left < run ? left : run, left < 2 * run ? left : 2 * run);
        }
        to = from;
        from = merged;
    }
    model->spans = from;
    free(to);
    return true;
}

static bool sort_spans(struct trace_model *model)
{
    uint32_t i = 1;

    if (model->count <= SORTED_RUN) {
        sort_run(model->spans, model->count);
        return true;
    }
    while (i < model->count && !is_before(&model->spans[i], &model->spans[i - 1]))
        i++;
    return i == model->count || sort_many(model);
}

/* ---- spans by their ids */

/*
 * Until the tree is made, a node's `next` is the next span with the same id, by time. A slot of the
 * table has the index of the first such span plus 1. The table uses open addressing and is half
 * full at most. The hash is the upper half of a product with a random number.
 */
static uint32_t *model_slot_of(const struct trace_model *model, uint64_t id)
{
    const uint32_t mask = model->table_size - 1;

    for (uint32_t i = (uint32_t)(id * model->seed >> 32) & mask;; i = (i + 1) & mask) {
        if (!model->table[i] || model->spans[model->table[i] - 1].id == id)
            return &model->table[i];
    }
}

static uint32_t model_first_of(const struct trace_model *model, uint64_t id)
{
    return *model_slot_of(model, id) - 1; /* TRACE_NONE if no span has the id */
}

static bool make_table(struct trace_model *model)
{
    uint32_t size = 2;

    while (size < 2 * model->count)
        size *= 2;
    if (size > model->table_room) {
        free(model->table);
        model->table_room = 0;
        model->table = reallocarray(NULL, 2 * (size_t)model->capacity, sizeof(*model->table));
        if (!model->table)
            return false;
        model->table_room = 2 * model->capacity;
        if (!model->seed)
            model->seed = hash_seed(model) | 1;
    }
    model->table_size = size;
    memset(model->table, 0, size * sizeof(*model->table));
    return true;
}

/* Marks a server's span as shared if a client's span has the same id, as Zipkin does: some servers
 * do not mark such spans. */
static void find_shared(struct trace_model *model, uint32_t first)
{
    bool has_client = false;
    uint32_t i = first;

    for (int left = SAME_ID_MAX; i != TRACE_NONE && left--; i = model->nodes[i].next)
        has_client |= model->spans[i].kind == SPAN_CLIENT && !model->spans[i].is_shared;
    for (i = has_client ? first : TRACE_NONE; i != TRACE_NONE; i = model->nodes[i].next)
        model->spans[i].is_shared |= model->spans[i].kind == SPAN_SERVER;
}

/* Goes from the last span to the first, so each list of equal ids is in order of time. */
static void fill_table(struct trace_model *model)
{
    bool has_alike = false;

    for (uint32_t i = model->count; i-- > 0;) {
        uint32_t *slot = model_slot_of(model, model->spans[i].id);

        model->nodes[i] = (struct trace_node){.next = *slot - 1};
        has_alike |= *slot != 0;
        *slot = i + 1;
    }
    for (uint32_t i = 0; has_alike && i < model->count; i++) {
        if (model->nodes[i].next != TRACE_NONE && model_first_of(model, model->spans[i].id) == i)
            find_shared(model, i);
    }
}

/* ---- parents */

/* Rates `other`, whose id the span names, as the parent of the span. 0: not the parent. */
static int fitness(const struct trace_span *span, const struct trace_span *other)
{
    if (other == span || (span->is_shared && other->is_shared))
        return 0;
    return 1 + !other->is_shared + (other->service == span->service ? 2 + 2 * other->is_shared : 0);
}

/*
 * Finds a span's parent. Client and server may share an id: the server's half is a child of the
 * client's half. A span that names this id as its parent is a child of the half of its own service.
 * If no half is of its service, the span is a child of the client's half.
 */
static uint32_t find_parent(const struct trace_model *model, const struct trace_span *span)
{
    uint32_t found = TRACE_NONE;
    int best = 0;
    uint32_t i;

    if (!span->is_shared && !span->parent_id)
        return TRACE_NONE;
    i = model_first_of(model, span->is_shared ? span->id : span->parent_id);
    for (int left = SAME_ID_MAX; i != TRACE_NONE && left--; i = model->nodes[i].next) {
        const int fits = fitness(span, &model->spans[i]);

        if (fits > best) {
            best = fits;
            found = i;
        }
    }
    if (found == TRACE_NONE && span->is_shared && span->parent_id && span->parent_id != span->id)
        found = model_first_of(model, span->parent_id);
    return found;
}

static void find_parents(struct trace_model *model)
{
    for (uint32_t i = 0; i < model->count; i++) {
        struct trace_node *node = &model->nodes[i];
        const struct trace_span *span = &model->spans[i];

        node->parent = find_parent(model, span);
        node->is_orphan = node->parent == TRACE_NONE && span->parent_id && !span->is_shared;
    }
}

/* Cuts each cycle of parents at its first span. Until the tree is made, a node's depth is the
 * number of the walk that visited the node. */
static void cut_cycles(struct trace_model *model)
{
    struct trace_node *nodes = model->nodes;

    for (uint32_t i = 0; i < model->count; i++) {
        const uint32_t walk = i + 1;
        uint32_t at = i;
        uint32_t first;

        while (at != TRACE_NONE && !nodes[at].depth) {
            nodes[at].depth = walk;
            at = nodes[at].parent;
        }
        if (at == TRACE_NONE || nodes[at].depth != walk)
            continue;
        first = at;
        for (uint32_t member = nodes[at].parent; member != at; member = nodes[member].parent)
            first = member < first ? member : first;
        nodes[first].parent = TRACE_NONE;
        nodes[first].is_orphan = true;
    }
}

/* ---- the tree */

/* Links a node before its siblings. */
static void link_node(struct trace_model *model, uint32_t i)
{
    struct trace_node *node = &model->nodes[i];
    uint32_t *first =
        node->parent == TRACE_NONE ? &model->first_top : &model->nodes[node->parent].first_child;

    node->next = *first;
    *first = i;
}

/* Goes from the last span to the first, so siblings are in order of time. At the top, spans whose
 * parent is missing come last. */
static void make_tree(struct trace_model *model)
{
    for (uint32_t i = 0; i < model->count; i++)
        model->nodes[i].first_child = TRACE_NONE;
    for (uint32_t i = model->orphans ? model->count : 0; i-- > 0;) {
        if (model->nodes[i].is_orphan)
            link_node(model, i);
    }
    for (uint32_t i = model->count; i-- > 0;) {
        if (!model->nodes[i].is_orphan)
            link_node(model, i);
    }
}

uint32_t trace_model_next(const struct trace_model *model, uint32_t node)
{
    if (model->nodes[node].first_child != TRACE_NONE)
        return model->nodes[node].first_child;
    while (node != TRACE_NONE && model->nodes[node].next == TRACE_NONE)
        node = model->nodes[node].parent;
    return node == TRACE_NONE ? TRACE_NONE : model->nodes[node].next;
}

/* Children are sorted by start; children without a start are last. */
static int64_t self_time(const struct trace_model *model, uint32_t i)
{
    const struct trace_span *span = &model->spans[i];
    const int64_t end = span->start_ns + span->duration_ns;
    int64_t reached = span->start_ns; /* self time is added up to here */
    int64_t self = 0;

    if (span->start_ns == 0)
        return span->duration_ns;
    for (uint32_t child = model->nodes[i].first_child;
         child != TRACE_NONE && model->spans[child].start_ns; child = model->nodes[child].next) {
        const int64_t start = model->spans[child].start_ns;
        const int64_t from = start < end ? start : end;
        const int64_t to = start + model->spans[child].duration_ns;

        if (from > reached)
            self += from - reached;
        if (to > reached)
            reached = to < end ? to : end;
    }
    return self + (end - reached);
}

/* Visits parents before their children. */
static void measure_tree(struct trace_model *model)
{
    int64_t longest = 0;

    for (uint32_t i = model->first_top; i != TRACE_NONE; i = trace_model_next(model, i)) {
        struct trace_node *node = &model->nodes[i];

        node->depth = 0;
        node->ancestor_with_kind = TRACE_NONE;
        if (node->parent != TRACE_NONE) {
            node->depth = model->nodes[node->parent].depth + 1;
            node->ancestor_with_kind = model->spans[node->parent].kind == SPAN_LOCAL
                                           ? model->nodes[node->parent].ancestor_with_kind
                                           : node->parent;
        }
        node->self_ns = self_time(model, i);
        if (node->self_ns > longest) {
            longest = node->self_ns;
            model->longest_self = i;
        }
    }
}

static void measure(struct trace_model *model)
{
    model->roots = model->orphans = model->errors = 0;
    model->start_ns = model->end_ns = model->count ? model->spans[0].start_ns : 0;
    for (uint32_t i = 0; i < model->count; i++) {
        const struct trace_span *span = &model->spans[i];
        const struct trace_node *node = &model->nodes[i];

        model->errors += span->is_error;
        model->orphans += node->is_orphan;
        model->roots += node->parent == TRACE_NONE && !node->is_orphan;
        if (span->start_ns && span->start_ns + span->duration_ns > model->end_ns)
            model->end_ns = span->start_ns + span->duration_ns;
    }
}

bool trace_model_link(struct trace_model *model)
{
    model->first_top = model->longest_self = TRACE_NONE;
    if (model->count && (!sort_spans(model) || !make_table(model)))
        return false;
    fill_table(model);
    find_parents(model);
    cut_cycles(model);
    measure(model);
    make_tree(model);
    measure_tree(model);
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct name {
    struct table_link in_table;
    uint32_t id;
    size_t length;
    char text[]; /* ends in NUL */
};

struct names {
    uint32_t max;
    size_t max_bytes;
    size_t bytes;
    uint32_t count;
    size_t room;
    struct name **list; /* by id; the first two ids have no entry */
    struct table table;
};

struct names *names_new(uint32_t max, size_t max_bytes)
{
    struct names *names = calloc(1, sizeof(*names));

    if (!names)
        return NULL;
    *names = (struct names){.max = max, .max_bytes = max_bytes, .count = NAMES_OTHER + 1};
    if (table_init(&names->table))
        return names;
    free(names);
    return NULL;
}

void names_clear(struct names *names)
{
    for (; names->count > NAMES_OTHER + 1; names->count--) {
        struct name *name = names->list[names->count - 1];

        table_remove(&names->table, &name->in_table);
        free(name);
    }
    names->bytes = 0;
}

void names_free(struct names *names)
{
    if (!names)
        return;
    names_clear(names);
    table_destroy(&names->table, NULL);
    free(names->list);
    free(names);
}

static uint32_t names_add(struct names *names, uint64_t hash, struct text text)
{
    struct name *name;

    if (names->count >= names->max || text.length >= names->max_bytes - names->bytes ||
        !ARRAY_FITS(names->list, names->room, names->count))
        return NAMES_OTHER;
    name = malloc(sizeof(*name) + text.length + 1);
    if (!name)
        return NAMES_OTHER;
    name->id = names->count;
    name->length = text.length;
    *text_copy(name->text, text) = '\0';
    names->bytes += text.length + 1;
    names->list[names->count] = name;
    table_add(&names->table, &name->in_table, hash);
    return names->count++;
}

uint32_t names_id(struct names *names, struct text text)
{
    const struct name *name;
    uint64_t hash;

    if (text.length == 0)
        return NAMES_NONE;
    hash = hash_text(names->table.seed, text);
    table_find(name, &names->table, hash, in_table,
               name->length == text.length && memcmp(name->text, text.data, text.length) == 0);
    return name ? name->id : names_add(names, hash, text);
}

struct text names_text(const struct names *names, uint32_t id)
{
    if (id <= NAMES_OTHER || id >= names->count)
        return text_of("");
    return (struct text){names->list[id]->text, names->list[id]->length};
}

uint32_t names_count(const struct names *names)
{
    return names->count;
}

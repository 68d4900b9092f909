/*
 * Traces in the Trace Event Format, for Perfetto.
 *
 * A process is a service at an address. Its threads are lanes; a span is a slice of a lane. A span
 * is in its parent's lane if the parent is the innermost open span there and does not end earlier
 * than the span. If not, the span gets a free lane. So spans of a lane nest. Between processes, a
 * flow connects parent and child.
 *
 * Perfetto sorts by time and keeps the order of the file for equal times. The event "s" of a flow's
 * start must follow the parent's slice in the file, because a flow begins at the innermost slice.
 * The event "f" of its end must precede the child's slice, because a flow ends at the next slice.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct item {
    const struct json_span *span;
    int64_t start_us;
    int64_t end_us; /* rounded up, so that spans still nest */
    int64_t self_us;
    uint32_t parent; /* index of items; NONE: none, or not among the items */
    uint32_t depth;
    uint32_t process;
    uint32_t lane;
    uint32_t below;      /* the open item around this one in the lane */
    uint32_t first_flow; /* the first child in another process */
    uint32_t next_flow;  /* the next such child of the same parent */
};

struct lane {
    uint32_t process;
    uint32_t number; /* in its process, from 1 */
    uint32_t next;   /* the next lane of the process; NONE: the last */
    uint32_t top;    /* the innermost open item; NONE: none */
    int64_t end_us;  /* of the outermost open item */
};

struct perfetto {
    struct item *items;
    uint32_t count;
    uint32_t *order;       /* of items, by time */
    struct names *names;   /* of processes */
    uint32_t *first_lanes; /* of processes, by name id; NONE: none */
    struct lane *lanes;    /* at most as many as items */
    uint32_t lanes_count;
    bool has_events; /* an event was written */
};

/* ---- items */

static uint32_t process_of(struct perfetto *export, const struct json_span *span)
{
    const json_t *endpoint = json_object_get(span->json, "localEndpoint");
    const char *ipv4 = json_string_value(json_object_get(endpoint, "ipv4"));
    const char *ipv6 = json_string_value(json_object_get(endpoint, "ipv6"));
    const char *address = ipv4 ? ipv4 : ipv6 ? ipv6 : "";
    char *text;
    uint32_t id;

    if (asprintf(&text, "%s%s%s", span->service[0] ? span->service : "(no name)",
                 address[0] ? " " : "", address) < 0)
        return NAMES_OTHER;
    id = names_id(export->names, text_of(text));
    free(text);
    return id;
}

static void add_items(struct perfetto *export, const struct trace_model *model, size_t *left_out)
{
    const uint32_t base = export->count;

    /* spans without a time are last in the model, so indexes of the others do not change */
    for (uint32_t i = 0; i < model->count; i++) {
        const struct trace_span *span = &model->spans[i];
        const struct trace_node *node = &model->nodes[i];
        const int64_t end_ns = span->start_ns + span->duration_ns;

        if (!span->start_ns) {
            *left_out += 1;
            continue;
        }
        export->items[export->count++] = (struct item){
            .span = span->of,
            .start_us = span->start_ns / 1000,
            .end_us = end_ns / 1000 + (end_ns % 1000 > 0),
            .self_us = node->self_ns / 1000,
            .parent = node->parent != TRACE_NONE && model->spans[node->parent].start_ns
                          ? base + node->parent
                          : NONE,
            .depth = node->depth,
            .process = process_of(export, span->of),
            .below = NONE,
            .first_flow = NONE,
            .next_flow = NONE,
        };
    }
}

static int by_time(const void *a, const void *b, void *context)
{
    const struct item *items = context;
    const struct item *left = &items[*(const uint32_t *)a], *right = &items[*(const uint32_t *)b];

    if (left->start_us != right->start_us)
        return left->start_us < right->start_us ? -1 : 1;
    if (left->depth != right->depth)
        return left->depth < right->depth ? -1 : 1;
    return (left > right) - (left < right);
}

/* Links each parent to its children in other processes. Leaves out children that begin before their
 * parents: a clock is wrong. */
static void link_flows(struct perfetto *export)
{
    for (uint32_t i = export->count; i-- > 0;) {
        struct item *item = &export->items[i];
        struct item *parent = item->parent == NONE ? NULL : &export->items[item->parent];

        if (!parent || parent->process == item->process || item->start_us < parent->start_us)
            continue;
        item->next_flow = parent->first_flow;
        parent->first_flow = i;
    }
}

/* ---- lanes */

/* Returns whether the item fits into its parent's lane. Ends the items there that are over. */
static bool fits_parent(const struct perfetto *export, const struct item *item)
{
    const struct item *parent = item->parent == NONE ? NULL : &export->items[item->parent];
    struct lane *lane;

    if (!parent || parent->process != item->process || item->start_us < parent->start_us ||
        item->end_us > parent->end_us)
        return false;
    lane = &export->lanes[parent->lane];
    while (lane->top != NONE && export->items[lane->top].end_us <= item->start_us)
        lane->top = export->items[lane->top].below;
    return lane->top == item->parent;
}

/* Returns the first free lane of the process, a new one if needed. */
static uint32_t free_lane(struct perfetto *export, const struct item *item)
{
    uint32_t *lane = &export->first_lanes[item->process], number = 1;

    for (; *lane != NONE && export->lanes[*lane].end_us > item->start_us; number++)
        lane = &export->lanes[*lane].next;
    if (*lane == NONE) {
        *lane = export->lanes_count++;
        export->lanes[*lane] = (struct lane){item->process, number, NONE, NONE, 0};
    }
    export->lanes[*lane].top = NONE;
    export->lanes[*lane].end_us = item->end_us;
    return *lane;
}

static void place_items(struct perfetto *export)
{
    for (uint32_t i = 0; i < export->count; i++) {
        struct item *item = &export->items[export->order[i]];

        item->lane =
            fits_parent(export, item) ? export->items[item->parent].lane : free_lane(export, item);
        item->below = export->lanes[item->lane].top;
        export->lanes[item->lane].top = export->order[i];
    }
}

/* ---- events */

/* Thread ids are unique over all processes. */
static json_int_t tid_of(const struct perfetto *export, uint32_t lane)
{
    return (json_int_t)names_count(export->names) + lane;
}

/* Writes and frees the event. Returns false when out of memory. */
static bool put_event(struct perfetto *export, json_t *event)
{
    bool is_done;

    if (!event)
        return false;
    fputs(export->has_events ? ",\n" : "\n", stdout);
    export->has_events = true;
    is_done = json_dumpf(event, stdout, JSON_COMPACT) == 0;
    json_decref(event);
    return is_done;
}

/* A pid is the id of the process's name, which is never 0. */
static bool put_names(struct perfetto *export)
{
    bool is_done = true;

    for (uint32_t i = NAMES_OTHER + 1; is_done && i < names_count(export->names); i++)
        is_done = put_event(export, json_pack("{s:s, s:s, s:I, s:{s:s}}", "ph", "M", "name",
                                              "process_name", "pid", (json_int_t)i, "args", "name",
                                              names_text(export->names, i).data));
    for (uint32_t i = 0; is_done && i < export->lanes_count; i++) {
        char name[32];

        snprintf(name, sizeof(name), "lane %" PRIu32, export->lanes[i].number);
        is_done =
            put_event(export, json_pack("{s:s, s:s, s:I, s:I, s:{s:s}}", "ph", "M", "name",
                                        "thread_name", "pid", (json_int_t) export->lanes[i].process,
                                        "tid", tid_of(export, i), "args", "name", name));
    }
    return is_done;
}

static json_t *event(const struct perfetto *export, const struct item *item, const char *phase,
                     const char *name, json_int_t time_us)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I}", "ph", phase, "name", name, "ts", time_us, "pid",
                     (json_int_t)item->process, "tid", tid_of(export, item->lane));
}

/* Writes a flow's start at the parent, or its end at the child. The flow's id is the child's index
 * plus 1. */
static bool put_flow(struct perfetto *export, const struct item *item, const char *phase,
                     uint32_t child)
{
    json_t *json = event(export, item, phase, "call", item->start_us);

    return json_object_set_new(json, "cat", json_string("call")) == 0 &&
           json_object_set_new(json, "id", json_integer((json_int_t)child + 1)) == 0 &&
           put_event(export, json);
}

static json_t *details(const struct item *item)
{
    const struct json_span *span = item->span;
    json_t *json = json_pack("{s:s, s:s, s:s*, s:s*, s:s*, s:O*}", "trace", span->trace_id, "span",
                             span->id, "parent", span->parent[0] ? span->parent : NULL, "kind",
                             span->kind[0] ? span->kind : NULL, "error", span->error, "tags",
                             json_object_get(span->json, "tags"));

    if (span->duration_ns)
        (void)json_object_set_new(json, "self_us", json_integer(item->self_us));
    return json;
}

static bool put_slice(struct perfetto *export, const struct item *item)
{
    const struct json_span *span = item->span;
    json_t *json =
        event(export, item, "X", span->name[0] ? span->name : "(no name)", item->start_us);

    return json_object_set_new(json, "dur", json_integer(item->end_us - item->start_us)) == 0 &&
           json_object_set_new(json, "cat", json_string(span->error ? "error" : "span")) == 0 &&
           json_object_set_new(json, "args", details(item)) == 0 && put_event(export, json);
}

static bool put_annotations(struct perfetto *export, const struct item *item)
{
    const json_t *annotations = json_object_get(item->span->json, "annotations");
    const json_t *annotation;
    size_t i;

    json_array_foreach(annotations, i, annotation)
    {
        const char *text = json_string_value(json_object_get(annotation, "value"));
        const json_int_t us = json_integer_value(json_object_get(annotation, "timestamp"));
        json_t *json;

        /* an annotation outside of the span's time would appear in another span */
        if (!text || us < item->start_us || us > item->end_us)
            continue;
        json = event(export, item, "i", text, us);
        if (json_object_set_new(json, "s", json_string("t")) != 0 || !put_event(export, json))
            return false;
    }
    return true;
}

static bool put_item(struct perfetto *export, uint32_t i)
{
    const struct item *item = &export->items[i];
    const struct item *parent = item->parent == NONE ? NULL : &export->items[item->parent];
    bool is_done = true;

    if (parent && parent->process != item->process && item->start_us >= parent->start_us)
        is_done = put_flow(export, item, "f", i);
    is_done = is_done && put_slice(export, item);
    for (uint32_t child = item->first_flow; is_done && child != NONE;
         child = export->items[child].next_flow)
        is_done = put_flow(export, item, "s", child);
    return is_done && put_annotations(export, item);
}

static bool put_all(struct perfetto *export, const char *source, size_t left_out)
{
    bool is_done;
    json_t *about =
        json_pack("{s:s, s:s, s:I}", "source", source, "writer", "blkin show " BLKIN_RELEASE,
                  "spans_without_start", (json_int_t)left_out);

    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", stdout);
    is_done = put_names(export);
    for (uint32_t i = 0; is_done && i < export->count; i++)
        is_done = put_item(export, export->order[i]);
    fputs("\n],\"otherData\":", stdout);
    is_done = is_done && about && json_dumpf(about, stdout, JSON_COMPACT) == 0;
    puts("}");
    json_decref(about);
    return is_done;
}

/* ---- the whole document */

static bool collect(struct perfetto *export, const struct trace *traces, size_t count,
                    size_t *left_out)
{
    struct names *names = names_new(UINT32_MAX, SIZE_MAX);
    struct trace_model model = {0};
    bool is_done = names != NULL;

    for (size_t i = 0; is_done && i < count; i++) {
        is_done = trace_link(&traces[i], names, &model);
        if (is_done)
            add_items(export, &model, left_out);
    }
    trace_model_destroy(&model);
    names_free(names);
    return is_done;
}

static bool arrange(struct perfetto *export)
{
    const size_t processes = names_count(export->names) + 1;

    export->first_lanes = calloc(processes, sizeof(*export->first_lanes));
    if (!export->first_lanes)
        return false;
    memset(export->first_lanes, 0xff, processes * sizeof(*export->first_lanes)); /* NONE */
    for (uint32_t i = 0; i < export->count; i++)
        export->order[i] = i;
    qsort_r(export->order, export->count, sizeof(*export->order), by_time, export->items);
    link_flows(export);
    place_items(export);
    return true;
}

bool perfetto(const struct trace *traces, size_t count, const char *source, size_t *left_out)
{
    size_t spans = 0;
    struct perfetto export = {.names = names_new(UINT32_MAX, SIZE_MAX)};
    bool is_done;

    *left_out = 0;
    for (size_t i = 0; i < count; i++)
        spans += traces[i].count;
    export.items = calloc(spans + 1, sizeof(*export.items));
    export.order = calloc(spans + 1, sizeof(*export.order));
    export.lanes = calloc(spans + 1, sizeof(*export.lanes));
    is_done = export.names && export.items && export.order && export.lanes && spans < NONE &&
              collect(&export, traces, count, left_out) && arrange(&export) &&
              put_all(&export, source, *left_out);
    free(export.items);
    free(export.order);
    free(export.lanes);
    free(export.first_lanes);
    names_free(export.names);
    return is_done;
}

/*
 * The original C API of zipkin_c.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "zipkin_c.h"

#include "loader.h"
#include "thread.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>

const char *const CLIENT_SEND = "cs";
const char *const CLIENT_RECV = "cr";
const char *const SERVER_SEND = "ss";
const char *const SERVER_RECV = "sr";
const char *const WIRE_SEND = "ws";
const char *const WIRE_RECV = "wr";
const char *const CLIENT_SEND_FRAGMENT = "csf";
const char *const CLIENT_RECV_FRAGMENT = "crf";
const char *const SERVER_SEND_FRAGMENT = "ssf";
const char *const SERVER_RECV_FRAGMENT = "srf";

int blkin_init(void)
{
    blkin_provider_load();
    return 0;
}

/* Seeding is left to functions of its own, so that the others save no registers for its sake. */
__attribute__((noinline, cold)) static void seed_and_init(struct blkin_trace_info *trace_info)
{
    blkin_thread_seed(&blkin_thread);
    blkin_init_trace_info(trace_info);
}

void blkin_init_trace_info(struct blkin_trace_info *trace_info)
{
    const int64_t id = (int64_t)blkin_id_try(&blkin_thread);

    if (__builtin_expect(id == 0, 0)) {
        seed_and_init(trace_info);
        return;
    }
    trace_info->trace_id = id;
    trace_info->span_id = id;
    trace_info->parent_span_id = 0;
}

int blkin_init_new_trace(struct blkin_trace *new_trace, const char *name,
                         const struct blkin_endpoint *endpoint)
{
    if (!new_trace)
        return -EINVAL;
    new_trace->name = name;
    blkin_init_trace_info(&new_trace->info);
    new_trace->endpoint = endpoint;
    return 0;
}

__attribute__((noinline, cold)) static int
seed_and_init_child(struct blkin_trace *child, const struct blkin_trace_info *info,
                    const struct blkin_endpoint *endpoint, const char *child_name)
{
    blkin_thread_seed(&blkin_thread);
    return blkin_init_child_info(child, info, endpoint, child_name);
}

static inline int init_child(struct blkin_trace *child, const struct blkin_trace_info *info,
                             const struct blkin_endpoint *endpoint, const char *child_name)
{
    int64_t id;

    if (!child || !info || !endpoint)
        return -EINVAL;
    id = (int64_t)blkin_id_try(&blkin_thread);
    if (__builtin_expect(id == 0, 0))
        return seed_and_init_child(child, info, endpoint, child_name);
    /* info may be child's own: a span that becomes its own child */
    child->info = (struct blkin_trace_info){
        .trace_id = info->trace_id,
        .span_id = id,
        .parent_span_id = info->span_id,
    };
    child->name = child_name;
    child->endpoint = endpoint;
    return 0;
}

int blkin_init_child_info(struct blkin_trace *child, const struct blkin_trace_info *info,
                          const struct blkin_endpoint *endpoint, const char *child_name)
{
    return init_child(child, info, endpoint, child_name);
}

int blkin_init_child(struct blkin_trace *child, const struct blkin_trace *parent,
                     const struct blkin_endpoint *endpoint, const char *child_name)
{
    if (!parent)
        return -EINVAL;
    return init_child(child, &parent->info, endpoint ? endpoint : parent->endpoint, child_name);
}

int blkin_init_endpoint(struct blkin_endpoint *endpoint, const char *ip, int16_t port,
                        const char *name)
{
    if (!endpoint)
        return -EINVAL;
    endpoint->ip = ip ? ip : "NaN";
    endpoint->port = port;
    endpoint->name = name;
    return 0;
}

int blkin_init_string_annotation(struct blkin_annotation *annotation, const char *key,
                                 const char *val, const struct blkin_endpoint *endpoint)
{
    if (!annotation || !key || !val)
        return -EINVAL;
    annotation->type = ANNOT_STRING;
    annotation->key = key;
    annotation->val_str = val;
    annotation->endpoint = endpoint;
    return 0;
}

int blkin_init_integer_annotation(struct blkin_annotation *annotation, const char *key, int64_t val,
                                  const struct blkin_endpoint *endpoint)
{
    if (!annotation || !key)
        return -EINVAL;
    annotation->type = ANNOT_INTEGER;
    annotation->key = key;
    annotation->val_int = val;
    annotation->endpoint = endpoint;
    return 0;
}

int blkin_init_timestamp_annotation(struct blkin_annotation *annotation, const char *event,
                                    const struct blkin_endpoint *endpoint)
{
    if (!annotation || !event)
        return -EINVAL;
    annotation->type = ANNOT_TIMESTAMP;
    annotation->key = NULL;
    annotation->val_str = event;
    annotation->endpoint = endpoint;
    return 0;
}

static int is_complete(const struct blkin_annotation *annotation)
{
    switch (annotation->type) {
    case ANNOT_STRING:
        return annotation->key && annotation->val_str;
    case ANNOT_INTEGER:
        return annotation->key != NULL;
    case ANNOT_TIMESTAMP:
        return annotation->val_str != NULL;
    }
    return 0;
}

int blkin_record(const struct blkin_trace *trace, const struct blkin_annotation *annotation)
{
    const struct blkin_endpoint *endpoint;
    const struct blkin_tracepoint *tracepoint;

    if (!trace || !annotation || !trace->name || !is_complete(annotation))
        return -EINVAL;
    endpoint = annotation->endpoint ? annotation->endpoint : trace->endpoint;
    if (!endpoint || !endpoint->ip || !endpoint->name)
        return -EINVAL;

    tracepoint = &blkin_provider()->zipkin[annotation->type];
    if (blkin_tracepoint_enabled(tracepoint) && trace->info.trace_id != 0)
        tracepoint->record(trace, endpoint, annotation);
    return 0;
}

int blkin_get_trace_info(const struct blkin_trace *trace, struct blkin_trace_info *info)
{
    if (!trace || !info)
        return -EINVAL;
    *info = trace->info;
    return 0;
}

int blkin_set_trace_info(struct blkin_trace *trace, const struct blkin_trace_info *info)
{
    if (!trace || !info)
        return -EINVAL;
    trace->info = *info;
    return 0;
}

int blkin_set_trace_properties(struct blkin_trace *trace, const struct blkin_trace_info *info,
                               const char *name, const struct blkin_endpoint *endpoint)
{
    if (!trace || !info || !name || !endpoint)
        return -EINVAL;
    trace->name = name;
    trace->info = *info;
    trace->endpoint = endpoint;
    return 0;
}

int blkin_pack_trace_info(const struct blkin_trace_info *info,
                          struct blkin_trace_info_packed *packed_info)
{
    if (!info || !packed_info)
        return -EINVAL;
    packed_info->trace_id = htobe64((uint64_t)info->trace_id);
    packed_info->span_id = htobe64((uint64_t)info->span_id);
    packed_info->parent_span_id = htobe64((uint64_t)info->parent_span_id);
    return 0;
}

int blkin_unpack_trace_info(const struct blkin_trace_info_packed *packed_info,
                            struct blkin_trace_info *info)
{
    if (!packed_info || !info)
        return -EINVAL;
    info->trace_id = (int64_t)be64toh(packed_info->trace_id);
    info->span_id = (int64_t)be64toh(packed_info->span_id);
    info->parent_span_id = (int64_t)be64toh(packed_info->parent_span_id);
    return 0;
}

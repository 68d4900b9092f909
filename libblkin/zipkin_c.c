/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#define BLKIN_HAS_PLAIN_ /* zipkin_c.h then defines its functions without state */
#include "zipkin_c.h"

#include "libblkin/base/clock.h"
#include "libblkin/base/provider.h"
#include "libblkin/base/thread.h"
#include "libblkin/process/process.h"

#include <stddef.h>

#define CONSTANT(name, text) const char *const name = text;
BLKIN_EACH_CONSTANT_(CONSTANT)

/* Separate functions do the seeding, so that the fast paths save no registers. */
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
    /* info may be &child->info: a span may become its own child */
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

static bool is_complete(const struct blkin_annotation *annotation)
{
    switch (annotation->type) {
    case ANNOT_STRING:
        return annotation->key && annotation->val_str;
    case ANNOT_INTEGER:
        return annotation->key != NULL;
    case ANNOT_TIMESTAMP:
        return annotation->val_str != NULL;
    }
    return false;
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

    tracepoint = blkin_original_tracepoint(annotation);
    if (!blkin_tracepoint_enabled(tracepoint) || trace->info.trace_id == 0)
        return 0;
    if (blkin_tracepoint_enabled(tracepoint) & BLKIN_LOOKS_FOR_RINGS) {
        (void)blkin_look_for_rings();
        tracepoint = blkin_original_tracepoint(annotation);
        if (!blkin_tracepoint_enabled(tracepoint))
            return 0;
    }
    tracepoint->record(trace, endpoint, annotation);
    return 0;
}

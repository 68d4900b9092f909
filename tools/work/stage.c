/* The stage: counts a closed trace, and keeps it if a rule matches.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stage.h"

#include "babeltrace-plugin/encode/encoder.h"

#include <fnmatch.h>

#define STAGE_NAMES_MAX 65536U
#define NAMES_BYTES_MAX (16U << 20)

/* Looks for a tag in the attributes of the span and of its resource. The resource has another key
 * for the host. */
static bool work_stage_has_tag(void *context, const struct trace_span *span, struct text key,
                               const char *glob)
{
    const struct held_span *held = span->of;
    char value[WORK_NAME_MAX];

    (void)context;
    if (!otlp_attribute_text((struct text){held->raw, held->raw_length}, OTLP_SPAN_ATTRIBUTE, key,
                             value, sizeof(value)) &&
        !otlp_attribute_text(held_origin(held)->resource, OTLP_RESOURCE_ATTRIBUTE,
                             text_is(key, RESOURCE_HOST_TAG) ? text_of("host.name") : key, value,
                             sizeof(value)))
        return false;
    return !glob || fnmatch(glob, value, 0) == 0;
}

/* Returns false when out of memory. */
static bool work_stage_keep_if_wanted(struct work_stage *stage, const struct held_trace *trace)
{
    const struct tail_trace tail = {
        .model = &stage->model,
        .trace_id_high = trace->high,
        .trace_id = trace->low,
        .has_tag = work_stage_has_tag,
    };

    return !stage->keeper || !tail_rules_fit(stage->rules, &tail, stage->statistics) ||
           keeper_add(stage->keeper, trace, &stage->counts);
}

static void work_stage_close_trace(void *context, const struct held_trace *trace)
{
    struct work_stage *stage = context;
    bool has_room = true;

    trace_model_clear(&stage->model);
    for (const struct held_span *span = trace->first; span; span = span->next)
        has_room = has_room && trace_model_add(&stage->model, &span->span);
    has_room = has_room && trace_model_link(&stage->model);
    if (has_room) {
        stage->counts.traces_incomplete += !trace_model_is_whole(&stage->model);
        has_room = work_stage_keep_if_wanted(stage, trace);
        has_room = statistics_add_trace(stage->statistics, &stage->model) && has_room;
    }
    stage->assembly.is_starved |= !has_room;
}

static void work_stage_count_late(void *context, const struct trace_span *span)
{
    struct work_stage *stage = context;

    stage->assembly.is_starved |= !statistics_add_span(stage->statistics, span);
}

bool work_stage_open(struct work_stage *stage, int64_t wait_ms)
{
    stage->names = names_new(STAGE_NAMES_MAX, NAMES_BYTES_MAX);
    stage->statistics = stage->names ? statistics_new(stage->names) : NULL;
    stage->assembly = (struct assembly){
        .wait_ms = wait_ms,
        .names = stage->names,
        .counts = &stage->counts,
        .close = work_stage_close_trace,
        .late = work_stage_count_late,
        .context = stage,
    };
    assembly_open(&stage->assembly);
    return stage->statistics != NULL;
}

void work_stage_close(struct work_stage *stage)
{
    keeper_free(stage->keeper);
    tail_rules_free(stage->rules);
    trace_model_destroy(&stage->model);
    statistics_free(stage->statistics);
    names_free(stage->names);
    assembly_close(&stage->assembly);
}

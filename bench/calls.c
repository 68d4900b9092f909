/*
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "calls.h"

#include "batch.h"

#include <blkin.h>

#include <stdio.h>
#include <string.h>

static struct blkin_context sampled = {
    .trace_id_high = 1,
    .trace_id = 2,
    .span_id = 3,
    .flags = BLKIN_CONTEXT_DECIDED | BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_REMOTE,
};
static struct blkin_context refused = {
    .trace_id_high = 1,
    .trace_id = 2,
    .span_id = 3,
    .flags = BLKIN_CONTEXT_DECIDED | BLKIN_CONTEXT_REMOTE,
};
/* Parents that are not recorded: one without a trace, and the ones above. */
static struct blkin_span parent, sampled_parent, refused_parent;

/* NAME, and the call. */
#define CALLS(_)                                                                                  \
    _(begin, blkin_span_begin(&span, "osd_op write", BLKIN_SERVER, NULL))                         \
    _(begin_child, blkin_span_begin(&span, "osd_op write", BLKIN_INTERNAL, &parent))              \
    _(begin_child_of_sampled, blkin_span_begin(&span, "osd_op", BLKIN_INTERNAL, &sampled_parent)) \
    _(begin_child_of_refused, blkin_span_begin(&span, "osd_op", BLKIN_INTERNAL, &refused_parent)) \
    _(begin_remote, blkin_span_begin_remote(&span, "osd_op", BLKIN_SERVER, &sampled))             \
    _(annotate, blkin_span_annotate(&span, "queued"))                                             \
    _(log, blkin_span_log(&span, BLKIN_ERR, "queued"))                                            \
    _(tag_string, blkin_span_tag_string(&span, "object", "rbd_data.4f2a.01"))                     \
    _(tag_int64, blkin_span_tag_int64(&span, "offset", i))                                        \
    _(tag_uint64, blkin_span_tag_uint64(&span, "offset", i))                                      \
    _(tag_double, blkin_span_tag_double(&span, "share", 0.5))                                     \
    _(tag_bool, blkin_span_tag_bool(&span, "is_cached", 1))                                       \
    _(error, blkin_span_error(&span, "EIO"))                                                      \
    _(link, blkin_span_link(&span, &sampled))                                                     \
    _(keep, blkin_span_keep(&span, "checksum"))                                                   \
    _(set_name, blkin_span_set_name(&span, "osd_op read"))                                        \
    _(set_remote, blkin_span_set_remote(&span, "osd.12", "10.0.0.1", 6800))                       \
    _(set_service, blkin_span_set_service(&span, "osd.12", "10.0.0.1", 6800))                     \
    _(set_start, blkin_span_set_start(&span, i))                                                  \
    _(step_begin, blkin_step_begin(&span, "journal", BLKIN_INTERNAL))                             \
    _(step_end, blkin_step_end(&span))                                                            \
    _(end, blkin_span_end(&span))                                                                 \
    _(end_at, blkin_span_end_at(&span, i))                                                        \
    _(drop, blkin_span_drop(&span))

#define FUNCTION(name, call)                      \
    static void calls_##name(unsigned calls)      \
    {                                             \
        struct blkin_span span = BLKIN_SPAN_INIT; \
                                                  \
        ESCAPE(&span);                            \
        for (unsigned i = 0; i < calls; i++) {    \
            call;                                 \
            FORGET();                             \
        }                                         \
    }
CALLS(FUNCTION)

#define ROW(name, call) {#name, calls_##name},
static const struct subject all[] = {CALLS(ROW)};
#define COUNT (sizeof(all) / sizeof(all[0]))

int calls_run(const char *name, unsigned calls)
{
    blkin_span_begin(&parent, "client request", BLKIN_SERVER, NULL);
    blkin_span_begin_remote(&sampled_parent, "client request", BLKIN_SERVER, &sampled);
    blkin_span_begin_remote(&refused_parent, "client request", BLKIN_SERVER, &refused);
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(all[i].name, name) == 0) {
            all[i].run(calls);
            return 1;
        }
    }
    return 0;
}

void calls_print(void)
{
    for (size_t i = 0; i < COUNT; i++)
        puts(all[i].name);
}

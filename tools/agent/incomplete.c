/* SPDX-License-Identifier: BSD-2-Clause */
#include "incomplete.h"

#include <stdlib.h>
#include <sys/random.h>

static void incomplete_add_tag(struct span *span, const char *key, const char *value)
{
    if (value[0])
        (void)span_add(span, SPAN_TAG_TEXT, text_of(key), text_of(value), 0);
}

void incomplete_report(struct export *export, const struct verdict *verdict)
{
    struct span span = {.trace_id_high = verdict->id.high,
                        .trace_id = verdict->id.low,
                        .parent_id = verdict->missing ? verdict->parent : 0,
                        .kind = SPAN_LOCAL,
                        /* the trace's begin: the current time would make the trace seem longer */
                        .start_ns = verdict->time_ns,
                        .end_ns = verdict->time_ns};

    if (getrandom(&span.id, sizeof(span.id), 0) != sizeof(span.id) || span.id == 0)
        span.id = (uint64_t)span.start_ns;
    (void)span_set_name(&span, text_of("incomplete"));
    incomplete_add_tag(&span, "blkin.kept", verdict->why);
    incomplete_add_tag(&span, "blkin.incomplete", verdict->lacks);
    incomplete_add_tag(&span, "blkin.hosts", verdict->hosts);
    incomplete_add_tag(&span, "blkin.held_from", verdict->held);
    export_add_own(export, &span);
    free(span.log);
}

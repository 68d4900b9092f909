/*
 * A program of two objects that disagree on -DBLKIN_DISABLE, for test-headers.sh. Both are this
 * file, compiled once with the macro and once without. Each object uses spans that the other object
 * began, and main() checks the trace ids.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin.h>

#include <stdlib.h>

void begin_enabled(struct blkin_span *span, const struct blkin_context *context);
void begin_disabled(struct blkin_span *span, const struct blkin_context *context);
uint64_t use_enabled(struct blkin_span *span);
uint64_t use_disabled(struct blkin_span *span);

#ifdef BLKIN_DISABLE
#define begin begin_disabled
#define use   use_disabled
#else
#define begin begin_enabled
#define use   use_enabled
#endif

void begin(struct blkin_span *span, const struct blkin_context *context)
{
    blkin_span_begin_remote(span, "root", BLKIN_SERVER, context);
}

uint64_t use(struct blkin_span *span)
{
    struct blkin_span child, grandchild;
    struct blkin_context context;
    uint64_t id;

    blkin_span_begin(&child, "child", BLKIN_INTERNAL, span);
    blkin_span_begin(&grandchild, "grandchild", BLKIN_INTERNAL, &child);
    BLKIN_ANNOTATE(span, "text");
    blkin_step_begin(span, "step", BLKIN_CLIENT);
    blkin_step_context(span, &context);
    blkin_step_end(span);
    blkin_span_tag_int64(span, "key", 1);
    id = context.trace_id + blkin_span_context(&grandchild)->trace_id;
    blkin_span_end(&grandchild);
    blkin_span_end(&child);
    blkin_span_end(span);
    return id;
}

#ifndef BLKIN_DISABLE

int main(void)
{
    const struct blkin_context context = {.trace_id = 7, .span_id = 7};
    struct blkin_span *span = malloc(sizeof(*span));
    int failures = 0;

    for (int i = 0; span && i < 2; i++) {
        const struct blkin_context *parent = i ? &context : NULL;
        const uint64_t expected = i ? 14 : 0;

        begin_enabled(span, parent);
        failures += use_disabled(span) != expected;
        free(span);
        span = malloc(sizeof(*span));
        begin_disabled(span, parent);
        failures += use_enabled(span) != expected;
        free(span);
        span = malloc(sizeof(*span));
    }
    free(span);
    return failures;
}

#endif

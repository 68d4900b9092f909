/*
 * Calls of the span API, for test-headers.sh: in all dialects, and with -DBLKIN_DISABLE.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <zipkin_c.h>
#include <blkin.h>
#include <blkin.h>

#include <stdio.h>

static int evaluated;
static int spans;

/* With -DBLKIN_DISABLE, an object must not even refer to this function. */
extern const char *costly(void);
#ifndef BLKIN_DISABLE
const char *costly(void)
{
    evaluated++;
    return "costly";
}
#endif

static struct blkin_span *counted(struct blkin_span *span)
{
    spans++;
    return span;
}

static void functions(void)
{
    struct blkin_span span, child;
    struct blkin_context context;
    BLKIN_SPAN_ROOM(256) room;

    blkin_set_service("osd.1", "10.0.0.1", 6789);
    blkin_set_version("headers 1.0");
    blkin_span_begin_remote(&span, "root", BLKIN_SERVER, 0);
    blkin_span_begin(&child, "child", BLKIN_INTERNAL, &span);
    blkin_span_set_start(&child, 1);
    blkin_span_keep(&child, "odd");
    blkin_span_set_name(&child, "decoded");
    blkin_span_set_name_n(&child, "decoded", 3);
    blkin_span_set_remote(&span, "osd.1", "10.0.0.1", 6789);
    blkin_span_set_remote_sockaddr(&span, "osd.1", 0, 0);
    blkin_span_set_service(&span, "osd.1", "10.0.0.1", 6789);
    blkin_span_annotate(&span, "text");
    blkin_span_log(&span, BLKIN_ERR, "text");
    blkin_span_log_at(&span, BLKIN_ERR, "text", 1);
    blkin_span_log_n(&span, BLKIN_ERR, "text", 2);
    blkin_span_annotatef(&span, "%d of %s", 1, "text");
    blkin_span_tag_string_n(&span, "key", "value", 2);
    blkin_span_link(&span, blkin_span_context(&child));
    blkin_span_tag_string(&span, "key", "value");
    blkin_span_tag_int64(&span, "key", -1);
    blkin_span_tag_uint64(&span, "key", 1);
    blkin_span_tag_double(&span, "key", 0.5);
    blkin_span_tag_bool(&span, "key", 1);
    blkin_span_error(&span, "EIO");
    blkin_step_begin(&span, "step", BLKIN_CLIENT);
    blkin_step_begin(&span, "inner", BLKIN_INTERNAL);
    blkin_step_context(&span, &context);
    blkin_step_end(&span);
    blkin_step_end(&span);
    blkin_step_end(&span); /* no step is open */
    blkin_span_end_at(&child, blkin_now());
    blkin_span_drop(blkin_span_begin_in(&room, sizeof(room), "in", BLKIN_INTERNAL, &span));
    blkin_span_begin_remote(&child, "remote", BLKIN_INTERNAL, blkin_span_context(&span));
    blkin_span_end(&child);
    (void)blkin_span_begin_remote_in(&room, sizeof(room), "in", BLKIN_INTERNAL, 0);
    blkin_span_end(blkin_span_in(&room));
    blkin_span_end(&span);
    (void)blkin_set_current(&span);
    (void)blkin_current();
    (void)blkin_set_current(0);
    blkin_heartbeat();
    (void)blkin_set_sampling("always");
    (void)blkin_set_slow("*>100ms");
    if (blkin_version() != BLKIN_VERSION)
        printf("library %u, headers %d\n", blkin_version(), BLKIN_VERSION);
}

/* Uses the macros in every position. An argument is a bit field, which sizeof would not accept. */
static int macros(int condition)
{
    struct {
        unsigned field : 3;
    } bits = {5};
    struct blkin_span span;
    int i;

    blkin_span_begin(&span, "macros", BLKIN_CLIENT, 0);
    if (condition)
        BLKIN_ANNOTATE(counted(&span), costly());
    else
        BLKIN_LOG(&span, BLKIN_DEBUG, costly());
    for (i = 0; i < 2; BLKIN_TAG_INT64(counted(&span), costly(), i), i++)
        BLKIN_TAG_UINT64(&span, costly(), bits.field);
    condition ? BLKIN_TAG_DOUBLE(&span, costly(), 1.5) : BLKIN_TAG_BOOL(&span, costly(), i);
    switch (condition) {
    case 0:
        BLKIN_TAG_STRING(&span, costly(), "a,b");
        break;
    default:
        BLKIN_ERROR(&span, costly());
    }
    BLKIN_ANNOTATE(blkin_current(), costly()); /* there is no current span */
    {
        BLKIN_SCOPE(scope, "scope", BLKIN_INTERNAL, &span);
        BLKIN_CURRENT_SCOPE(&scope);

        BLKIN_ANNOTATE(&scope, costly());
        {
            BLKIN_CURRENT_SCOPE(NULL);
            BLKIN_CURRENT_SCOPE(&span);
        }
    }
    {
        BLKIN_STEP_SCOPE(&span, "step", BLKIN_CLIENT);
        BLKIN_STEP_SCOPE(counted(&span), "nested", BLKIN_INTERNAL);
        BLKIN_STEP_SCOPE(blkin_current(), "of none", BLKIN_INTERNAL);
    }
    BLKIN_ANNOTATEF(&span, "%s", costly());
    BLKIN_ANNOTATEF(&span, "no argument");
    BLKIN_LINK(&span, (costly(), blkin_span_context(&span)));
    BLKIN_KEEP(&span, costly());
    i = blkin_span_is_recorded(&span);
    blkin_span_end(&span);
    BLKIN_ANNOTATE(&span, costly()); /* has ended */
    return i;
}

/* Arguments of the macros are evaluated once if the span is recorded, and never if not. */
int main(void)
{
    int recorded;

    functions();
    recorded = macros(1);
#ifdef BLKIN_DISABLE
    spans += 3; /* of all macros, only BLKIN_STEP_SCOPE evaluates the span */
#endif
    printf("%s: span %d, arguments %d\n", recorded ? "recorded" : "not recorded", spans, evaluated);
    return spans == 4 && evaluated == (recorded ? 10 : 0) ? 0 : 1;
}

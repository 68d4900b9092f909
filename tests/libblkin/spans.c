/*
 * Records spans of every sort, for test-spans.sh.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct blkin_endpoint me = {"10.0.0.1", (int16_t)50000, "osd"};
static const struct blkin_endpoint peer = {"2001:db8::2", 6789, "mon"};
static const struct blkin_endpoint journal = {"", 0, "journal"};

static uint64_t monotonic(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void child_scope(const struct blkin_span *parent)
{
    BLKIN_SCOPE(span, "scope", BLKIN_INTERNAL, parent);

    blkin_span_set_service(&span, &journal);
    blkin_span_annotate(&span, "inside");
}

/* Begun from the wire form of a context, as another daemon does. */
static void far_child(const struct blkin_span *parent)
{
    char traceparent[BLKIN_TRACEPARENT_SIZE];
    struct blkin_context context;
    struct blkin_span span;

    blkin_context_to_traceparent(blkin_span_context(parent), traceparent);
    if (blkin_context_from_traceparent(&context, traceparent, strlen(traceparent)) != 0)
        abort();
    blkin_span_begin_remote(&span, "far", BLKIN_SERVER, &context);
    blkin_span_end(&span);
    blkin_span_end(&span); /* harmless */
}

static void times(const struct blkin_span *parent)
{
    const uint64_t now = monotonic();
    struct blkin_span span;

    blkin_span_begin(&span, "times", BLKIN_CONSUMER, parent);
    blkin_span_set_start(&span, now - 3000000000);
    blkin_span_log_at(&span, BLKIN_WARNING, "one second in", now - 2000000000);
    blkin_span_end_at(&span, now - 1000000000);
}

static void too_much(const struct blkin_span *parent)
{
    char text[300];
    struct blkin_span span;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    blkin_span_begin(&span, "too much", BLKIN_PRODUCER, parent);
    for (int i = 0; i < 10; i++)
        blkin_span_tag_string(&span, "long", text);
    blkin_span_tag_string(&span, NULL, NULL);
    blkin_span_end(&span);
}

int main(void)
{
    struct blkin_span root;

    blkin_init();
    blkin_set_service(&me);
    blkin_set_version("spans 1.0");
    blkin_span_begin(&root, "root", BLKIN_CLIENT, NULL);
    blkin_span_set_remote(&root, &peer);
    blkin_span_tag_string(&root, "string", "a|b\n\"c\"");
    blkin_span_tag_int64(&root, "int64", INT64_MIN);
    blkin_span_tag_uint64(&root, "uint64", UINT64_MAX);
    blkin_span_tag_double(&root, "double", 0.25);
    blkin_span_tag_bool(&root, "yes", 1);
    blkin_span_tag_bool(&root, "no", 0);
    blkin_span_annotate(&root, "first");
    blkin_span_log(&root, BLKIN_DEBUG, "second");
    if (blkin_set_current(&root) != NULL)
        abort();
    child_scope(blkin_current());
    far_child(&root);
    times(&root);
    too_much(&root);
    blkin_span_error(&root, "EIO");
    blkin_span_end(&root);
    /* never ended: seen only by the streaming events */
    blkin_span_begin(&root, "hung", BLKIN_SERVER, NULL);
    blkin_span_annotate(&root, "last sign of life");
    return 0;
}

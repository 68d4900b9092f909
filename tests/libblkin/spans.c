/*
 * Records spans of every sort, for test-spans.sh.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct blkin_context scope_context;

static void child_scope(const struct blkin_span *parent)
{
    BLKIN_SCOPE(span, "scope", BLKIN_INTERNAL, parent);

    blkin_span_set_service(&span, "journal", NULL, 0);
    blkin_span_annotate(&span, "inside");
    scope_context = *blkin_span_context(&span);
    {
        BLKIN_SCOPE(back, "back", BLKIN_INTERNAL, parent);

        blkin_span_set_service(&back, "journal", NULL, 0);
        blkin_span_set_service(&back, NULL, NULL, 0);
    }
}

/* Begins a span from the wire form of a context, as another daemon does. */
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
    blkin_span_end(&span); /* harmless second end */
}

static void times(const struct blkin_span *parent)
{
    const uint64_t now = blkin_now();
    struct blkin_span span;

    blkin_span_begin(&span, "times", BLKIN_CONSUMER, parent);
    blkin_span_log_at(&span, BLKIN_WARNING, "one second in", now - 2000000000);
    blkin_span_set_start(&span, now - 1000000000);
    blkin_span_annotate(&span, "at its begin"); /* at the time of its call */
    blkin_span_tag_int64(&span, "between", 1);
    blkin_span_set_start(&span, now - 3000000000);
    blkin_span_log_at(&span, BLKIN_WARNING, "two seconds in", now - 1000000000);
    blkin_span_end_at(&span, now - 500000000);
}

static void names(const struct blkin_span *parent)
{
    const char request[] = "decoded request";
    char longest[200];
    struct blkin_span span;

    blkin_span_begin(&span, "undec", BLKIN_SERVER, parent);
    blkin_span_annotate(&span, "before");
    blkin_span_tag_string_n(&span, "before", "bee", 1);
    blkin_span_set_name(&span, "something much longer than the first one");
    blkin_span_set_name_n(&span, request, 7);
    blkin_span_tag_string_n(&span, "after", "a\0hidden", 8);
    blkin_span_log_n(&span, BLKIN_INFO, "after all", 5);
    blkin_span_end(&span);

    memset(longest, 'x', sizeof(longest));
    blkin_span_begin_remote(&span, "short", BLKIN_INTERNAL, blkin_span_context(parent));
    blkin_span_set_name_n(&span, longest, sizeof(longest));
    blkin_span_end(&span);
}

static void links(const struct blkin_span *parent)
{
    const struct blkin_context none = {0};
    struct blkin_span span;

    blkin_span_begin(&span, "linked", BLKIN_INTERNAL, parent);
    blkin_span_link(&span, blkin_span_context(parent));
    blkin_span_link(&span, &none);
    blkin_span_link(&span, NULL);
    blkin_span_link(&span, &scope_context);
    blkin_span_end(&span);
}

static void dropped(const struct blkin_span *parent)
{
    struct blkin_span span, child;

    blkin_span_begin(&span, "dropped", BLKIN_INTERNAL, parent);
    blkin_span_begin(&child, "kept", BLKIN_INTERNAL, &span);
    blkin_span_end(&child);
    blkin_step_begin(&span, "dropped step", BLKIN_INTERNAL);
    blkin_span_drop(&span);
    if (blkin_span_is_recorded(&span) || blkin_span_context(&span)->flags & BLKIN_CONTEXT_SAMPLED)
        abort();
    blkin_span_begin(&child, "below the dropped", BLKIN_INTERNAL, &span);
    blkin_span_end(&child);
    blkin_span_end(&span);
}

static void of_debug(void)
{
    const struct blkin_context debug = {
        .trace_id = 2, .span_id = 3, .flags = BLKIN_CONTEXT_DEBUG | BLKIN_CONTEXT_DECIDED};
    struct blkin_span span;

    blkin_span_begin_remote(&span, "debug", BLKIN_SERVER, &debug);
    blkin_span_end(&span);
}

/* Characters of two and three bytes: no text may be cut within a character. */
static void utf8(const struct blkin_span *parent)
{
    char umlauts[301] = "x", euros[303] = "xx", key[120];
    struct blkin_span span;

    for (size_t at = 1; at < 299; at += 2)
        memcpy(umlauts + at, "\xc3\xa4", 3);
    for (size_t at = 2; at < 300; at += 3)
        memcpy(euros + at, "\xe2\x82\xac", 4);
    memset(key, 'k', 99);
    memcpy(key + 99, "\xc3\xa4", 3);
    blkin_span_begin(&span, "utf8", BLKIN_INTERNAL, parent);
    blkin_span_tag_string(&span, "short", "\xc3\xa4");
    blkin_span_tag_string(&span, key, "v");
    blkin_span_tag_string(&span, "cut", umlauts);
    blkin_step_begin(&span, umlauts, BLKIN_INTERNAL);
    blkin_step_begin(&span, NULL, BLKIN_INTERNAL);
    blkin_step_end(&span);
    blkin_step_end(&span);
    blkin_span_end(&span);
    blkin_span_begin(&span, "euros", BLKIN_INTERNAL, parent);
    blkin_span_annotate(&span, euros);
    blkin_span_annotatef(&span, "%s", euros);
    blkin_span_end(&span);
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

static void steps(const struct blkin_span *parent)
{
    struct blkin_context context;
    struct blkin_span span, child;

    blkin_span_begin(&span, "stepped", BLKIN_SERVER, parent);
    blkin_span_annotate(&span, "before");
    blkin_step_begin(&span, "look up", BLKIN_INTERNAL);
    blkin_span_tag_string(&span, "own", "look up's");
    blkin_step_begin(&span, "ask", BLKIN_CLIENT);
    blkin_span_set_service(&span, "own", "10.0.0.1", 7); /* also of the steps before */
    blkin_span_set_remote(&span, "mon", "2001:db8::2", 6789);
    blkin_span_error(&span, "EAGAIN");
    blkin_step_context(&span, &context);
    blkin_span_begin_remote(&child, "asked", BLKIN_SERVER, &context);
    blkin_span_end(&child);
    blkin_step_end(&span);
    blkin_span_annotate(&span, "found");
    blkin_step_end(&span);
    blkin_step_end(&span); /* harmless second end */
    blkin_span_tag_int64(&span, "own", 1);
    blkin_step_begin(&span, "left open", BLKIN_PRODUCER);
    blkin_span_end(&span);
    /* only the parent and the parent's step have failed */
    blkin_span_begin(&child, "after an error", BLKIN_INTERNAL, &span);
    blkin_span_end(&child);
}

/* Begins a span below a span that has ended. */
static void late(const struct blkin_span *parent)
{
    const struct sockaddr_in6 mapped = {
        .sin6_family = AF_INET6,
        .sin6_port = htons(50001),
        .sin6_addr.s6_addr = {[10] = 255, [11] = 255, [12] = 192, [14] = 2, [15] = 1},
    };
    struct blkin_span span;

    blkin_span_begin(&span, "late", BLKIN_PRODUCER, parent);
    blkin_span_set_remote_sockaddr(&span, "client", (const struct sockaddr *)&mapped,
                                   sizeof(mapped));
    blkin_span_annotate(&span, "written back");
    blkin_span_end(&span);
}

int main(void)
{
    struct blkin_span root;

    blkin_init();
    blkin_set_service("osd", "10.0.0.1", 50000);
    blkin_set_version("spans 1.0");
    blkin_span_begin(&root, "root", BLKIN_CLIENT, NULL);
    blkin_span_set_remote(&root, "mon", "2001:db8::2", 6789);
    blkin_span_tag_string(&root, "string", "a|b\n\"c\"");
    blkin_span_tag_int64(&root, "int64", INT64_MIN);
    blkin_span_tag_uint64(&root, "uint64", UINT64_MAX);
    blkin_span_tag_double(&root, "double", 0.25);
    blkin_span_tag_bool(&root, "yes", 1);
    blkin_span_tag_bool(&root, "no", 0);
    blkin_span_annotate(&root, "first");
    blkin_span_log(&root, BLKIN_DEBUG, "second");
    blkin_span_annotatef(&root, "%d of a %s", 3, "format");
    BLKIN_ANNOTATEF(&root, "third");
    if (blkin_set_current(&root) != NULL)
        abort();
    child_scope(blkin_current());
    far_child(&root);
    times(&root);
    too_much(&root);
    names(&root);
    links(&root);
    dropped(&root);
    of_debug();
    utf8(&root);
    steps(&root);
    blkin_span_error(&root, "EIO");
    blkin_span_end(&root);
    late(&root);
    /* a span that never ends: only the events of streamed spans show it */
    blkin_span_begin(&root, "hung", BLKIN_SERVER, NULL);
    blkin_span_annotate(&root, "last sign of life");
    return 0;
}

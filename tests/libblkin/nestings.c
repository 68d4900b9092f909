/*
 * Spans with randomly nested steps, for test-nestings.sh. They overflow the log at every position,
 * and nest deeper than the limit.
 *
 *     nestings SEED COUNT
 *     nestings SEED all      one span with more steps than the limit; prints nothing
 *
 * Prints the calls for COUNT spans: a line for each call, with blanks between its words:
 *
 *     span TRACE-ID SPAN-ID NAME     the begin of the span
 *     step TIME TIME CONTEXT KIND NAME
 *     end TIME TIME                  the end of the innermost step, if one is open
 *     annotation TIME TIME TEXT      TIME: ns, before and after the call
 *     tag KEY VALUE
 *     remote NAME
 *     link ID
 *     child ID NAME                  a child of the innermost step, or of the span
 *     name NAME                      a new name of the span
 *     start TIME                     a new start of the span
 *     done TIME TIME                 the end of the span
 *
 * CONTEXT is the result of blkin_step_context(): id and parent's id.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "tracepoints/format/step_id.h"
#include "waits.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- chance ---- */

static uint64_t chance;

/* Returns a random number below the limit. */
static unsigned below(unsigned limit)
{
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((chance >> 33) % limit);
}

/* Returns a length, mostly short, sometimes the longest, or longer. */
static unsigned some_length(unsigned longest)
{
    switch (below(8)) {
    case 0:
        return below(longest + longest / 4);
    case 1:
        return longest - 2 + below(5);
    default:
        return below(24);
    }
}

#define TEXT_SIZE 400

static unsigned texts;

/* Makes a new text of about this length. */
static const char *some_text(char *text, char first, unsigned length)
{
    const int used = snprintf(text, TEXT_SIZE, "%c%u_", first, texts++);

    if (used < 0 || length >= TEXT_SIZE)
        abort();
    for (unsigned i = (unsigned)used; i < length; i++)
        text[i] = (char)('a' + i % 26);
    if (length > (unsigned)used)
        text[length] = '\0';
    return text;
}

/* ---- one span ---- */

#define SIZE_MAX_       2304
#define NESTINGS_CANARY UINT64_C(0x5ca1ab1e0ddba115)

/* Returns the size of a span's room: with a chance of one half, the usual one. */
static unsigned some_size(void)
{
    return below(2) ? BLKIN_SPAN_SIZE : 192 + 8 * below((SIZE_MAX_ - 192) / 8 + 1);
}

struct nesting {
    uint64_t room[SIZE_MAX_ / 8 + 1]; /* the word after the span must not change */
    struct blkin_span *span;
    unsigned calls;  /* the number of calls still to make */
    unsigned deeper; /* how many of 16 calls begin a step; the other calls end one */
    unsigned long_texts;
};

static unsigned length_of(const struct nesting *nesting, unsigned longest)
{
    return nesting->long_texts ? some_length(longest) : below(12);
}

static void begin_step(struct nesting *nesting)
{
    const enum blkin_kind kind = (enum blkin_kind)below(5);
    struct blkin_context context;
    char name[TEXT_SIZE];
    uint64_t before, after;

    some_text(name, 's', length_of(nesting, 100));
    before = (uint64_t)monotonic_ns();
    blkin_step_begin(nesting->span, name, kind);
    after = (uint64_t)monotonic_ns();
    blkin_step_context(nesting->span, &context);
    printf("step %" PRIu64 " %" PRIu64 " %016" PRIx64 " %016" PRIx64 " %d %s\n", before, after,
           context.span_id, context.parent_span_id, kind, name);
}

static void end_step(struct nesting *nesting)
{
    const uint64_t before = (uint64_t)monotonic_ns();

    blkin_step_end(nesting->span);
    printf("end %" PRIu64 " %" PRIu64 "\n", before, (uint64_t)monotonic_ns());
}

static void annotate(struct nesting *nesting)
{
    char text[TEXT_SIZE];
    uint64_t before;

    some_text(text, 'a', length_of(nesting, 240));
    before = (uint64_t)monotonic_ns();
    blkin_span_annotate(nesting->span, text);
    printf("annotation %" PRIu64 " %" PRIu64 " %s\n", before, (uint64_t)monotonic_ns(), text);
}

static void tag(struct nesting *nesting)
{
    struct blkin_span *span = nesting->span;
    char key[TEXT_SIZE], text[TEXT_SIZE];

    some_text(key, 'k', length_of(nesting, 100));
    some_text(text, 'v', length_of(nesting, 240));
    switch (below(8)) {
    case 0:
        blkin_span_tag_int64(span, key, -(int64_t)texts);
        printf("tag %s -%u\n", key, texts);
        break;
    case 1:
        blkin_span_tag_uint64(span, key, UINT64_MAX);
        printf("tag %s %" PRIu64 "\n", key, UINT64_MAX);
        break;
    case 2:
        blkin_span_tag_double(span, key, 0.5);
        printf("tag %s 0.5\n", key);
        break;
    case 3:
        blkin_span_tag_bool(span, key, 1);
        printf("tag %s true\n", key);
        break;
    default:
        blkin_span_tag_string(span, key, text);
        printf("tag %s %s\n", key, text);
    }
}

static void set_remote(struct nesting *nesting)
{
    char name[TEXT_SIZE];

    blkin_span_set_remote(nesting->span, some_text(name, 'p', below(72)), "10.0.0.1", 6789);
    printf("remote %s\n", name);
}

static void add_link(struct nesting *nesting)
{
    const struct blkin_context other = {.trace_id = 1, .span_id = ++texts};

    blkin_span_link(nesting->span, &other);
    printf("link %016" PRIx64 "\n", other.span_id);
}

static void begin_child(struct nesting *nesting)
{
    struct blkin_context context;
    struct blkin_span child;
    char name[TEXT_SIZE];

    some_text(name, 'c', 8);
    blkin_step_context(nesting->span, &context);
    blkin_span_begin_remote(&child, name, BLKIN_INTERNAL, &context);
    printf("child %016" PRIx64 " %s\n", blkin_span_context(&child)->span_id, name);
    blkin_span_end(&child);
}

static void set_name(struct nesting *nesting)
{
    char name[TEXT_SIZE];

    printf("name %s\n", some_text(name, 'n', length_of(nesting, 120)));
    blkin_span_set_name(nesting->span, name);
}

static void set_start(struct nesting *nesting)
{
    const uint64_t start = (uint64_t)monotonic_ns() - below(1000000);

    printf("start %" PRIu64 "\n", start);
    blkin_span_set_start(nesting->span, start);
}

static void fail(struct nesting *nesting)
{
    char message[TEXT_SIZE];

    printf("tag error %s\n", some_text(message, 'e', 8));
    blkin_span_error(nesting->span, message);
}

static void begin_or_end_step(struct nesting *nesting)
{
    if (below(16) < nesting->deeper)
        begin_step(nesting);
    else
        end_step(nesting);
}

static void make_calls(struct nesting *nesting, unsigned count)
{
    static void (*const rare[])(struct nesting *) = {fail,        set_remote, add_link,
                                                     begin_child, set_name,   set_start};

    for (; count > 0; count--) {
        const unsigned choice = below(22);

        if (choice < 8)
            begin_or_end_step(nesting);
        else if (choice < 12)
            annotate(nesting);
        else if (choice < 16)
            tag(nesting);
        else
            rare[choice - 16](nesting);
    }
}

/* Makes the remaining calls on another thread. */
static void *make_remaining_calls(void *nesting)
{
    make_calls(nesting, ((struct nesting *)nesting)->calls);
    return NULL;
}

static void nest(void)
{
    struct nesting nesting = {.calls = 1 + below(60), .deeper = below(8) ? 4 + below(8) : 14};
    const struct blkin_context *context;
    const unsigned first_calls = below(nesting.calls);
    const unsigned size = some_size();
    char name[TEXT_SIZE];
    pthread_t thread;
    uint64_t before;

    nesting.long_texts = below(2);
    some_text(name, 'r', length_of(&nesting, 120));
    nesting.room[size / 8] = NESTINGS_CANARY;
    nesting.span = blkin_span_begin_in(nesting.room, size, name, BLKIN_SERVER, NULL);
    context = blkin_span_context(nesting.span);
    /* the smallest rooms shorten long names */
    printf("span %016" PRIx64 "%016" PRIx64 " %016" PRIx64 " %.*s\n", context->trace_id_high,
           context->trace_id, context->span_id, size < 256 ? (int)size - 134 : 120, name);
    make_calls(&nesting, first_calls);
    nesting.calls -= first_calls;
    if (below(16) == 0) {
        if (pthread_create(&thread, NULL, make_remaining_calls, &nesting) != 0 ||
            pthread_join(thread, NULL) != 0)
            abort();
    } else {
        make_remaining_calls(&nesting);
    }
    before = (uint64_t)monotonic_ns();
    blkin_span_end(nesting.span);
    if (nesting.room[size / 8] != NESTINGS_CANARY)
        abort();
    printf("done %" PRIu64 " %" PRIu64 "\n", before, (uint64_t)monotonic_ns());
}

/* Fills the log, at last with short records, for which the log still has room. */
static void use_up(void)
{
    const unsigned count = BLKIN_STEPS_MAX + 100;
    struct blkin_span span;
    char name[TEXT_SIZE];

    blkin_span_begin(&span, "used up", BLKIN_INTERNAL, NULL);
    memset(name, 's', sizeof(name));
    for (unsigned i = 0; i < count; i++) {
        name[i < BLKIN_STEPS_MAX - 2 ? 90 : 1] = '\0';
        blkin_step_begin(&span, name, BLKIN_INTERNAL);
        blkin_step_end(&span);
    }
    blkin_span_end(&span);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    chance = strtoull(argv[1], NULL, 10);
    blkin_init();
    if (strcmp(argv[2], "all") == 0)
        use_up();
    for (long i = atol(argv[2]); i > 0; i--)
        nest();
    return 0;
}

/*
 * Spans by rules: random events against a slow model, the bounds, and each form of a rule.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/rules/pairing_parts.h"
#include "rules_driver.h"
#include "rules_model.h"
#include "seed.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

/* ---- random events against the model --------------------------------------------------------- */

static void check_counts(const struct driver *driver, const struct model *model)
{
    for (size_t i = 0; i < MODEL_RULES; i++) {
        const struct rule_counts counts =
            caa_container_of(driver->rules, struct pairing, stage)->runs[i].counts;
        const struct rule_counts *expected = &model->counts[i];

        CHECK(counts.begins == counts.spans + counts.shorter + counts.begun_again + counts.dropped +
                                   counts.unmatched + counts.unusable + counts.open);
        CHECK(counts.begins == expected->begins);
        CHECK(counts.spans == expected->spans);
        CHECK(counts.shorter == expected->shorter);
        CHECK(counts.begun_again == expected->begun_again);
        CHECK(counts.dropped == expected->dropped);
        CHECK(counts.unmatched == expected->unmatched);
        CHECK(counts.unusable == expected->unusable);
        CHECK(counts.ends_unmatched == expected->ends_unmatched);
        CHECK(counts.stages_unmatched == expected->stages_unmatched);
        CHECK(counts.evicted == expected->evicted);
        CHECK(counts.stages == expected->stages);
        CHECK(counts.with_parent == expected->with_parent);
        CHECK(counts.without_parent == expected->without_parent);
        CHECK(counts.no_room == 0 && counts.keyless == 0);
    }
}

#define PAIRING_IDS 256

/* The ids of spans that the model knows by serial numbers. A slot has the newest span. */
struct pairing_ids {
    struct {
        uint64_t serial, id, trace;
    } of[PAIRING_IDS];
};

static void check_id(struct pairing_ids *ids, uint64_t serial, uint64_t id, uint64_t trace)
{
    const size_t slot = serial % PAIRING_IDS;

    if (ids->of[slot].serial == serial)
        CHECK(ids->of[slot].id == id && ids->of[slot].trace == trace);
    ids->of[slot].serial = serial;
    ids->of[slot].id = id;
    ids->of[slot].trace = trace;
}

/* Returns the index after the stages that follow a span. */
static size_t after_stages(const struct driver *driver, size_t at)
{
    while (at < driver->count && text_is(span_name(&driver->spans[at]->span), "stage"))
        at++;
    return at;
}

static void check_spans(struct driver *driver, const struct model *model, struct pairing_ids *ids)
{
    size_t at = 0;

    for (int i = 0; i < model->span_count; i++, at = after_stages(driver, at + 1)) {
        const struct model_span *expected = &model->spans[i];
        const struct span *span;

        CHECK(at < driver->count);
        if (at >= driver->count)
            return;
        span = &driver->spans[at]->span;
        CHECK(span->start_ns == expected->start_ns && span->end_ns == expected->end_ns);
        CHECK((span->parent_id != 0) == (expected->parent != 0));
        check_id(ids, expected->serial, span->id, span->trace_id);
        if (expected->parent)
            check_id(ids, expected->parent, span->parent_id, span->trace_id);
    }
    CHECK(at == driver->count);
    driver_forget(driver);
}

static void give_model_event(struct driver *driver, const struct model_event *event)
{
    static const char *const names[] = {"t:begin", "t:at", "t:end",  "t:enter",
                                        "t:exit",  "t:go", "t:stop", "t:whole"};

    driver_send(driver, names[event->what], event->time_ns, event->pid, event->tid,
                DRIVER_FIELDS(GIVEN_NUMBER("k", (int64_t)event->k), GIVEN_NUMBER("n", event->n)));
}

TEST(test_model)
{
    struct driver driver;
    struct model model = {.open_max = MODEL_OPEN - 10};
    struct pairing_ids ids;
    int64_t now_ns = 1000000;
    int keys = 5;

    memset(&ids, 0, sizeof(ids));
    CHECK(driver_open(&driver, model_rules, MODEL_OPEN - 10));
    for (unsigned i = 0; i < 1000000 && !check_failures; i++) {
        struct model_event event = {.what = (int)dice(MODEL_EVENTS)};

        if (i % 500 == 0) /* few keys: some begins time out; many: open_max is reached */
            keys = dice(2) ? 3 : 300;
        now_ns += (int64_t)(dice(3) ? dice(4) : dice(40) * (keys < 10));
        event.time_ns = now_ns;
        event.pid = 10 + (int64_t)dice(2);
        event.tid = 20 + (int64_t)dice(3);
        event.k = dice((uint64_t)keys);
        event.n = (int64_t)dice(8) - (dice(20) == 0 ? 10 : 0);
        give_model_event(&driver, &event);
        model_take(&model, &event);
        check_spans(&driver, &model, &ids);
        if (i % 1000 == 999)
            check_counts(&driver, &model);
    }
    check_counts(&driver, &model);
    for (int i = 0; i < MODEL_RULES; i++) /* every rule made spans */
        CHECK(check_failures || model.counts[i].spans > 0);
    CHECK(model.counts[KEYED].evicted && model.counts[KEYED].begun_again &&
          model.counts[OUTER].dropped && model.counts[CHILD].shorter &&
          model.counts[WHOLE].unusable);
    driver_close(&driver);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void give(struct driver *driver, const char *name, int64_t k, int64_t time_ns)
{
    DRIVER_SEND(driver, name, time_ns, GIVEN_NUMBER("k", k));
}

/* Gives begins without ends: the open spans stay within their bound. Returns the CPU time of one
 * begin. */
static double cost_of_begins(uint64_t begins, uint64_t keys)
{
    struct driver driver;
    struct rule_counts counts;
    double seconds;

    CHECK(driver_open(&driver, "[span s]\nbegin = t:begin\nend = t:end\nkey = k\n", 100000));
    seconds = cpu_seconds();
    for (uint64_t i = 0; i < begins; i++)
        give(&driver, "t:begin", (int64_t)(i % keys), (int64_t)i);
    seconds = cpu_seconds() - seconds;
    counts = pairing_counts(driver.rules);
    CHECK(counts.open <= 100000 && counts.begins == begins);
    CHECK(counts.open_bytes <= 100000 * 1024);
    CHECK(counts.unmatched + counts.begun_again + counts.open == begins);
    driver_close(&driver);
    return seconds / (double)begins;
}

/* Returns the CPU time for each begin on a stack of that depth. Half of the spans end. The end of
 * the lowest span drops the other half. Then `depth` ends match no begin. */
static double cost_of_stack(uint64_t depth)
{
    struct driver driver;
    struct rule_counts counts;
    double seconds;

    CHECK(driver_open(&driver,
                      "[span s]\nbegin = t:begin\nend = t:end\nparent = thread\n"
                      "[span o]\nbegin = t:other\nend = t:none\n",
                      1000000));
    seconds = cpu_seconds();
    give(&driver, "t:other", 0, 0);
    for (uint64_t i = 0; i < depth; i++)
        give(&driver, "t:begin", 0, (int64_t)i);
    for (uint64_t i = 0; i < depth / 2; i++)
        give(&driver, "t:end", 0, (int64_t)(depth + i));
    give(&driver, "t:none", 0, (int64_t)(2 * depth)); /* drops the other half */
    for (uint64_t i = 0; i < depth; i++)
        give(&driver, "t:none", 0, (int64_t)(2 * depth));
    seconds = cpu_seconds() - seconds;
    counts = pairing_counts(driver.rules);
    CHECK(counts.spans == depth / 2 + 1 && counts.dropped == depth - depth / 2 &&
          counts.ends_unmatched == depth && counts.open == 0);
    driver_close(&driver);
    return seconds / (double)depth;
}

/* The cost of an event must not grow with the number of events. 4 allows for cache misses. */
static void check_linear(const char *what, double few, double many)
{
    printf("%s: %.0f ns each; with ten times as many %.0f ns each\n", what, few * 1e9, many * 1e9);
    CHECK(many < few * 4);
}

TEST(test_bounds)
{
    check_linear("begins that never end, one key each", cost_of_begins(200000, UINT64_MAX),
                 cost_of_begins(2000000, UINT64_MAX));
    check_linear("begins of a million keys", cost_of_begins(200000, 100000),
                 cost_of_begins(2000000, 1000000));
    check_linear("a stack", cost_of_stack(10000), cost_of_stack(100000));
}

/* ---- forms ----------------------------------------------------------------------------------- */

static const char *tag_of(const struct span *span, const char *key)
{
    static char value[256];

    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        const struct text text = text_cut(span_entry_value(entry), sizeof(value) - 1);

        if (entry->type == SPAN_ANNOTATION || !text_is(span_entry_key(entry), key))
            continue;
        if (entry->type == SPAN_TAG_INTEGER)
            (void)snprintf(value, sizeof(value), "%" PRId64, entry->integer);
        else
            *text_copy(value, text) = '\0';
        return value;
    }
    return "none";
}

TEST(test_parent_of_field)
{
    struct driver driver;
    const struct span *a, *b;

    CHECK(driver_open(&driver,
                      "[span a]\nevent = t:a with d us\nparent = traceparent tp\n"
                      "[span b]\nevent = t:b with d us\nparent = ids trace span\n",
                      10));
    DRIVER_SEND(&driver, "t:a", 1000000, GIVEN_NUMBER("d", 5),
                GIVEN_TEXT("tp", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    DRIVER_SEND(&driver, "t:b", 1000000, GIVEN_NUMBER("d", 5),
                GIVEN_TEXT("trace", "8448eb211c80319c"), GIVEN_NUMBER("span", 77));
    a = driver_span(&driver, 0);
    b = driver_span(&driver, 1);
    CHECK(a->trace_id_high == UINT64_C(0x0af7651916cd43dd));
    CHECK(a->trace_id == UINT64_C(0x8448eb211c80319c) && b->trace_id == a->trace_id);
    CHECK(a->parent_id == UINT64_C(0xb7ad6b7169203331) && b->parent_id == 77);
    CHECK(a->start_ns == 995000 && a->end_ns == 1000000);
    /* the header is malformed: the span begins a trace */
    DRIVER_SEND(&driver, "t:a", 1000000, GIVEN_NUMBER("d", 5),
                GIVEN_TEXT("tp", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333x-01"));
    CHECK(driver_span(&driver, 2)->parent_id == 0 && driver_span(&driver, 2)->trace_id != 0);
    driver_close(&driver);
}

TEST(test_lookup_and_tags)
{
    struct driver driver;
    const struct span *span;

    CHECK(driver_open(&driver,
                      "[lookup symbol]\nevent = t:name\nkey = cb\nvalue = sym\n"
                      "[span {symbol(cb)} {x}]\nbegin = t:b\nend = t:e\nkey = cb\n"
                      "tags = cb name=symbol(cb) late\nerror = ret < 0 as ret\nkind = server\n"
                      "service = svc-{cb}\njoin = cb\n",
                      10));
    DRIVER_SEND(&driver, "t:name", 1, GIVEN_NUMBER("cb", 64), GIVEN_TEXT("sym", "main()"));
    DRIVER_SEND(&driver, "t:b", 10, GIVEN_NUMBER("cb", 64));
    DRIVER_SEND(&driver, "t:e", 30, GIVEN_NUMBER("cb", 64), GIVEN_NUMBER("ret", -5),
                GIVEN_TEXT("late", "yes"));
    CHECK(driver.count == 1);
    span = driver_span(&driver, 0);
    CHECK(text_is(span_name(span), "main() ?"));
    CHECK(text_is(span->endpoint->service, "svc-64"));
    CHECK_TEXT(tag_of(span, "cb"), "64");
    CHECK_TEXT(tag_of(span, "name"), "main()");
    CHECK_TEXT(tag_of(span, "late"), "yes");
    CHECK_TEXT(tag_of(span, "error"), "-5");
    CHECK(strlen(tag_of(span, "blkin.join")) == 16);
    CHECK_TEXT(tag_of(span, "lttng.vtid"), "2");
    CHECK(span->kind == SPAN_SERVER);
    driver_close(&driver);
}

/* An event with a duration (a real number) beyond any clock makes no span. */
TEST(test_times_absurd)
{
    static const struct {
        double seconds;
        uint64_t spans;
    } cases[] = {{2.5, 1}, {0, 1}, {1e10, 0}, {1e12, 0}, {1e300, 0}, {-1, 0}, {NAN, 0}};
    struct driver driver;

    CHECK(driver_open(&driver, "[span s]\nevent = t:w with d s\n", 10));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        DRIVER_SEND(&driver, "t:w", 10000000000, GIVEN_REAL("d", cases[i].seconds));
        CHECK(driver.count == cases[i].spans);
        if (driver.count)
            CHECK(driver.spans[0]->span.start_ns ==
                  10000000000 - (int64_t)(cases[i].seconds * 1e9));
        driver_forget(&driver);
    }
    CHECK(pairing_counts(driver.rules).unusable == 5);
    driver_close(&driver);
}

/* A field that is NaN fulfils no condition except !=. */
TEST(test_not_a_number)
{
    struct driver driver;

    CHECK(driver_open(
        &driver,
        "[span e]\nevent = t:w if x == 0 with d us\n[span g]\nevent = t:w if x >= 0 with d "
        "us\n[span l]\nevent = t:w if x <= 0 with d us\n[span n]\nevent = t:w if x != 0 "
        "with d us\n",
        10));
    DRIVER_SEND(&driver, "t:w", 1000000, GIVEN_REAL("x", NAN), GIVEN_NUMBER("d", 5));
    CHECK(driver.count == 1 && text_is(span_name(&driver.spans[0]->span), "n"));
    driver_close(&driver);
}

/* A tag reports that events were lost while the span was open. */
TEST(test_loss)
{
    struct driver driver;
    const struct loss loss = {.origin = {.host = text_of("h")},
                              .has_times = true,
                              .begin_ns = 15,
                              .end_ns = 20,
                              .events = 3};

    CHECK(driver_open(&driver, "[span s]\nbegin = t:b\nend = t:e\nkey = k\n", 10));
    give(&driver, "t:b", 1, 10);
    assembler_note_loss(driver.assembler, &loss);
    give(&driver, "t:e", 1, 30);
    give(&driver, "t:b", 1, 40);
    give(&driver, "t:e", 1, 50);
    CHECK(strncmp(tag_of(driver_span(&driver, 0), "blkin.lost"), "up to 3", 7) == 0);
    CHECK_TEXT(tag_of(driver_span(&driver, 1), "blkin.lost"), "none");
    driver_close(&driver);
}

/* Without a thread's number there is no stack; a missing field is no key. */
TEST(test_keyless)
{
    struct driver driver;

    CHECK(driver_open(
        &driver, "[span s]\nbegin = t:b\nend = t:e\nkey = k\n[span u]\nbegin = t:b\nend = t:e\n",
        10));
    driver_send(&driver, "t:b", 10, 1, 0, DRIVER_FIELDS(GIVEN_NUMBER("k2", 1)));
    CHECK(pairing_counts(driver.rules).keyless == 2 && pairing_counts(driver.rules).begins == 0);
    driver_close(&driver);
}

/* Two begins at one time, and between them a begin at a later time: no span is its own parent. */
TEST(test_backwards)
{
    struct driver driver;

    CHECK(driver_open(&driver, "[span s]\nbegin = t:begin\nend = t:end\nparent = thread\n", 10));
    give(&driver, "t:begin", 0, 999);
    give(&driver, "t:begin", 0, 1000);
    give(&driver, "t:end", 0, 1001);
    give(&driver, "t:begin", 0, 999);
    give(&driver, "t:begin", 0, 999);
    give(&driver, "t:begin", 0, 1000);
    give(&driver, "t:begin", 0, 999);
    for (int64_t i = 0; i < 5; i++)
        give(&driver, "t:end", 0, 1002 + i);
    CHECK(driver.count == 6);
    for (size_t i = 0; i < driver.count; i++)
        CHECK(driver.spans[i]->span.parent_id != driver.spans[i]->span.id);
    driver_close(&driver);
}

/* ---- malformed rules files ------------------------------------------------------------------- */

TEST(test_errors)
{
    static const struct {
        const char *rules, *error;
    } cases[] = {
        {"", "rules \"f\": expected a section [span NAME], got none"},
        {"begin = a:b\n",
         "rules \"f\", line 1: expected [span NAME] before the first key, got \"begin = a:b\""},
        {"[span a]\nbegin = a:b\n", "rules \"f\", line 1: expected begin and end, or event, in the "
                                    "section, got \"a\""},
        {"# x\n[span a]\nbegin = ab\n",
         "rules \"f\", line 3: expected the name of an event, such as "
         "qemu:nbd_send_request, got \"ab\""},
        {"[span a]\nbegin = a:b if x = 1\n", "rules \"f\", line 2: expected FIELD == VALUE, with "
                                             "one of == != < > <= >=, got \"x = 1\""},
        {"[span a]\nbegin = a:b where x\n",
         "rules \"f\", line 2: expected NAME=FIELD after where, got \"x\""},
        {"[span a]\nbegin = a:b if x > 0.5\n",
         "rules \"f\", line 2: expected a whole number after < > <= >=, or a text in quotes, got "
         "\"x > 0.5\""},
        {"[span a]\nbegin = a:b if x > -9223372036854775809\n",
         "rules \"f\", line 2: expected a whole number after < > <= >=, or a text in quotes, got "
         "\"x > -9223372036854775809\""},
        {"[span a]\nbegin = a:b\nend = a:c\ntimeout = 5\n",
         "rules \"f\", line 4: expected a time with its unit, such as 20us, 5ms or 60s, got \"5\""},
        {"[span a]\nevent = a:b\n",
         "rules \"f\", line 2: expected EVENT with FIELD UNIT, EVENT from "
         "FIELD or EVENT until FIELD, got \"a:b\""},
        {"[span {x]\n", "rules \"f\", line 1: expected a } after {, got \"{x\""},
        {"[span a]\nbegin = a:b\nend = a:c\nparent = no by k\n",
         "rules \"f\", line 1: expected a section with a key, by its name, got \"no\""},
        {"[span {l(x)}]\n",
         "rules \"f\", line 1: expected the name of a [lookup NAME] above, got \"l\""},
        {"[span a]\nkey = a-b\n",
         "rules \"f\", line 2: expected the name of a field, such as handle, "
         "$vtid or request.ids[2], got \"a-b\""},
        {"[span a]\nkey = a b c d e f g h i j k l m n o p q\n",
         "rules \"f\", line 2: expected a key of at most 16 fields, got \"a b c d e f g h i j k l "
         "m n o p q\""},
        {"[span a]\nscope = x\n",
         "rules \"f\", line 2: expected thread, process, host or session, got \"x\""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct error error;
        struct rules *rules = rules_parse(text_of(cases[i].rules), "f", &error);

        CHECK(!rules);
        CHECK_TEXT(error.text, cases[i].error);
        rules_free(rules);
    }
}

CHECK_MAIN_WITH(dice_state = seed_begin(), (void)0)

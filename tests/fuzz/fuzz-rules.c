/*
 * Fuzzes rules. Any text is accepted, or refused with a message. With any events for good rules,
 * the sums of the counts are right, and the number of open spans stays within its limit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/rules/pairing.h"

static const char good_rules[] =
    "[lookup name]\nevent = a:n\nkey = k\nvalue = s\n"
    "[span {name(k)} {s}]\nbegin = a:b if n < 200\nend = a:e\nat = a:m as stage\n"
    "mark = a:m where s=k as mark\nend = a:m if n > 5 where k=n s=k\nkey = k s\ntags = "
    "all\nerror = n == 3 as s\ntimeout = 300ns\n"
    "[span stack {n}]\nbegin = a:b\nend = a:?\nparent = thread\ntags = x=s k\nleast = 2ns\n"
    "[span deep]\nbegin = a:m\nend = a:e\nkey = k\nstack = yes\nscope = thread\n"
    "parent = {name(k)} {s} by n s\n"
    "[span ids]\nevent = a:* with n us\nparent = ids k n\nscope = session\njoin = k\n"
    "kind = server\n"
    "[span tp]\nevent = a:m until k ns\nparent = traceparent s\nservice = {s}\n";

static struct fuzz source;

struct rules_run {
    struct assembler *assembler;
    struct chain chain;
    struct stage *rules;
};

static void deliver(void *context, const struct span *span)
{
    (void)context;
    REQUIRE(span->id && (span->trace_id | span->trace_id_high) && span->endpoint);
    REQUIRE(span->end_ns >= span->start_ns && span->parent_id != span->id);
}

static void take_span(void *context, struct span *span)
{
    struct rules_run *run = context;

    chain_take(&run->chain, span, assembler_now(run->assembler));
}

static void take_event(void *context, const struct event *event)
{
    pairing_take(((struct rules_run *)context)->rules, event);
}

static void run_open(struct rules_run *run)
{
    struct error error;

    run->rules = pairing_new(
        &(struct pairing_options){.rules = rules_parse(text_of(good_rules), "good", &error),
                                  .max_open = 12,
                                  .max_open_bytes = 6000});
    run->assembler = assembler_new(
        &(struct assembler_options){.rule = take_event, .max_open_spans = 1}, take_span, run);
    REQUIRE(run->rules && pairing_rules(run->rules) && run->assembler);
    chain_init(&run->chain, deliver, run);
    chain_append(&run->chain, run->rules);
    pairing_set_assembler(run->rules, run->assembler);
}

static void run_check(struct rules_run *run)
{
    const struct rule_counts counts = pairing_counts(run->rules);

    REQUIRE(counts.begins == counts.spans + counts.shorter + counts.begun_again + counts.dropped +
                                 counts.unmatched + counts.unusable + counts.open);
    REQUIRE(counts.open <= 12);
    REQUIRE(chain_adds_up(&run->chain));
}

static void run_close(struct rules_run *run)
{
    run_check(run);
    pairing_flush(run->rules);
    REQUIRE(pairing_counts(run->rules).open == 0 && pairing_counts(run->rules).open_bytes == 0);
    run_check(run);
    chain_free(&run->chain);
    assembler_free(run->assembler);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct rule_value take_value(void)
{
    struct rule_value value = {.type = (enum rule_value_type)(take(&source, 1) % VALUE_UNREAD)};

    value.integer = take(&source, 1) % 8;
    if (value.type == VALUE_INTEGER && take(&source, 1) % 8 == 0)
        value.integer = take(&source, 8);
    value.is_negative = value.type == VALUE_INTEGER && (int64_t)value.integer < 0;
    if (value.type == VALUE_REAL)
        value.real = (double)take(&source, 2) - 30000;
    if (value.type == VALUE_TEXT)
        value.text = take_bytes(&source, take(&source, 1) % 70);
    return value;
}

static void give_event(struct rules_run *run, int64_t *now_ns)
{
    static const char *const names[] = {"a:n", "a:b", "a:e", "a:m"};
    struct rule_value values[16];
    struct rule_event ruled = {.values = values};
    struct event event = {.kind = EVENT_RULE, .ruled = &ruled};
    bool has_no_memory = false;
    const unsigned choice = (unsigned)take(&source, 1);

    ruled.class =
        rules_class(pairing_rules(run->rules), text_of(names[choice % 4]), &has_no_memory);
    REQUIRE(ruled.class && ruled.class->field_count <= 16);
    for (size_t i = 0; i < ruled.class->field_count; i++)
        values[i] = take_value();
    *now_ns += choice / 4 % 4 ? (int64_t)(choice / 16) : -1;
    event.time_ns = *now_ns;
    event.origin = (struct origin){.host = text_of(choice & 32 ? "h" : "i"),
                                   .process = text_of(choice & 16 ? "p" : "q"),
                                   .pid = choice / 64 % 2,
                                   .pid_namespace = choice % 3,
                                   .tid = choice / 128 % 2 + (choice % 7 ? 1 : 0)};
    assembler_add(run->assembler, &event);
    run_check(run);
}

static void try_events(void)
{
    struct rules_run run;
    int64_t now_ns = 1000;

    run_open(&run);
    while (source.at < source.end)
        give_event(&run, &now_ns);
    run_close(&run);
}

static void try_text(void)
{
    const struct text text = take_bytes(&source, SIZE_MAX);
    struct error error = {""};
    struct rules *rules = rules_parse(text, "f", &error);
    bool has_no_memory = false;

    REQUIRE((rules != NULL) == (error.text[0] == '\0'));
    if (rules)
        (void)rules_class(rules, text_of("a:b"), &has_no_memory);
    rules_free(rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    source = (struct fuzz){data, data + size};
    if (take(&source, 1) % 4 == 0)
        try_text();
    else
        try_events();
    return 0;
}

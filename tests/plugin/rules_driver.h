/*
 * Runs rules without a trace: gives made-up events to pairing, and stores the spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RULES_DRIVER_H
#define TESTS_RULES_DRIVER_H

#include "babeltrace-plugin/rules/pairing.h"

#include "check.h"
#include "span_text.h"

#include <stdlib.h>

#define DRIVER_SPANS 64

struct driver {
    struct assembler *assembler;
    struct chain chain;
    struct stage *rules;
    /* since the last driver_forget() */
    struct span_copy *spans[DRIVER_SPANS];
    size_t count;
    uint64_t spans_ever;
};

static void driver_deliver(void *context, const struct span *span)
{
    struct driver *driver = context;

    driver->spans_ever++;
    if (driver->count < DRIVER_SPANS)
        driver->spans[driver->count++] = span_copy_new(span, 0);
}

static void driver_take_span(void *context, struct span *span)
{
    struct driver *driver = context;

    chain_take(&driver->chain, span, assembler_now(driver->assembler));
}

static void driver_take_event(void *context, const struct event *event)
{
    struct driver *driver = context;

    pairing_take(driver->rules, event);
}

static void driver_forget(struct driver *driver)
{
    while (driver->count)
        free(driver->spans[--driver->count]);
}

/* Returns false if the rules are wrong, or memory is short. */
static bool driver_open(struct driver *driver, const char *rules, uint64_t max_open)
{
    struct error error;
    const struct pairing_options options = {
        .rules = rules_parse(text_of(rules), "test", &error),
        .max_open = max_open,
        .max_open_bytes = UINT64_C(1) << 40,
    };

    *driver = (struct driver){.count = 0};
    CHECK_TEXT(error.text, "");
    if (!options.rules)
        return false;
    driver->rules = pairing_new(&options);
    driver->assembler =
        assembler_new(&(struct assembler_options){.rule = driver_take_event, .max_open_spans = 1},
                      driver_take_span, driver);
    chain_init(&driver->chain, driver_deliver, driver);
    if (!driver->rules || !driver->assembler)
        return false;
    chain_append(&driver->chain, driver->rules);
    pairing_set_assembler(driver->rules, driver->assembler);
    return true;
}

static void driver_close(struct driver *driver)
{
    driver_forget(driver);
    chain_free(&driver->chain);
    assembler_free(driver->assembler);
}

struct driver_field {
    const char *name; /* NULL: the end of the list */
    struct rule_value value;
};

#define GIVEN_NUMBER(name, number)                                                            \
    {                                                                                         \
        name,                                                                                 \
        {                                                                                     \
            .type = VALUE_INTEGER, .is_negative = (number) < 0, .integer = (uint64_t)(number) \
        }                                                                                     \
    }
#define GIVEN_TEXT(name, given)                        \
    {                                                  \
        name,                                          \
        {                                              \
            .type = VALUE_TEXT, .text = text_of(given) \
        }                                              \
    }
#define GIVEN_REAL(name, number)               \
    {                                          \
        name,                                  \
        {                                      \
            .type = VALUE_REAL, .real = number \
        }                                      \
    }
#define DRIVER_FIELDS(...) \
    ((const struct driver_field[]){__VA_ARGS__, {NULL, {.type = VALUE_NONE}}})
#define DRIVER_SEND(driver, name, time_ns, ...) \
    driver_send(driver, name, time_ns, 1, 2, DRIVER_FIELDS(__VA_ARGS__))

/* Gives an event. A rule must name the event. Fields that no rule reads are ignored. */
static void driver_send(struct driver *driver, const char *name, int64_t time_ns, int64_t pid,
                        int64_t tid, const struct driver_field *fields)
{
    struct rules *rules = pairing_rules(driver->rules);
    struct rule_value values[64] = {{0}};
    bool has_no_memory = false;
    struct rule_event ruled = {.class = rules_class(rules, text_of(name), &has_no_memory),
                               .values = values};
    struct event event = {
        .kind = EVENT_RULE,
        .time_ns = time_ns,
        .origin = {.host = text_of("h"), .process = text_of("prog"), .pid = pid, .tid = tid},
        .ruled = &ruled};

    CHECK(ruled.class != NULL);
    for (; fields->name; fields++) {
        for (size_t i = 0; i < ruled.class->field_count; i++) {
            if (text_is(rules->fields[ruled.class->fields[i]], fields->name))
                values[i] = fields->value;
        }
    }
    assembler_add(driver->assembler, &event);
}

/* Returns a span by its number since the last driver_forget(); an empty span if there is none. */
static const struct span *driver_span(const struct driver *driver, size_t number)
{
    static const struct span none;

    CHECK(number < driver->count);
    return number < driver->count ? &driver->spans[number]->span : &none;
}

#endif

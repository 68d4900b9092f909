/*
 * A slow model of rules: a list of all open spans, searched from its end. Written from the
 * contract, not from the code. test-pairing.c compares pairing with the model.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RULES_MODEL_H
#define TESTS_RULES_MODEL_H

#include "babeltrace-plugin/rules/pairing.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { KEYED, STACKED, OUTER, INNER, CHILD, WHOLE, MODEL_RULES };

static const char model_rules[] = "[span keyed {n}]\n"
                                  "begin = t:begin\nat = t:at as stage\nend = t:end\n"
                                  "key = k\ntags = n\ntimeout = 300ns\n"
                                  "[span stacked]\n"
                                  "begin = t:begin if n > 3\nend = t:end if n > 3\n"
                                  "key = k\nscope = thread\nstack = yes\nparent = thread\n"
                                  "[span outer]\n"
                                  "begin = t:enter\nend = t:exit\nparent = thread\n"
                                  "[span inner]\n"
                                  "begin = t:go\nend = t:stop\nparent = thread\ntimeout = 200ns\n"
                                  "[span child]\n"
                                  "begin = t:enter\nend = t:stop\nkey = k\nscope = host\n"
                                  "parent = keyed {n} by k\nleast = 5ns\n"
                                  "[span whole]\n"
                                  "event = t:whole with n\nparent = thread\n";

struct model_event {
    enum { BEGIN, MODEL_AT, END, ENTER, EXIT, GO, STOP, MODEL_WHOLE, MODEL_EVENTS } what;
    int64_t time_ns;
    int64_t pid, tid;
    uint64_t k;
    int64_t n;
};

struct model_open {
    uint64_t serial, parent;
    int rule;
    struct model_event event;
    bool on_stack;
    unsigned stages; /* child spans of a rule */
};

struct model_span {
    int rule;
    int64_t start_ns, end_ns, n;
    uint64_t serial, parent; /* parent 0: none */
};

#define MODEL_OPEN 64

struct model {
    struct model_open open[MODEL_OPEN + 1]; /* oldest first */
    int count, open_max;
    uint64_t serial;
    struct rule_counts counts[MODEL_RULES];
    struct model_span spans[16]; /* that the last event ended */
    int span_count;
};

static void model_remove(struct model *model, int i)
{
    memmove(&model->open[i], &model->open[i + 1],
            (size_t)(model->count - i - 1) * sizeof(model->open[0]));
    model->count--;
}

static bool model_same_thread(const struct model_event *a, const struct model_event *b)
{
    return a->pid == b->pid && a->tid == b->tid;
}

/* Returns the index of the rule's newest open span that the event matches; -1: none. */
static int model_find(const struct model *model, int rule, const struct model_event *event)
{
    for (int i = model->count - 1; i >= 0; i--) {
        const struct model_open *open = &model->open[i];

        if (open->rule != rule)
            continue;
        if (rule == KEYED && open->event.k == event->k && open->event.pid == event->pid)
            return i;
        if (rule == STACKED && open->event.k == event->k && model_same_thread(&open->event, event))
            return i;
        if ((rule == OUTER || rule == INNER) && model_same_thread(&open->event, event))
            return i;
        if (rule == CHILD && open->event.k == event->k)
            return i;
    }
    return -1;
}

static uint64_t model_parent(struct model *model, int rule, const struct model_event *event)
{
    uint64_t parent = 0;

    if (rule == KEYED)
        return 0;
    if (rule == CHILD) {
        const int i = model_find(model, KEYED, event);

        parent = i < 0 ? 0 : model->open[i].serial;
    } else {
        for (int i = 0; i < model->count; i++) {
            if (model->open[i].on_stack && model_same_thread(&model->open[i].event, event))
                parent = model->open[i].serial;
        }
    }
    model->counts[rule].with_parent += parent != 0;
    model->counts[rule].without_parent += parent == 0;
    return parent;
}

static void model_begin(struct model *model, int rule, const struct model_event *event)
{
    struct rule_counts *counts = &model->counts[rule];
    const int old = model_find(model, rule, event);
    struct model_open open = {.rule = rule, .event = *event};

    counts->begins++;
    if (old >= 0 && (rule == KEYED || rule == CHILD)) {
        counts->begun_again++;
        model_remove(model, old);
    }
    open.parent = model_parent(model, rule, event);
    open.serial = ++model->serial;
    open.on_stack = rule == STACKED || rule == OUTER || rule == INNER;
    model->open[model->count++] = open;
    if (model->count > model->open_max) {
        model->counts[model->open[0].rule].unmatched++;
        model->counts[model->open[0].rule].evicted++;
        model_remove(model, 0);
    }
}

static void model_end(struct model *model, int rule, const struct model_event *event)
{
    const int i = model_find(model, rule, event);
    struct rule_counts *counts = &model->counts[rule];
    struct model_open open;

    if (i < 0) {
        counts->ends_unmatched++;
        return;
    }
    open = model->open[i];
    for (int k = model->count - 1; (rule == OUTER || rule == INNER) && k > i; k--) {
        struct model_open *above = &model->open[k];

        if (!above->on_stack || !model_same_thread(&above->event, event))
            continue;
        above->on_stack = false;
        if (above->rule == OUTER || above->rule == INNER) {
            model->counts[above->rule].dropped++;
            model_remove(model, k);
        }
    }
    model_remove(model, i);
    if (rule == CHILD && event->time_ns - open.event.time_ns < 5) {
        counts->shorter++;
        return;
    }
    counts->spans++;
    counts->stages += open.stages;
    model->spans[model->span_count++] = (struct model_span){
        rule, open.event.time_ns, event->time_ns, open.event.n, open.serial, open.parent};
}

static void model_whole(struct model *model, const struct model_event *event)
{
    struct rule_counts *counts = &model->counts[WHOLE];

    counts->begins++;
    if (event->n < 0 || event->n > event->time_ns) {
        counts->unusable++;
        return;
    }
    counts->spans++;
    model->spans[model->span_count++] =
        (struct model_span){WHOLE,    event->time_ns - event->n, event->time_ns,
                            event->n, ++model->serial,           model_parent(model, WHOLE, event)};
}

static void model_expire(struct model *model, int64_t now_ns)
{
    for (int i = model->count - 1; i >= 0; i--) {
        const struct model_open *open = &model->open[i];
        const int64_t timeout_ns = open->rule == KEYED   ? 300
                                   : open->rule == INNER ? 200
                                                         : INT64_C(60000000000);

        if (open->event.time_ns + timeout_ns >= now_ns)
            continue;
        model->counts[open->rule].unmatched++;
        model_remove(model, i);
    }
}

/* Removes expired spans, then applies the rules that name the event. */
static void model_take(struct model *model, const struct model_event *event)
{
    int open;

    model->span_count = 0;
    model_expire(model, event->time_ns);
    switch (event->what) {
    case BEGIN:
        model_begin(model, KEYED, event);
        if (event->n > 3)
            model_begin(model, STACKED, event);
        break;
    case MODEL_AT:
        open = model_find(model, KEYED, event);
        if (open < 0)
            model->counts[KEYED].stages_unmatched++;
        else
            model->open[open].stages++;
        break;
    case END:
        model_end(model, KEYED, event);
        if (event->n > 3)
            model_end(model, STACKED, event);
        break;
    case ENTER:
        model_begin(model, OUTER, event);
        model_begin(model, CHILD, event);
        break;
    case EXIT:
        model_end(model, OUTER, event);
        break;
    case GO:
        model_begin(model, INNER, event);
        break;
    case STOP:
        model_end(model, INNER, event);
        model_end(model, CHILD, event);
        break;
    case MODEL_WHOLE:
        model_whole(model, event);
        break;
    case MODEL_EVENTS:
        break;
    }
}

#endif

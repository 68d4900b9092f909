/*
 * Pairing: makes spans of events that rules name, and counts all begins and ends.
 *
 * Pairing is the first stage of the chain, and passes all spans on. The assembler gives it events
 * (EVENT_RULE), and takes its spans like the spans that the assembler makes.
 *
 * A span is open from its begin to its end. Open spans are limited in number, bytes and time; above
 * a limit the oldest span is evicted. At all times, for each rule:
 *
 *     begins = spans + shorter + begun again + dropped + unmatched + unusable + open
 *
 * All parts of an event are untrusted. Time is trace time. The same events make the same spans with
 * the same ids. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULES_PAIRING_H
#define BLKIN_RULES_PAIRING_H

#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/stages/chain.h"
#include "rules.h"

#include <stdint.h>
#include <stdio.h>

struct rule_counts {
    uint64_t begins;      /* also events that are a whole span; the sum of the next members */
    uint64_t spans;       /* made spans */
    uint64_t shorter;     /* shorter than `least` */
    uint64_t begun_again; /* the same key began again */
    uint64_t dropped;     /* from a thread's stack: a span around them ended */
    uint64_t unmatched;   /* no end in time, nor before the trace's end; or evicted */
    uint64_t unusable;    /* no memory, or an impossible duration */
    uint64_t open;        /* current number */
    /* not in the sum */
    uint64_t ends_unmatched;
    uint64_t stages_unmatched; /* stages and marks without a begin */
    uint64_t keyless;          /* events without a field of their key */
    uint64_t evicted;          /* of the unmatched: to make room */
    uint64_t stages;           /* spans made of stages */
    uint64_t with_parent;      /* of the spans that asked for a parent */
    uint64_t without_parent;
    uint64_t no_room;    /* values, stages, lookups: no memory, or at a limit */
    uint64_t open_bytes; /* current size */
};

/* The fields of an event, each read when first needed. The trace reader fills in the struct, and
 * may use it again for events of the same class, host and clock. */
struct rule_event {
    const struct rule_class *class;
    struct rule_value *values; /* one for each slot of the class */
    void (*read)(struct rule_event *event, size_t slot);
    /* The event's own members, for `tags = all`: false after the last one. NULL: none. */
    bool (*member)(struct rule_event *event, size_t i, struct text *name, struct rule_value *value);
    struct text (*process)(struct rule_event *event); /* NULL: see origin.process */
    /* Set by pairing: the source of all events in this struct. NULL before the first event. */
    struct event_source *source;
    uint64_t host; /* a hash of its name */
};

struct pairing_options {
    struct rules *rules; /* pairing owns the rules; NULL: none */
    uint64_t max_open;
    uint64_t max_open_bytes;
};

/* Returns NULL when out of memory; then the rules are freed, too. */
struct stage *pairing_new(const struct pairing_options *options);

/* Sets the assembler that gives events and takes spans; called before the first event. The
 * assembler must live longer than the stage. */
void pairing_set_assembler(struct stage *stage, struct assembler *assembler);

/* Returns the rules, for trace readers; NULL: no rules. */
struct rules *pairing_rules(struct stage *stage);

/* Takes an EVENT_RULE when the assembler's time has reached the event. */
void pairing_take(struct stage *stage, const struct event *event);

/* No further event will arrive: open spans count as unmatched. */
void pairing_flush(struct stage *stage);

/* Stores examples for pairing_report(); called before the first event. Returns false when out of
 * memory. */
bool pairing_store_examples(struct stage *stage);

/* Writes the counts of each rule, and its examples. Needs pairing_store_examples(). */
void pairing_report(const struct stage *stage, FILE *file);

/* Returns the sums of all rules. */
struct rule_counts pairing_counts(const struct stage *stage);

#endif

/*
 * Pairing: events that a rule names in, spans out, all begins and ends counted.
 *
 * It is a stage by its life (saved, restored and handed over with the others), which passes all
 * spans on: what it takes are events, from the assembler (EVENT_RULE), and the spans that it makes
 * go the way of the assembler's.
 *
 * A span is open from its begin to its end. What is open is bounded in number, bytes and time; of
 * too many the oldest goes. At all times, for each rule:
 *
 *     begins = spans + shorter + begun again + dropped + unmatched + unusable + open
 *
 * Everything in an event is untrusted. Time is trace time. The same events make the same spans with
 * the same ids. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULES_PAIRING_H
#define BLKIN_RULES_PAIRING_H

#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/stages/chain.h"
#include "rules.h"

/* The fields of an event, each read when it is first asked for. Who reads the trace fills it in. */
struct rule_event {
    const struct rule_class *class;
    struct rule_value *values; /* of each of the class's places */
    void (*read)(struct rule_event *event, size_t place);
    /* The event's own members, for `tags = all`: false after the last one. NULL: none. */
    bool (*member)(struct rule_event *event, size_t i, struct text *name, struct rule_value *value);
    struct text (*process)(struct rule_event *event); /* NULL: origin.process tells */
};

struct rule_counts {
    uint64_t begins;      /* with those of events that are all of a span; the next ones add up */
    uint64_t spans;       /* made */
    uint64_t shorter;     /* than `least` */
    uint64_t begun_again; /* the same key began once more */
    uint64_t dropped;     /* from a thread's stack: what was around them ended */
    uint64_t unmatched;   /* no end came in time, or before the trace's end, or they made room */
    uint64_t unusable;    /* no memory, or a duration that makes no sense */
    uint64_t open;        /* now */
    /* in no sum */
    uint64_t ends_unmatched;
    uint64_t stages_unmatched; /* stages and marks without a begin */
    uint64_t keyless;          /* events without a field of their key */
    uint64_t evicted;          /* of those unmatched: to make room */
    uint64_t stages;           /* spans made of stages */
    uint64_t with_parent;      /* of those that asked for a parent */
    uint64_t without_parent;
    uint64_t no_room;    /* values, stages, lookups: no memory, or a bound */
    uint64_t open_bytes; /* now */
};

struct pairing_options {
    struct rules *rules; /* taken over; NULL: there are none */
    uint64_t max_open;
    uint64_t max_open_bytes;
};

/* NULL when out of memory; the rules are freed then, too. */
struct stage *pairing_new(const struct pairing_options *options);

/* Where events come from and spans go to, before the first event; it must live longer. */
void pairing_set_assembler(struct stage *stage, struct assembler *assembler);

/* For who reads a trace; NULL: there are none. */
struct rules *pairing_rules(struct stage *stage);

/* An EVENT_RULE, when the assembler's time has reached it. */
void pairing_take(struct stage *stage, const struct event *event);

/*
 * Makes an event whose fields are read one that can be kept: they are put into the buffer, to which
 * log points then. False: there is no memory.
 */
bool pairing_pack(struct stage *stage, struct event *event, struct buffer *buffer);

/* No other event will come: what is open is counted as unmatched. */
void pairing_flush(struct stage *stage);

/* Of all rules, or of one. */
struct rule_counts pairing_counts(const struct stage *stage);
struct rule_counts pairing_counts_of(const struct stage *stage, size_t rule);

#endif

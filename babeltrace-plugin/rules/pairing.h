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
#include "counts.h"
#include "rules.h"

#include <stdio.h>

/*
 * The fields of an event, each read when it is first asked for. Who reads the trace fills it in,
 * and may use it again for events of the same class, host and clock.
 */
struct rule_event {
    const struct rule_class *class;
    struct rule_value *values; /* of each of the class's places */
    void (*read)(struct rule_event *event, size_t place);
    /* The event's own members, for `tags = all`: false after the last one. NULL: none. */
    bool (*member)(struct rule_event *event, size_t i, struct text *name, struct rule_value *value);
    struct text (*process)(struct rule_event *event); /* NULL: origin.process tells */
    /* Pairing's own: where all events come from that this is used for. NULL before the first. */
    struct event_source *source;
    uint64_t host; /* a hash of its name */
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

/* No other event will come: what is open is counted as unmatched. */
void pairing_flush(struct stage *stage);

/* For pairing_report(), before the first event. False: there is no memory. */
bool pairing_keep_examples(struct stage *stage);

/* Each rule with its counts, and an example of each. */
void pairing_report(const struct stage *stage, FILE *file);

/* Of all rules, or of one. */
struct rule_counts pairing_counts(const struct stage *stage);
struct rule_counts pairing_counts_of(const struct stage *stage, size_t rule);

#endif

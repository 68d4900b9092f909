/*
 * Receives spans of any OpenTelemetry SDK: OTLP over HTTP with protobuf, on TCP and at a Unix
 * socket. Holds the newest spans in memory, and gives an alarm for each slow or failed span. Gives
 * the spans of wanted traces unchanged, with their resources and scopes.
 *
 * Each sender (otlp_peers.h) has a share of connections, memory and alarms. If it needs more, its
 * requests are refused, its oldest spans overwritten, or its alarms suppressed: not those of
 * others.
 *
 *     requests = taken + refused, by cause + cut off + in progress
 *     spans in = held + overwritten + refused + passed on
 *
 * All functions run in the loop's thread. No function blocks.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_IN_H
#define BLKIN_TOOLS_OTLP_IN_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/printer.h"
#include "sdk_store.h"
#include "tools/base/loop.h"
#include "libblkin/policy/slow_rules.h"
#include "otlp_decode.h"
#include "tools/base/payer.h"

#include <jansson.h>

/*
 * Finds slow and failed spans of SDKs by the rules of programs with libblkin
 * (tools/base/host_rules.h), with the same limit of alarms.
 *
 * A rule of errors is for all spans. A rule of durations is for spans at which a request enters a
 * process (server, consumer) or begins (no parent): they contain the other spans.
 */

/* A slow or failed span. The text lives until the callback returns. */
struct otlp_alarm {
    uint64_t trace_id_high, trace_id; /* both 0: the alarm only reports `dropped` */
    uint64_t duration_ns;
    uint32_t dropped;   /* alarms of this rule that limits suppressed since its last alarm */
    struct text why;    /* the rule */
    const char *sender; /* the name of its payer; NULL: of several */
};

typedef void otlp_alarm_fn(void *context, const struct otlp_alarm *alarm);

/* The owner sets alarm and context; the other members are 0 at first. */
struct slow_spans {
    otlp_alarm_fn *alarm;
    void *context;
    struct blkin_slow_rules rules;
    uint32_t held_back[BLKIN_SLOW_RULES_MAX]; /* suppressed alarms of a rule, not yet reported */
};

/* Reads changed rules, and reports suppressed alarms by alarms without ids. The owner calls this
 * function at first, then about once a second. */
void slow_spans_refresh(struct slow_spans *slow);

/* Returns the first rule that fits, or BLKIN_SLOW_NO_RULE. */
unsigned slow_spans_find(const struct slow_spans *slow, const struct otlp_origin *origin,
                         const struct otlp_span *span);

/* Gives an alarm of the rule. Returns false if the sender's rate suppresses the alarm: then the
 * rule's next alarm counts it in `dropped`. */
bool slow_spans_give(struct slow_spans *slow, unsigned rule, struct payer *sender,
                     const struct otlp_span *span);

/* Returns {"rules": [...], "wrong": ...}; NULL: out of memory. */
json_t *slow_spans_json(const struct slow_spans *slow);

/* otlp_in_open() copies the texts, because a reload frees them. */
struct otlp_in_options {
    const char *listen;   /* "[ADDRESS:]PORT", such as "127.0.0.1:4318"; NULL or "": no port */
    const char *socket;   /* the path of a Unix socket; NULL or "": no socket */
    uint64_t store_bytes; /* memory for spans */
    uint64_t spans_per_s; /* of one sender; requests beyond this rate are refused; 0: no limit */
};

struct otlp_in_callbacks {
    otlp_alarm_fn *alarm;
    /* Takes a span in place of the store. Returns false to leave the span to the store. May be
     * NULL. */
    bool (*span)(void *context, const struct otlp_origin *origin, const struct otlp_span *span);
    void *context;
};

struct otlp_in;

/* Listens. Returns NULL with error set. */
struct otlp_in *otlp_in_open(struct loop *loop, const struct otlp_in_options *options,
                             const struct otlp_in_callbacks *callbacks, struct error *error);
/* NULL is allowed. */
void otlp_in_close(struct otlp_in *in);

/* Sets spans_per_s, from the next request on. */
void otlp_in_limit(struct otlp_in *in, uint64_t spans_per_s);

/* Returns the memory of spans. An SDK sends a span up to some seconds after the span's end, so the
 * caller repeats sdk_memory_take() until then. */
const struct sdk_memory *otlp_in_memory(const struct otlp_in *in);

/* Returns the receiver's object for the status: addresses, held spans, the times from which all
 * spans are held, the rules in force, and all counts. Returns NULL when out of memory. */
json_t *otlp_in_json(const struct otlp_in *in);

/* Prints the metrics blkin_agent_otlp_*. */
void otlp_in_print(const struct otlp_in *in, struct printer *printer);

#endif

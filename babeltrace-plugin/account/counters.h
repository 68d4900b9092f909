/*
 * The account: every event and every span that came, and what has become of it.
 *
 *     events = in spans + foreign + ... (the parts of SECTION_EVENTS)
 *     spans finished = accepted + refused + ... + waiting (the parts of SECTION_SPANS)
 *     begins by rules = spans made + begun again + ... + open (the parts of SECTION_RULES)
 *     halves of requests = joined + unjoined + ... + waiting (the parts of SECTION_JOINS)
 *     spans in the spool = delivered + ... + waiting there (the parts of SECTION_SPOOL)
 *                        = found there + spooled
 *
 * One table in counters.c has all counters: the summary line, the progress line, the statistics
 * file and the Prometheus page are made from it, so a new counter is one line there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_COUNTERS_H
#define BLKIN_ACCOUNT_COUNTERS_H

#include "babeltrace-plugin/deliver/counts.h"
#include "babeltrace-plugin/rules/counts.h"
#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/stages/hosts.h"
#include "babeltrace-plugin/stages/join.h"
#include "babeltrace-plugin/stages/tail_stage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the trace reader and the decoder let through, or do not. */
struct input_counts {
    uint64_t events;
    uint64_t foreign;
    uint64_t unreadable;
    uint64_t newer;             /* of a newer version of the format */
    uint64_t alarms;            /* blkin:slow: what watches a program reads them */
    uint64_t unwanted;          /* of traces that only-traces does not name */
    uint64_t discarded_events;  /* lost by LTTng: full ring buffer */
    uint64_t discarded_packets; /* lost by LTTng: overwritten before they were read */
    uint64_t streams_open;      /* that have begun and not ended */
    int64_t trace_time_ns;      /* the trace was read up to here; 0: nothing yet */
    struct mark settled;        /* all that began before has its outcome; of a live session */
    uint64_t spans;             /* given to the stages; of these, */
    uint64_t spans_skipped;     /* left out, */
    uint64_t spans_sampled_out; /* and left out */
    struct rule_counts rules;
    struct join_counts join;
    struct hosts_counts hosts;
    struct tail_counts tail;
};

/* What a source has read so far. */
struct intake {
    struct input_counts counts;
    struct trace_position read; /* until where; only where events have an order */
};

/* Of the display itself. */
struct display_counts {
    uint64_t file_errors; /* the statistics file could not be written */
};

/* All counters at one time. */
struct counts {
    struct input_counts input;
    struct assembler_counts core;
    struct exporter_counts output;
    struct display_counts display;
};

/* What is known of a run besides its counters. */
struct run_info {
    char *endpoint;    /* see endpoint_shown() */
    int64_t start_ns;  /* these three since 1970 */
    int64_t events_ns; /* the counters of events are of this time */
    int64_t now_ns;    /* all others are of this */
    bool has_ended;
};

/* In the order of the way through the sink, and of the lines. */
enum section {
    SECTION_EVENTS,  /* a total, then the parts that add up to it */
    SECTION_MISSING, /* known only by the gap that it has left */
    SECTION_SPANS,   /* a total, then the parts that add up to it */
    SECTION_RULES,   /* a total, then the parts; in lines only where there are any */
    SECTION_JOINS,   /* a total, then the parts; in lines only where there are any */
    SECTION_SPOOL,   /* a total, then the parts; in lines only where there is a spool */
    SECTION_LOST,    /* by LTTng: never got here */
    SECTION_NOTES,   /* in no sum */
    METRIC_SECTIONS
};

enum counter_kind {
    METRIC_COUNTER, /* never falls */
    METRIC_GAUGE    /* as it is now */
};

struct counter {
    const char
        *name; /* in JSON; for Prometheus: blkin_NAME, and _total if it is a METRIC_COUNTER */
    enum counter_kind kind;
    enum section section;
    const char *label; /* in a line, after the number; NULL: in no line */
    size_t offset;     /* in struct counts */
    const char *help;  /* one line, without quotes and backslashes */
};

extern const struct counter counters[];
extern const size_t counters_count;

uint64_t counter_value(const struct counter *counter, const struct counts *counts);

/*
 * The stages' part of the account of spans: output is of the exporter alone before, and of all
 * spans after. What the exporter has got since the stages were counted is no more held by them.
 */
void counts_add_stages(struct counts *counts);

/* Do the sums hold? */
bool counts_add_up(const struct counts *counts);

enum line_style {
    LINE_WHOLE, /* all counters, but for notes that are 0: for the end */
    LINE_SHORT  /* totals, and what is not 0 */
};

#define COUNTS_LINE_MAX 6144

/* The account in one line, without a newline; needs no memory, as its lack may be what it tells. */
void counts_line(const struct counts *counts, enum line_style style, char line[COUNTS_LINE_MAX]);

#endif

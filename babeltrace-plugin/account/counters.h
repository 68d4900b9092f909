/*
 * The counters of every event and every span.
 *
 *     events = in spans + foreign + ... (the parts of SECTION_EVENTS)
 *     spans finished = accepted + refused + ... + waiting (the parts of SECTION_SPANS)
 *     begins by rules = spans made + ... + open (the parts of SECTION_RULES)
 *     servers' halves = joined + unjoined + ... + waiting (the parts of SECTION_JOINS)
 *     spans ever in the spool = delivered + ... + waiting (the parts of SECTION_SPOOL)
 *                             = found at the start + spooled
 *
 * Only the servers' halves of requests whose clients sent no ids count as halves.
 *
 * One table in counters.c has all counters. The summary line, the progress line, the statistics
 * file and the Prometheus page come from the table, so a new counter is one line there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_COUNTERS_H
#define BLKIN_ACCOUNT_COUNTERS_H

#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/deliver/queue.h"
#include "babeltrace-plugin/rules/pairing.h"
#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/stages/hosts.h"
#include "babeltrace-plugin/stages/join.h"
#include "babeltrace-plugin/stages/tail_stage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The counts of the trace reader and the decoder. */
struct input_counts {
    uint64_t events;
    uint64_t foreign;
    uint64_t unreadable;
    uint64_t newer;             /* of a newer version of the format */
    uint64_t alarms;            /* events blkin:slow, which add nothing to a span */
    uint64_t unwanted;          /* of traces, or of times, that the agent does not want */
    uint64_t discarded_events;  /* lost by LTTng: full ring buffer */
    uint64_t discarded_packets; /* lost by LTTng: overwritten before they were read */
    uint64_t streams_open;      /* begun and not ended */
    int64_t trace_time_ns;      /* the trace was read up to here; 0: nothing yet */
    struct mark settled;        /* all spans that began before this mark have an outcome */
    uint64_t spans;             /* given to the stages */
    uint64_t spans_skipped;     /* of these: an earlier run has sent them */
    uint64_t spans_sampled_out; /* of these: left out by tail sampling */
    struct rule_counts rules;
    struct join_counts join;
    struct hosts_counts hosts;
    struct tail_counts tail;
};

/* The progress of a source. */
struct intake {
    struct input_counts counts;
    struct trace_position read; /* after the last event; valid if events are in time order */
};

/* The counts of the display. */
struct display_counts {
    uint64_t file_errors; /* failed writes of the statistics file */
};

/* All counters at one time. */
struct counts {
    struct input_counts input;
    struct assembler_counts core;
    struct exporter_counts output;
    struct display_counts display;
};

/* Data of a run besides its counters. */
struct run_info {
    char *endpoint;    /* see endpoint_shown() */
    int64_t start_ns;  /* ns since 1970, as are the next two members */
    int64_t events_ns; /* when the counters of events were read */
    int64_t now_ns;    /* when the other counters were read */
    bool has_ended;
};

/* The sections are in the order in which a line shows them. */
enum section {
    SECTION_EVENTS,  /* a total, then the parts that add up to it */
    SECTION_MISSING, /* data that did not arrive, or had no room; in no sum */
    SECTION_SPANS,   /* a total, then the parts that add up to it */
    SECTION_RULES,   /* a total, then the parts; in lines only if not 0 */
    SECTION_JOINS,   /* a total, then the parts; in lines only if not 0 */
    SECTION_SPOOL,   /* a total, then the parts; in lines only with a spool */
    SECTION_LOST,    /* by LTTng, before the sink; in no sum */
    SECTION_NOTES,   /* in no sum */
    METRIC_SECTIONS
};

enum counter_kind {
    METRIC_COUNTER,  /* never falls */
    METRIC_GAUGE,    /* current value */
    METRIC_RARE = 2, /* a bit, with either: in lines only if not 0 */
};

struct counter {
    const char *name; /* in JSON; for Prometheus: blkin_NAME, with _total for a METRIC_COUNTER */
    unsigned kind;    /* enum counter_kind */
    enum section section;
    const char *label; /* in a line, after the number; NULL: in no line */
    size_t offset;     /* in struct counts */
    const char *help;  /* one line, without quotes and backslashes */
};

extern const struct counter counters[];
extern const size_t counters_count;

uint64_t counter_value(const struct counter *counter, const struct counts *counts);

/* Adds the spans that stages hold or left out to counts->output, which then counts all spans.
 * `held` is 0 if the exporter's counts are newer than the stages'. */
void counts_add_stages(struct counts *counts);

/* Returns whether the sums are right. */
bool counts_add_up(const struct counts *counts);

enum line_style {
    LINE_WHOLE, /* for the end: counters with a label, except notes and rare counters that are 0 */
    LINE_SHORT  /* totals, and other counters with a label that are not 0 */
};

#define COUNTS_LINE_MAX 6144

/* Writes the counters in one line, without a newline. Allocates nothing, so that it also works
 * when memory ran out. */
void counts_line(const struct counts *counts, enum line_style style, char line[COUNTS_LINE_MAX]);

#define PROMETHEUS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Prints one counter, or a page, in Prometheus' text format. */
void counter_print(struct printer *page, const struct counter *counter,
                   const struct counts *counts);
void prometheus_print(struct printer *page, const struct counts *counts,
                      const struct run_info *run);

#endif

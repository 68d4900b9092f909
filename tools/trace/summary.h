/*
 * Reads a whole source: its traces, and their statistics if the caller wants them. A document of
 * `blkin work --root` (tools/merged/merged.h) has only statistics. Also formats figures.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SUMMARY_H
#define BLKIN_TOOLS_SUMMARY_H

#include "babeltrace-plugin/model/statistics.h"
#include "tools/merged/merged.h"
#include "traces.h"

struct summary {
    struct names *names;
    struct statistics *statistics;
    struct span_list list;
    struct trace_list traces; /* none for a document */
    struct merged *merged;    /* the document with names and statistics; NULL: traces */
    struct trace_model model; /* of the last linked trace */
    double seconds;           /* from start_ns until end_ns */
    int64_t start_ns;         /* 0: unknown */
    int64_t end_ns;
    uint64_t spans;
    uint64_t traces_count; /* the traces in the statistics; 0: unknown */
};

/*
 * source: a path, "-" for the standard input, or an http(s) URL, also of a trace's page in Zipkin's
 * web interface. with_statistics: makes statistics, and accepts a document. Returns false after
 * printing an error, also for a source without spans. The caller calls summary_end() in any case.
 */
bool summary_load(const char *source, bool with_statistics, struct summary *summary);

/* The same for bytes that were read already, and without statistics. */
bool summary_load_bytes(const struct buffer *bytes, const char *source, struct summary *summary);

/* Frees the summary. Returns 1 if only a part of a damaged trace was read; if not, status. */
int summary_end(struct summary *summary, int status);

/* ---- operations, sorted by a key. An operation is a row of statistics, for one service and span
 * name; or an edge, for one calling and one called service */

enum operations_order {
    OPERATIONS_BY_RATE,
    OPERATIONS_BY_P99,
    OPERATIONS_BY_SELF,
    OPERATIONS_BY_ERRORS,
};

/* The row that collects names beyond the limit of the statistics has the names "". */
struct operation {
    const struct statistics_row *row;
    const char *service; /* of an edge: the caller */
    const char *name;    /* of an edge: the called service */
    double key;          /* the sort key */
};

/*
 * Returns the operations of services that match the glob (NULL: all services), the largest key
 * first. An edge matches by either service. The row for names beyond the limit always matches. Rows
 * without spans and without times are left out. Sets *count. The caller frees the array; NULL: out
 * of memory.
 */
struct operation *operations(const struct statistics *statistics, enum statistics_kind kind,
                             enum operations_order order, const char *glob, size_t *count);

/* Sums operations. Returns false with a partial sum when out of memory. The caller clears the sum's
 * histograms in any case. */
bool operations_sum(const struct operation *operations, size_t count, struct statistics_row *sum);

/* ---- figures for people: three significant digits and a unit --------------------------------- */

struct figure {
    char text[32];
};

/* The form of a time. */
enum figure_form {
    FIGURE_TEXT, /* "185 us" */
    FIGURE_CELL, /* "185us" */
    FIGURE_PAGE, /* "185 µs" */
};

/* "950 ns", "185 us", "3.21 ms", "12.0 s", "3 d" */
struct figure figure_time(int64_t ns, enum figure_form form);

/* Returns a quantile of a histogram in ns; a dash if it is empty. */
struct figure figure_quantile(const struct histogram *histogram, double q, enum figure_form form);

/* "0.52", "19.0", "1250", "1.25M" */
struct figure figure_number(double value);

/* "1,234,567" */
struct figure figure_count(uint64_t value);

/* Percent: "0 %", "<0.1 %", "0.4 %", "12 %" */
struct figure figure_share(double part, double whole);

/* Returns {"count", "sum", "p50", "p99", "max"}, times in us; is_whole: with "min" and "p90". NULL:
 * out of memory. */
json_t *figure_json(const struct histogram *histogram, bool is_whole);

#endif

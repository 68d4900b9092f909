/*
 * All that a source has: its traces, and the statistics of them; or statistics alone, if it is the
 * document of `blkin work --root` (work/merged.h). For who shows a whole of it.
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
    struct trace_list traces; /* none if it is a document */
    struct merged *merged;    /* the document, which has names and statistics then; or NULL */
    struct trace_model model; /* of the trace that was linked last */
    double seconds;           /* from the first span's start to the last one's end */
    int64_t start_ns;         /* 0: not known */
    int64_t end_ns;
    uint64_t spans;
    uint64_t traces_count; /* of which the statistics are; 0: not known */
};

/*
 * source is a path, "-" for the standard input, or an http(s) URL; also the page of a trace in
 * Zipkin's web interface. Reports what is wrong with it by itself and returns false; a source
 * without spans is wrong, too. summary_end() is for both cases.
 */
bool summary_load(const char *source, struct summary *summary);

/* The traces alone, for who shows one of them: spans only, and no statistics are made. */
bool summary_load_traces(const char *source, struct summary *summary);

/* Returns the exit status: 1, too, where only a part of a damaged trace was read. */
int summary_end(struct summary *summary, int status);

#endif

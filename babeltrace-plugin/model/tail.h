/*
 * Tail sampling: which whole traces are kept. The rules are lines of a file; the first that fits
 * tells why.
 *
 *     error                  a span of it has failed
 *     gateway error          ... of this service
 *     > 1s                   the whole trace took longer (ns us ms s m)
 *     gateway:read > 20ms    a span of this service and name did
 *     * > p99                a span took longer than 99 % of its own operation's spans, of which
 *                            1000 at least were seen in periods before; also p95, p99.9
 *     rare 100               of a span's operation there were fewer than so many before
 *     tag KEY[=GLOB]         a span has this tag
 *     incomplete             there is no root, or more than one, or a parent is missing
 *     1/1000                 of the rest, by a hash of the trace id: the same ones everywhere
 *     gateway 1/10           ... of those that begin with a span of this service
 *
 * Services and names are globs, and may stand before any rule but "incomplete": SERVICE or
 * SERVICE:NAME, in quotes if there are blanks in it. Without them any span will do. "#" begins a
 * comment. An empty file keeps nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_TAIL_H
#define BLKIN_ANALYSIS_TAIL_H

#include "babeltrace-plugin/base/error.h"
#include "statistics.h"

struct tail_rules;

/* Returns NULL with error set: file, line, what was expected. */
struct tail_rules *tail_rules_read(const char *path, struct error *error);

/* The same of a text; path is for errors. */
struct tail_rules *tail_rules_parse(struct text rules, const char *path, struct error *error);

void tail_rules_free(struct tail_rules *rules);

/* Does the span have the tag, of a value that the glob fits (NULL: any)? Asks who knows the span.
 */
typedef bool tail_has_tag_fn(void *context, const struct trace_span *span, struct text key,
                             const char *glob);

struct tail_trace {
    const struct trace_model *model; /* linked */
    uint64_t trace_id_high;
    uint64_t trace_id;
    tail_has_tag_fn *has_tag; /* NULL: no span has any */
    void *context;
};

/*
 * Why the trace is kept, as the text of the rule that fits; NULL: it is not. To be asked before the
 * trace is in the statistics. The text lives as long as the rules. They remember which names fit,
 * so that they are for one thread.
 */
const char *tail_rules_fit(struct tail_rules *rules, const struct tail_trace *trace,
                           const struct statistics *statistics);

#endif

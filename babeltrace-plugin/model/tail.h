/*
 * Tail sampling decides which whole traces are sent. A file has a rule in each line. The text of
 * the first rule that fits is the reason why a trace is kept.
 *
 *     error                  a span has failed
 *     gateway error          ... a span of this service
 *     > 1s                   the whole trace took longer (ns us ms s m h d)
 *     gateway:read > 20ms    a span of this service and name took longer
 *     * > p99                a span took longer than 99 % of the spans of its operation;
 *                            earlier periods had 1000 of them; also p95, p99.9
 *     rare 100               a span's operation had fewer than 100 spans before
 *     tag KEY[=GLOB]         a span has this tag
 *     incomplete             the trace has no root, two roots, or a missing parent
 *     1/1000                 of the rest, by a hash of the trace id: the same traces everywhere
 *     gateway 1/10           ... of traces that begin with a span of this service
 *
 * SERVICE or SERVICE:NAME may stand before any rule except "incomplete". Both are globs, quoted if
 * they contain blanks. A rule without them is for any span. "#" begins a comment. An empty file
 * keeps no trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_MODEL_TAIL_H
#define BLKIN_MODEL_TAIL_H

#include "babeltrace-plugin/base/error.h"
#include "statistics.h"

struct tail_rules;

/* Returns NULL with error set: file, line, expectation. */
struct tail_rules *tail_rules_read(const char *path, struct error *error);

/* Parses rules from a text; path is for errors. */
struct tail_rules *tail_rules_parse(struct text rules, const char *path, struct error *error);

void tail_rules_free(struct tail_rules *rules);

/* Returns true if the span has the tag with a value that fits the glob (NULL: any value). */
typedef bool tail_has_tag_fn(void *context, const struct trace_span *span, struct text key,
                             const char *glob);

/* Returns the span's own service or name, for NAMES_OTHER. */
typedef struct text tail_own_name_fn(const struct trace_span *span, bool is_service);

struct tail_trace {
    const struct trace_model *model; /* linked */
    uint64_t trace_id;               /* the lower half */
    tail_has_tag_fn *has_tag;        /* NULL: no span has tags */
    tail_own_name_fn *own_name;      /* NULL: names without room are "" */
    void *context;
};

/*
 * Returns the text of the first rule that fits the trace, or NULL: then the trace is dropped. The
 * caller asks before it adds the trace to the statistics. The text lives as long as the rules. The
 * rules cache fits of names, so only one thread may use them.
 */
const char *tail_rules_fit(struct tail_rules *rules, const struct tail_trace *trace,
                           const struct statistics *statistics);

#endif

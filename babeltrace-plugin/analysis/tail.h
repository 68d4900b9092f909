/*
 * Tail sampling: which whole traces are kept. The rules are lines of a file; the first that fits
 * tells why.
 *
 *     error                    a span of it has failed         [SERVICE[:NAME] error]
 *     gateway:read > 20ms      such a span took longer (globs; ns us ms s); "* > 1s": the whole
 * trace's spans, whichever p99 [SERVICE[:NAME]]     longer than 99 % of its own operation's spans,
 * of which there were 1000 at least; also p95, p99.9 rare 100                 an operation of which
 * there were fewer than so many spans ever tag KEY[=GLOB]           a span has that tag incomplete
 * without a root, or with parents missing 1/1000                   of the rest, by a hash of the
 * trace id: the same on all workers
 *
 * "#" begins a comment. An empty file keeps nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ANALYSIS_TAIL_H
#define BLKIN_ANALYSIS_TAIL_H

#include "../error.h"
#include "statistics.h"

struct tail_rules;

/* Returns NULL with error set: file, line, what was expected. */
struct tail_rules *tail_rules_read(const char *path, struct error *error);
void tail_rules_free(struct tail_rules *rules);

/* Does the span have the tag, of a value that the glob fits (NULL: any)? Asks who knows the span.
 */
typedef bool tail_has_tag_fn(void *context, const struct trace_span *span, struct text key,
                             const char *glob);

struct tail_trace {
    const struct trace_model *model; /* linked */
    uint64_t trace_id_high;
    uint64_t trace_id;
    tail_has_tag_fn *has_tag;
    void *context;
};

/*
 * Why the trace is kept, as the text of the rule that fits; NULL: it is not. To be asked before the
 * trace is in the statistics. The text lives as long as the rules.
 */
const char *tail_rules_fit(const struct tail_rules *rules, const struct tail_trace *trace,
                           const struct statistics *statistics);

#endif

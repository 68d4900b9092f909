/*
 * The span that tells of an incomplete trace, in the trace itself: service "blkin-record", name
 * "incomplete". Sent by a child, with the exporter of the sink, as the configuration has it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_INCOMPLETE_H
#define BLKIN_TOOLS_INCOMPLETE_H

#include "ledger.h"
#include "tools/base/child.h"
#include "tools/config/config.h"

extern const struct job incomplete_job;

struct incomplete_span;

struct incomplete {
    struct loop *loop;
    const struct config *config;
    /* They are delivered: so many; each of them is given. */
    void (*told)(void *context, struct trace_id id);
    void *context;
    /* its own */
    struct incomplete_span *waiting, *sent;
    size_t count;
    struct child child;
    struct output_lines lines;
    struct timer retry;
    unsigned failures;
    bool is_stopping;
};

void incomplete_open(struct incomplete *incomplete);
void incomplete_close(struct incomplete *incomplete);

/* Copies it. Returns false if too many wait: then nobody is told. */
bool incomplete_add(struct incomplete *incomplete, const struct verdict *verdict);

/* None waits. */
bool incomplete_is_idle(const struct incomplete *incomplete);

/* Ends the child: what is not delivered within flush-timeout-ms is not. */
void incomplete_stop(struct incomplete *incomplete);

#endif

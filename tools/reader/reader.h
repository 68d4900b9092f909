/*
 * A reader: a child of a service that runs babeltrace2's graph over recorded traces, to the sink.
 * The service kills a reader without progress.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READER_H
#define BLKIN_TOOLS_READER_H

#include "tools/base/child.h"
#include "tools/base/json.h"
#include "tools/base/reader_account.h"
#include "tools/config/config.h"

struct reader {
    struct loop *loop;
    char stats_file[4096];                    /* the sink's statistics file */
    void (*ended)(void *context, int status); /* the status of waitpid(2) */
    void *context;
    /* the period of checks; the limits of CPU time without progress, and of time without CPU time
     * while no span waits for the collector; 0: the defaults */
    int64_t watch_ms, hang_ms, silent_ms;
    /* private */
    struct child child; /* pid 0: none runs */
    struct output_lines lines;
    struct timer watch;
    uint64_t progress_seen, ticks_seen; /* at the last check */
    int64_t progress_ms, silent_since_ms;
};

/* The caller has set the members above. */
void reader_open(struct reader *reader);

/* Returns the sink's parameters of the configuration, without those that the service handles. NULL:
 * out of memory. */
json_t *reader_params(const struct config *config);

/* Refuses file:PATH as endpoint with error set: a sink overwrites no file, so only the first of a
 * service's readers could write it. */
bool reader_endpoint_fits(const struct config *config, struct error *error);

/* Adds to the order of a job: the sink's parameters of the configuration (NULL: none), then
 * `others`, which override them, and the statistics file. Owns order and others. Returns NULL when
 * out of memory, or if one of both is NULL. */
json_t *reader_order(const struct reader *reader, json_t *order, const struct config *config,
                     json_t *others);

/* name: the input, for messages. Owns the order (NULL: out of memory). Logs the job's output line
 * by line. Returns false after logging the reason. */
bool reader_start(struct reader *reader, const char *name, const struct job *job, json_t *order);

/* Reads the account of the running child. Returns false without a child or an account. */
bool reader_account(const struct reader *reader, struct reader_account *account);

/* ---- for a job */

/* For the child: gives up privileges and returns the order. Aborts if the bytes are no order. */
json_t *reader_begin(const void *bytes, size_t size);

#endif

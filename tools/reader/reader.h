/*
 * A reader: a child of a service that runs babeltrace2's graph over recorded traces, to the sink.
 * One that works without getting anywhere is killed.
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
    char stats_file[4096];                    /* of the sink */
    void (*ended)(void *context, int status); /* as of waitpid(2) */
    void *context;
    /* looked at so often, and killed when it has worked for so long without progress, or has not
     * worked, nor waited for its collector, for so long; 0: the defaults */
    int64_t watch_ms, hang_ms, silent_ms;
    /* its own */
    struct child child; /* pid 0: none runs */
    struct output_lines lines;
    struct timer watch;
    uint64_t progress_seen, ticks_seen; /* by the watch */
    int64_t progress_ms, silent_since_ms;
};

/* When the members above are set. */
void reader_open(struct reader *reader);

/* The sink's parameters as the configuration has them, for a reader: without those that are the
 * service's own. NULL: out of memory. */
json_t *reader_params(const struct config *config);

/* Does each of the many readers of a service find its endpoint? A sink overwrites no file, so that
 * only the first one could write it. Returns false with error set. */
bool reader_endpoint_fits(const struct config *config, struct error *error);

/*
 * Completes the order of a job: with the sink's parameters of the configuration (NULL: none), of
 * which some may have other values, and with the file of the sink's account. Takes order and
 * others. NULL: out of memory, as if one of them is NULL.
 */
json_t *reader_order(const struct reader *reader, json_t *order, const struct config *config,
                     json_t *others);

/* name: what is read, for messages. Takes the order (NULL: out of memory). The job's output is told
 * line by line. Returns false after it has said why. */
bool reader_start(struct reader *reader, const char *name, const struct job *job, json_t *order);

/* Of the one that runs; false: it has told nothing yet, or none runs. */
bool reader_account(const struct reader *reader, struct reader_account *account);

/* ---- for a job */

/* The order, without privileges from now on. Aborts if it is none. */
json_t *reader_begin(const void *bytes, size_t size);

#endif

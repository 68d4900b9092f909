/*
 * A reader: a child of a service that runs babeltrace2's graph over recorded traces, to the sink.
 * One that works without getting anywhere is killed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READER_H
#define BLKIN_TOOLS_READER_H

#include "tools/base/loop.h"
#include "tools/base/output_lines.h"
#include "tools/base/reader_account.h"
#include "tools/config/config.h"

struct reader {
    struct loop *loop;
    const struct config *config;
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

/*
 * name: what is read, for messages. run() is called in the child, without privileges and with its
 * output told line by line; it returns the exit status. Returns false after it has said why.
 */
bool reader_start(struct reader *reader, const char *name, int (*run)(void *argument),
                  void *argument);

/* Of the one that runs; false: it has told nothing yet, or none runs. */
bool reader_account(const struct reader *reader, struct reader_account *account);

/* For run(): the sink's parameters as the configuration has them, without those that are a
 * service's own; the statistics file is set. A new map, or NULL: out of memory. */
bt_value *reader_params(const struct reader *reader);
bool reader_put_text(bt_value *params, const char *key, const char *text);
bool reader_put_bool(bt_value *params, const char *key, bool value);

/* Takes the params, and runs the graph over the traces: folders, ends with NULL. Returns the exit
 * status: 0 all delivered. params NULL: 1. */
int reader_run(const char *const *traces, const bt_value *params);

#endif

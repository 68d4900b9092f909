/*
 * The other end of a sink's tap: doc/sink.md says what its lines are.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_STAT_TAP_READER_H
#define BLKIN_TOOLS_STAT_TAP_READER_H

#include "babeltrace-plugin/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct tap_line {
    uint64_t passed;
    uint64_t dropped;
    const json_t *spans;
};

struct tap_reader;

/*
 * is_new: the sink has begun since we look, so what it had before we came counts as passed. Returns
 * NULL with error set.
 */
struct tap_reader *tap_reader_open(const char *path, bool is_new, struct error *error);
void tap_reader_close(struct tap_reader *reader);

const char *tap_reader_path(const struct tap_reader *reader);
int tap_reader_fd(const struct tap_reader *reader);

/* From now on 1/share of the traces. */
void tap_reader_ask(struct tap_reader *reader, uint32_t share);

/* Returns false if it can take no more. */
typedef bool tap_use_fn(void *context, const struct tap_line *line);

enum tap_state { TAP_GOES_ON, TAP_ENDED, TAP_BROKEN };

/*
 * Reads some of what is there, and calls for each whole line. What is wrong with one, or what
 * `use` says no to, breaks it: then error is set.
 */
enum tap_state tap_reader_read(struct tap_reader *reader, tap_use_fn *use, void *context,
                               struct error *error);

#endif

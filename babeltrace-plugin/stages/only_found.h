/*
 * What was found of the traces that are wanted: their spans' ids, and the file of them that only.h
 * tells of.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ONLY_FOUND_H
#define BLKIN_ONLY_FOUND_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/spans/span.h"

#include <stdbool.h>

#define ONLY_FOUND_MAX  65536      /* traces in the list of what was found, */
#define ONLY_SPANS_MAX  4096       /* spans of one of these, */
#define ONLY_LISTED_MAX (1U << 20) /* and of all */

struct found_traces;

/* Returns NULL when out of memory. */
struct found_traces *found_new(void);
void found_free(struct found_traces *found); /* NULL is allowed */

/* Of so many traces what was found is told, of the others only how many they are. Before the first
 * span; without this ONLY_FOUND_MAX are told of, and of the others how many spans they have. */
void found_tell_of(struct found_traces *found, uint64_t traces);

/* What finds no memory makes that nothing can be told in the end. */
void found_note(struct found_traces *found, const struct span *span);

/*
 * Before anything is read: is the file, if there is one, a sink's? Then it is removed. Without this
 * none is written. Both return false with error set.
 */
bool found_prepare(struct found_traces *found, const char *path, struct error *error);
bool found_write(struct found_traces *found, int64_t oldest_ns, int64_t newest_ns,
                 struct error *error);

#endif

/*
 * The spans that were found of the wanted traces, and the JSON that only.h describes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ONLY_FOUND_H
#define BLKIN_ONLY_FOUND_H

#include "babeltrace-plugin/spans/span.h"

#include <stdbool.h>

#define ONLY_FOUND_MAX  65536      /* traces in the list */
#define ONLY_SPANS_MAX  4096       /* spans of a trace */
#define ONLY_LISTED_MAX (1U << 20) /* spans of all traces */

struct found_traces;

/* Returns NULL when out of memory. */
struct found_traces *found_new(void);
void found_free(struct found_traces *found); /* NULL is allowed */

/*
 * Limits the list to `traces` traces; of the others only their number is written. The caller does
 * that before the first span. Without this call the list has ONLY_FOUND_MAX traces, and the
 * text has the number of spans of the others.
 */
void found_tell_of(struct found_traces *found, uint64_t traces);

/* Notes a span. After a lack of memory there is no text in the end. */
void found_note(struct found_traces *found, const struct span *span);

/* Returns the JSON, for free(). NULL: out of memory, also before. Sorts the lists: called once. */
char *found_text(struct found_traces *found, int64_t oldest_ns, int64_t newest_ns);

#endif

/*
 * Saving what an assembler carries from one trace to the next, where a recording is cut into
 * several that are read one by one: open spans, the last sequence numbers of threads, what is known
 * of clocks and losses, and which spans were given out last.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_SAVE_H
#define BLKIN_CORE_SAVE_H

#include "assembler.h"
#include "state.h"

/*
 * Of a source (a session of a host, or with buffers per process one of its processes) without an
 * open span, what it tells is kept for so long after the last of it.
 */
#define SAVED_SOURCE_NS INT64_C(600000000000)

void assembler_save(struct assembler *assembler, struct state_writer *writer);

/*
 * The same without spans, for who reads a live session: what comes until he is back he will never
 * see, and so no end of what is open now.
 */
void assembler_save_live(struct assembler *assembler, struct state_writer *writer);

/* All of a finished span that waits; and back, into one of all zeros, whose log is malloc's then.
 */
void span_save(const struct span *span, struct assembler *assembler, struct state_writer *writer);
void span_restore(struct span *span, struct assembler *assembler, struct state_reader *reader);

/* Into a new assembler, which is to be thrown away if the reader tells that it has failed. */
void assembler_restore(struct assembler *assembler, struct state_reader *reader);

#endif

/*
 * The traces and times that this host has fetched from its rings, with the spans, so that no span
 * is sent twice. A file keeps them over a restart of the agent. The oldest entries are forgotten.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FETCHED_H
#define BLKIN_TOOLS_FETCHED_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/table.h"
#include "trace_id.h"

struct fetched_trace {
    struct trace_id id;
    int64_t until_mono_ns; /* CLOCK_MONOTONIC; 0: never */
    int64_t from_mono_ns;  /* it was fetched from then on; INT64_MIN: from the oldest records on */
    uint64_t place;        /* see places.h; 0: not known, as of an earlier run */
    uint64_t from_place;   /* of from_mono_ns; 0: from the oldest records on */
    bool is_open;          /* asked for by this host, and not judged yet */
    bool is_asked;         /* by this process */
    bool is_ours;          /* open, or judged and not settled yet */
    bool was_judged;       /* open again, as an earlier process was killed before that */
    bool is_unsent;        /* an earlier process was killed before its spans were settled */
    uint64_t given;        /* its spans are settled when so many are, see export.h; 0: they are */
    int64_t asked_ns; /* since 1970: the trace's begin according to the request; 0: not known */
    char why[201];
    int64_t begin_ns; /* since 1970, of the first span that was found; 0: not known */
    uint64_t spans;
    bool is_cut;
    /* Since 1970: from when on rings had all when it was fetched first, and from when on spans
     * of SDKs are held, if it has any; 0 else. */
    int64_t held_from_ns, otlp_from_ns;
    struct ids have, want;
    char *line; /* of it in the file; NULL: to be made again, as the trace has changed */
    struct table_link in_table;
};

struct fetched;

/* Returns NULL when out of memory. */
struct fetched *fetched_new(void);
void fetched_free(struct fetched *fetched);

/* NULL: it is not known. */
struct fetched_trace *fetched_find(const struct fetched *fetched, struct trace_id id);

/* The one that is there, or a new one. NULL: out of memory. */
struct fetched_trace *fetched_get(struct fetched *fetched, struct trace_id id);

/* This host asks for it: it began then, as far as is known. */
void fetched_open(struct fetched_trace *trace, int64_t asked_ns, const char *why);
void fetched_close(struct fetched_trace *trace);

/* It was fetched from then until then, between these places: see the members of these names. */
struct fetched_span {
    int64_t from_mono_ns, until_mono_ns;
    uint64_t from_place, place;
};
void fetched_note(struct fetched *fetched, struct trace_id id, const struct fetched_span *span);

/* Spans of the trace, or a span about it, are given to the export: see export_given(). */
void fetched_note_given(struct fetched *fetched, struct trace_id id, uint64_t given);

/* Does a trace or a window wait for its spans to be settled, as of the last text? */
bool fetched_waits(const struct fetched *fetched);

/* When it was fetched, rings had all since then (1970). */
void fetched_note_held(struct fetched *fetched, struct trace_id id, int64_t held_from_ns);
void fetched_note_otlp_held(struct fetched *fetched, struct trace_id id, int64_t from_ns);

/* A time for which all traces were fetched: CLOCK_MONOTONIC. */
struct fetched_window {
    int64_t from_ns, until_ns;
    uint64_t given; /* as for a trace */
};
void fetched_note_window(struct fetched *fetched, struct fetched_window window);
const struct fetched_window *fetched_windows(const struct fetched *fetched, size_t *count);

/* True if the records of the trace up to this time were fetched. A record may be written later than
 * its time: see FETCHED_LATE_NS. */
bool fetched_has(const struct fetched *fetched, struct trace_id id, uint64_t mono_ns);

/* Adds found spans: {"id": ..., "begin": ..., "spans": ..., "have": [...], "want": [...]}, see
 * only.h. */
void fetched_add(struct fetched *fetched, const json_t *found);

/* The same for all fetched spans of the trace; NULL: none. "held_from": the time from which on this
 * host has all of it. */
json_t *fetched_json(const struct fetched_trace *trace);
/* A copy of `found`, with the spans of earlier fetches. */
json_t *fetched_copy(const struct fetched *fetched, const json_t *found);

void fetched_each(const struct fetched *fetched,
                  void (*call)(void *context, struct fetched_trace *trace), void *context);

/* The text of a file with those of the last ten minutes. So many spans are settled: a trace with
 * others is saved as not fetched yet, and its window is left out, so that the next process sends
 * them again. NULL: out of memory. */
char *fetched_text(struct fetched *fetched, uint64_t settled, size_t *length);
/* Of an earlier boot, or damaged: nothing. */
void fetched_load(struct fetched *fetched, const char *path);

#endif

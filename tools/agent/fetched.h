/*
 * The traces and times that this host has fetched from its rings, and the found spans, so that no
 * span is sent twice. A file stores them for the next process. The oldest entries are removed.
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
    int64_t until_mono_ns; /* CLOCK_MONOTONIC: records up to then were fetched; 0: none were */
    int64_t from_mono_ns;  /* records from this time on were fetched; INT64_MIN: all records */
    uint64_t place;        /* of until_mono_ns, see places.h; 0: not known, or of an earlier run */
    uint64_t from_place;   /* the place of from_mono_ns; 0: all records were fetched */
    bool is_open;          /* requested by this host, and not judged yet */
    bool is_asked;         /* requested by this process */
    bool is_ours;          /* requested by this host, and not judged and settled yet */
    bool was_judged;       /* an earlier process judged the trace, but did not settle the spans */
    bool is_unsent;        /* an earlier process fetched the trace, but did not settle the spans */
    uint64_t given;        /* settled when export_settled() reaches this number; 0: settled */
    int64_t asked_ns; /* since 1970: the trace's begin according to the request; 0: not known */
    char why[201];
    int64_t begin_ns; /* since 1970: the begin of the first span found; 0: not known */
    uint64_t spans;
    bool is_cut; /* `have` or `want` is incomplete */
    /* Since 1970: the rings had all records from held_from_ns on at a fetch, and the store had all
     * spans of SDKs from otlp_from_ns on. 0: no fetch, or no spans of SDKs. */
    int64_t held_from_ns, otlp_from_ns;
    struct ids have, want; /* the spans found, and their parents */
    char *line;            /* the line of the file; NULL: the trace has changed */
    struct table_link in_table;
};

struct fetched;

/* Returns NULL when out of memory. */
struct fetched *fetched_new(void);
void fetched_free(struct fetched *fetched);

/* Returns NULL if the trace is not known. */
struct fetched_trace *fetched_find(const struct fetched *fetched, struct trace_id id);

/* Returns the known trace, or a new one. Returns NULL when out of memory or at the limit. */
struct fetched_trace *fetched_get(struct fetched *fetched, struct trace_id id);

/* Marks the trace as requested by this host. asked_ns: the trace's begin; 0: not known. */
void fetched_open(struct fetched_trace *trace, int64_t asked_ns, const char *why);
void fetched_close(struct fetched_trace *trace);

/* The time and the places of a fetch: see the members of struct fetched_trace. */
struct fetched_span {
    int64_t from_mono_ns, until_mono_ns;
    uint64_t from_place, place;
};
void fetched_note(struct fetched *fetched, struct trace_id id, const struct fetched_span *span);

/* Notes that the export got spans of the trace, or the span "incomplete". given: export_given(). */
void fetched_note_given(struct fetched *fetched, struct trace_id id, uint64_t given);

/* Returns true if spans of a trace or of a window were not settled at the last fetched_text(). */
bool fetched_waits(const struct fetched *fetched);

/* Note the times held_from_ns and otlp_from_ns of struct fetched_trace. */
void fetched_note_held(struct fetched *fetched, struct trace_id id, int64_t held_from_ns);
void fetched_note_otlp_held(struct fetched *fetched, struct trace_id id, int64_t from_ns);

/* A time for which all traces were fetched: CLOCK_MONOTONIC. */
struct fetched_window {
    int64_t from_ns, until_ns;
    uint64_t given; /* as in struct fetched_trace */
};
void fetched_note_window(struct fetched *fetched, struct fetched_window window);
const struct fetched_window *fetched_windows(const struct fetched *fetched, size_t *count);

/* Returns true if the records of the trace up to this time were fetched, or may have been fetched
 * by an entry that was removed. */
bool fetched_has(const struct fetched *fetched, struct trace_id id, uint64_t mono_ns);

/* Adds found spans: {"id": ..., "begin": ..., "spans": ..., "have": [...], "want": [...]}, see
 * only.h. */
void fetched_add(struct fetched *fetched, const json_t *found);

/* Returns such an object for all fetched spans of the trace; NULL: no spans. "held_from": the time
 * from which on this host has the whole trace. */
json_t *fetched_json(const struct fetched_trace *trace);
/* Returns a copy of `found`, with "held_from" if that time is known. */
json_t *fetched_copy(const struct fetched *fetched, const json_t *found);

void fetched_each(const struct fetched *fetched,
                  void (*call)(void *context, struct fetched_trace *trace), void *context);

/* Returns the text of the file; NULL: out of memory. Removes settled traces after ten minutes.
 * settled: export_settled(). A trace with unsettled spans is saved as not fetched, and a window
 * with unsettled spans is left out. So the next process sends these spans again. */
char *fetched_text(struct fetched *fetched, uint64_t settled, size_t *length);
/* Reads the file. From a file of an earlier boot, only open traces are read: they wait for a
 * verdict. A damaged file is ignored. */
void fetched_load(struct fetched *fetched, const char *path);

#endif

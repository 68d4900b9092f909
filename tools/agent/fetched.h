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
    int64_t from_mono_ns;  /* records from this time on were fetched; INT64_MIN: all records */
    uint64_t place;        /* of until_mono_ns, see places.h; 0: not known, or of an earlier run */
    uint64_t from_place;   /* the place of from_mono_ns; 0: all records were fetched */
    bool is_open;          /* requested by this host, and not judged yet */
    bool is_asked;         /* requested by this process */
    bool is_ours;          /* open, or judged and not settled yet */
    bool
        was_judged; /* judged by an earlier process, which was killed before it settled the spans */
    bool is_unsent; /* an earlier process was killed before its spans were settled */
    uint64_t
        given; /* settled when the export has settled so many spans, see export.h; 0: settled */
    int64_t asked_ns; /* since 1970: the trace's begin according to the request; 0: not known */
    char why[201];
    int64_t begin_ns; /* since 1970, of the first span that was found; 0: not known */
    uint64_t spans;
    bool is_cut;
    /* CLOCK_MONOTONIC; 0: not known. At the first fetch, the rings of the trace's users had all
     * records from held_from_ns on. All spans of SDKs are held from otlp_from_ns on. */
    int64_t held_from_ns, otlp_from_ns;
    struct ids have, want;
    char *line; /* the line of the file; NULL: the trace has changed */
    struct table_link in_table;
};

struct fetched;

/* Returns NULL when out of memory. */
struct fetched *fetched_new(void);
void fetched_free(struct fetched *fetched);

/* Returns NULL if the trace is not known. */
struct fetched_trace *fetched_find(const struct fetched *fetched, struct trace_id id);

/* Returns the known trace, or a new one; NULL: out of memory. */
struct fetched_trace *fetched_get(struct fetched *fetched, struct trace_id id);

/* Marks the trace as requested by this host. asked_ns: the begin, as far as known. */
void fetched_open(struct fetched_trace *trace, int64_t asked_ns, const char *why);
void fetched_close(struct fetched_trace *trace);

/* The time and the places of a fetch: see the members of struct fetched_trace. */
struct fetched_span {
    int64_t from_mono_ns, until_mono_ns;
    uint64_t from_place, place;
};
void fetched_note(struct fetched *fetched, struct trace_id id, const struct fetched_span *span);

/* Notes that the export got spans of the trace, or a span about it: see export_given(). */
void fetched_note_given(struct fetched *fetched, struct trace_id id, uint64_t given);

/* True if a trace or a window of the last text waits until its spans are settled. */
bool fetched_waits(const struct fetched *fetched);

/* Note from when on this host has the whole trace: CLOCK_MONOTONIC. INT64_MIN: the rings have
 * nothing of it. */
void fetched_note_held(struct fetched *fetched, struct trace_id id, int64_t held_from_ns);
void fetched_note_otlp_held(struct fetched *fetched, struct trace_id id, int64_t from_ns);

/* A time for which all traces were fetched: CLOCK_MONOTONIC. */
struct fetched_window {
    int64_t from_ns, until_ns;
    uint64_t given; /* as in struct fetched_trace */
};
void fetched_note_window(struct fetched *fetched, struct fetched_window window);
const struct fetched_window *fetched_windows(const struct fetched *fetched, size_t *count);

/* True if the records of the trace up to this time were fetched. A record may be written later than
 * its time: see FETCHED_LATE_NS. */
bool fetched_has(const struct fetched *fetched, struct trace_id id, uint64_t mono_ns);

/* Adds found spans: {"id": ..., "begin": ..., "spans": ..., "have": [...], "want": [...]}, see
 * only.h. */
void fetched_add(struct fetched *fetched, const json_t *found);

/* The same for all fetched spans of the trace; NULL: none. "held_from": CLOCK_MONOTONIC, from
 * when on this host has the whole trace. */
json_t *fetched_json(const struct fetched_trace *trace);
/* A copy of `found`, with the spans of earlier fetches. */
json_t *fetched_copy(const struct fetched *fetched, const json_t *found);

void fetched_each(const struct fetched *fetched,
                  void (*call)(void *context, struct fetched_trace *trace), void *context);

/* Returns the text of the file, with the traces of the last ten minutes; NULL: out of memory.
 * settled: the number of settled spans. A trace with later spans is saved as not fetched. A window
 * with later spans is left out. So the next process sends these spans again. */
char *fetched_text(struct fetched *fetched, uint64_t settled, size_t *length);
/* Reads the file. Of an earlier boot's file, only open traces are read. A damaged file is ignored.
 */
void fetched_load(struct fetched *fetched, const char *path);

#endif

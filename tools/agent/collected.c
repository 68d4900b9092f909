/* SPDX-License-Identifier: BSD-2-Clause */
#include "collected.h"

#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/totals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLLECTED_TRACES_MAX 4096 /* if none of them is old: twice as many */
#define COLLECTED_AGE_NS     INT64_C(600000000000)
#define WINDOWS              64

/* The most by which a program may write a record after the record's time. */
#define COLLECTED_LATE_NS UINT64_C(1000000000)
/* The pause between two searches for old traces in a full table, which read the whole table. */
#define COLLECTED_FULL_NS INT64_C(100000000)

struct collected {
    struct table
        traces; /* by the lower half of the id: events of the original have no upper half */
    int64_t full_until_ns;                    /* no search for old traces before this time */
    int64_t forgotten_mono_ns;                /* the latest until_mono_ns of a removed trace */
    struct collected_window windows[WINDOWS]; /* in the order of collected_note_window() */
    size_t window_count;
    bool waits;                   /* see collected_waits() */
    uint64_t changes;             /* of all traces so far */
    struct cds_list_head changed; /* traces of the file of changes, in the order of changes */
};

struct collected *collected_new(void)
{
    struct collected *collected = calloc(1, sizeof(*collected));

    if (!collected || !table_init(&collected->traces)) {
        free(collected);
        return NULL;
    }
    CDS_INIT_LIST_HEAD(&collected->changed);
    return collected;
}

static void collected_free_trace(struct table_link *link)
{
    struct collected_trace *trace = caa_container_of(link, struct collected_trace, in_table);

    cds_list_del(&trace->in_changed);
    trace_spans_free(&trace->found);
    free(trace->line);
    free(trace);
}

void collected_free(struct collected *collected)
{
    table_destroy(&collected->traces, collected_free_trace);
    free(collected);
}

const struct table *collected_traces(const struct collected *collected)
{
    return &collected->traces;
}

/* ---- traces ---------------------------------------------------------------------------------- */

struct collected_trace *collected_find(const struct collected *collected, struct trace_id id)
{
    const uint64_t hash = hash_number(collected->traces.seed, id.low);
    struct collected_trace *trace;

    table_find(trace, &collected->traces, hash, in_table, trace_id_equal(trace->id, id));
    return trace;
}

static void collected_remove(struct collected *collected, struct collected_trace *trace)
{
    table_remove(&collected->traces, &trace->in_table);
    collected_free_trace(&trace->in_table);
}

/* Removes closed and settled traces that were last collected before that time. */
static void collected_forget(struct collected *collected, int64_t before_mono_ns)
{
    struct collected_trace *trace;

    table_for_each(trace, &collected->traces, in_table)
    {
        if (trace->is_open || trace->given || trace->is_unsent ||
            trace->until_mono_ns >= before_mono_ns || (trace->watched_ms && !trace->until_mono_ns))
            continue;
        if (trace->until_mono_ns > collected->forgotten_mono_ns)
            collected->forgotten_mono_ns = trace->until_mono_ns;
        collected_remove(collected, trace);
    }
}

/* Removes the oldest traces from a full table. */
static void collected_make_room(struct collected *collected)
{
    const int64_t now_ns = clock_ns();

    if (collected->traces.count < COLLECTED_TRACES_MAX || now_ns < collected->full_until_ns)
        return;
    for (int64_t age_ns = COLLECTED_AGE_NS;
         collected->traces.count >= COLLECTED_TRACES_MAX && age_ns > 1000000000; age_ns /= 2)
        collected_forget(collected, now_ns - age_ns);
    if (collected->traces.count >= COLLECTED_TRACES_MAX)
        collected->full_until_ns = now_ns + COLLECTED_FULL_NS;
}

struct collected_trace *collected_get(struct collected *collected, struct trace_id id)
{
    struct collected_trace *trace = collected_find(collected, id);

    if (trace)
        return trace;
    collected_make_room(collected);
    trace = collected->traces.count < 2 * COLLECTED_TRACES_MAX ? calloc(1, sizeof(*trace)) : NULL;
    if (!trace)
        return NULL;
    trace->id = id;
    trace->collected = collected;
    CDS_INIT_LIST_HEAD(&trace->in_changed);
    table_add(&collected->traces, &trace->in_table, hash_number(collected->traces.seed, id.low));
    return trace;
}

/* Notes that members have changed that the trace's line of the files contains. */
static void collected_change(struct collected_trace *trace)
{
    free(trace->line);
    trace->line = NULL;
    trace->change = ++trace->collected->changes;
    cds_list_del(&trace->in_changed);
    cds_list_add_tail(&trace->in_changed, &trace->collected->changed);
}

void collected_open(struct collected_trace *trace, int64_t asked_begin_ns, const char *why)
{
    trace->is_open = trace->is_asked = trace->is_ours = true;
    trace->was_judged = false;
    trace->asked_begin_ns = asked_begin_ns;
    (void)snprintf(trace->why, sizeof(trace->why), "%s", why);
    collected_change(trace);
}

void collected_close(struct collected_trace *trace)
{
    trace->is_open = false;
    trace->deaths = 0;
    collected_change(trace);
}

void collected_note_deaths(struct collected_trace *trace, unsigned count)
{
    trace->deaths += count;
    collected_change(trace);
}

void collected_skip(struct collected_trace *trace)
{
    trace->is_open = trace->is_unsent = false;
    collected_change(trace);
}

/* Returns true if the fetch continues the earlier fetch of the trace without a gap. */
static bool collected_continues(const struct collected_trace *trace,
                                const struct collected_fetch *fetch)
{
    return trace->until_mono_ns >= fetch->from_mono_ns && trace->until_mono_ns &&
           trace->from_mono_ns <= fetch->from_mono_ns &&
           (trace->from_place || trace->from_mono_ns == INT64_MIN);
}

void collected_note(struct collected *collected, struct trace_id id,
                    const struct collected_fetch *fetch)
{
    struct collected_trace *trace = collected_get(collected, id);

    if (!trace || trace->until_mono_ns >= fetch->until_mono_ns)
        return;
    if (!collected_continues(trace, fetch)) {
        trace->from_mono_ns = fetch->from_mono_ns;
        trace->from_place = fetch->from_place;
    }
    trace->until_mono_ns = fetch->until_mono_ns;
    trace->place = fetch->place;
    collected_change(trace);
}

void collected_note_given(struct collected *collected, struct trace_id id, uint64_t given)
{
    struct collected_trace *trace = collected_get(collected, id);

    if (!trace)
        return;
    trace->given = given;
    trace->is_unsent = false;
    collected->waits = true;
    collected_change(trace);
}

bool collected_waits(const struct collected *collected)
{
    return collected->waits;
}

void collected_note_held(struct collected *collected, struct trace_id id, int64_t held_from_ns)
{
    struct collected_trace *trace = held_from_ns > INT64_MIN ? collected_get(collected, id) : NULL;

    if (!trace || (trace->held_from_ns && held_from_ns >= trace->held_from_ns))
        return;
    trace->held_from_ns = held_from_ns;
    collected_change(trace);
}

void collected_note_otlp_held(struct collected *collected, struct trace_id id, int64_t from_ns)
{
    struct collected_trace *trace = collected_get(collected, id);

    if (!trace)
        return;
    trace->otlp_from_ns = from_ns;
    collected_change(trace);
}

/* Returns the time from which this host has the whole trace; 0: not known. */
static int64_t collected_held_from(const struct collected_trace *trace)
{
    return trace->otlp_from_ns > trace->held_from_ns ? trace->otlp_from_ns : trace->held_from_ns;
}

void collected_note_window(struct collected *collected, struct collected_window window)
{
    size_t kept = 0;

    /* merges the window with all windows that it overlaps */
    for (size_t i = 0; i < collected->window_count; i++) {
        const struct collected_window *other = &collected->windows[i];

        if (other->until_ns < window.from_ns || other->from_ns > window.until_ns) {
            collected->windows[kept++] = *other;
            continue;
        }
        window.from_ns = other->from_ns < window.from_ns ? other->from_ns : window.from_ns;
        window.until_ns = other->until_ns > window.until_ns ? other->until_ns : window.until_ns;
        window.given = other->given > window.given ? other->given : window.given;
    }
    if (kept == WINDOWS)
        memmove(collected->windows, collected->windows + 1, --kept * sizeof(window));
    collected->windows[kept++] = window;
    collected->window_count = kept;
    collected->waits |= window.given != 0;
}

const struct collected_window *collected_windows(const struct collected *collected, size_t *count)
{
    *count = collected->window_count;
    return collected->windows;
}

bool collected_has(const struct collected *collected, struct trace_id id, uint64_t at_mono_ns)
{
    const struct collected_trace *trace = collected_find(collected, id);
    const int64_t until_ns = trace ? trace->until_mono_ns : collected->forgotten_mono_ns;

    return at_mono_ns + COLLECTED_LATE_NS < (uint64_t)until_ns;
}

void collected_add(struct collected *collected, const json_t *found)
{
    struct trace_id id;
    struct collected_trace *trace;

    if (!trace_id_read(json_string_value(json_object_get(found, "id")), &id))
        return;
    trace = collected_get(collected, id);
    if (!trace)
        return;
    trace_spans_add(&trace->found, found);
    collected_change(trace);
}

static json_t *collected_ids_json(const struct ids *ids, const struct ids *without)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < ids->count; i++) {
        if (!without || !ids_have(without, ids->list[i]))
            (void)json_array_append_new(list, span_id_json(ids->list[i]));
    }
    return list;
}

json_t *collected_json(const struct collected_trace *trace)
{
    const int64_t held_ns = collected_held_from(trace);
    char text[TRACE_ID_TEXT];

    if (trace->found.spans == 0)
        return NULL;
    trace_id_text(trace->id, text);
    return json_pack("{ss, sI, so, so, so*, so*, so*}", "id", text, "spans",
                     (json_int_t)trace->found.spans, "have",
                     collected_ids_json(&trace->found.have, NULL), "want",
                     collected_ids_json(&trace->found.want, &trace->found.have), "begin",
                     trace->found.begin_ns ? json_integer(trace->found.begin_ns) : NULL,
                     "held_from", held_ns > 0 ? json_integer(held_ns) : NULL, "cut",
                     trace->found.is_cut ? json_true() : NULL);
}

json_t *collected_copy(const struct collected *collected, const json_t *found)
{
    const struct collected_trace *trace = NULL;
    json_t *copy = json_deep_copy(found);
    struct trace_id id;

    if (trace_id_read(json_string_value(json_object_get(found, "id")), &id))
        trace = collected_find(collected, id);
    if (trace && collected_held_from(trace) > 0)
        (void)json_object_set_new(copy, "held_from", json_integer(collected_held_from(trace)));
    return copy;
}

/* ---- the files ------------------------------------------------------------------------------- */

/* Returns the trace's line of the files; NULL: out of memory. */
static char *collected_line(const struct collected_trace *trace)
{
    const bool is_sent = trace->given == 0 && !trace->is_unsent;
    const bool is_open = trace->is_open || (trace->given && trace->is_ours);
    json_t *open = is_open && is_sent ? collected_json(trace) : NULL;
    char text[TRACE_ID_TEXT], *line;
    json_t *json;

    trace_id_text(trace->id, text);
    json =
        json_pack("{ss, sI, sI, sI, sb, sb, sb, sI, sI, ss%, so*}", "id", text, "deaths",
                  (json_int_t)trace->deaths, "mono", is_sent ? (json_int_t)trace->until_mono_ns : 0,
                  "from", (json_int_t)trace->from_mono_ns, "open", is_open, "judged",
                  is_open && (!trace->is_open || trace->was_judged), "unsent", !is_sent, "asked",
                  (json_int_t)trace->asked_begin_ns, "held",
                  is_sent ? (json_int_t)collected_held_from(trace) : 0, "why", trace->why,
                  strlen(trace->why), "found", open);
    line = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return line;
}

static void collected_settle(struct collected_trace *trace, uint64_t settled)
{
    if (!trace->given || trace->given > settled)
        return;
    trace->given = 0;
    trace->is_ours = trace->is_open;
    collected_change(trace);
}

static void collected_print_windows(FILE *file, struct collected *collected, uint64_t settled)
{
    const char *comma = "";

    (void)fputs("], \"windows\": [", file);
    for (size_t i = 0; i < collected->window_count; i++) {
        if (collected->windows[i].given > settled) {
            collected->waits = true;
            continue;
        }
        collected->windows[i].given = 0;
        (void)fprintf(file, "%s[%" PRId64 ", %" PRId64 "]", comma, collected->windows[i].from_ns,
                      collected->windows[i].until_ns);
        comma = ", ";
    }
}

/* Prints *comma and the trace. Formats only a changed trace, because there may be many alarms a
 * second. */
static bool collected_print_trace(FILE *file, struct collected_trace *trace, const char **comma)
{
    if (!trace->line) {
        trace->line = collected_line(trace);
        trace->line_length = trace->line ? strlen(trace->line) : 0;
    }
    (void)fputs(*comma, file);
    *comma = ",\n";
    return trace->line && fwrite(trace->line, trace->line_length, 1, file) == 1;
}

static bool collected_print(FILE *file, struct collected *collected, bool all, uint64_t settled)
{
    struct collected_trace *trace, *next;
    const char *comma = "\n";
    bool is_printed = true;
    char boot[BOOT_ID_MAX];

    collected->waits = false;
    cds_list_for_each_entry_safe(trace, next, &collected->changed, in_changed)
    {
        collected_settle(trace, settled);
        collected->waits |= trace->given != 0;
    }
    boot_id_read(boot);
    (void)fprintf(file, "{\"boot\": \"%s\", \"forgotten\": %" PRId64 ", \"traces\": [", boot,
                  collected->forgotten_mono_ns);
    if (all) {
        table_for_each(trace, &collected->traces, in_table)
        {
            is_printed &= collected_print_trace(file, trace, &comma);
        }
    } else {
        cds_list_for_each_entry(trace, &collected->changed, in_changed)
        {
            is_printed &= collected_print_trace(file, trace, &comma);
        }
    }
    collected_print_windows(file, collected, settled);
    return fprintf(file, "]}\n") > 0 && is_printed;
}

static char *collected_print_text(struct collected *collected, bool all, uint64_t settled,
                                  size_t *length)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, length);
    const bool is_printed = file && collected_print(file, collected, all, settled);

    if ((file && fclose(file) != 0) || !is_printed) {
        free(text);
        text = NULL;
    }
    return text;
}

char *collected_text(struct collected *collected, uint64_t settled, size_t *length)
{
    return collected_print_text(collected, false, settled, length);
}

char *collected_text_of_all(struct collected *collected, uint64_t settled, size_t *length,
                            uint64_t *changes)
{
    char *text;

    collected_forget(collected, clock_ns() - COLLECTED_AGE_NS);
    text = collected_print_text(collected, true, settled, length);
    *changes = collected->changes;
    return text;
}

void collected_saved_all(struct collected *collected, uint64_t changes)
{
    struct collected_trace *trace, *next;

    cds_list_for_each_entry_safe(trace, next, &collected->changed, in_changed)
    {
        if (trace->change > changes)
            break;
        if (trace->given) /* changes when it is settled */
            continue;
        cds_list_del_init(&trace->in_changed);
    }
}

static void collected_load_trace(struct collected *collected, const json_t *json, bool is_same_boot)
{
    const bool is_open = json_is_true(json_object_get(json, "open"));
    struct trace_id id;
    struct collected_trace *trace;

    if (!trace_id_read(json_string_value(json_object_get(json, "id")), &id))
        return;
    trace = is_same_boot || is_open ? collected_get(collected, id) : collected_find(collected, id);
    if (!trace)
        return;
    if (!is_same_boot && !is_open) { /* open in the file of all traces */
        collected_remove(collected, trace);
        return;
    }
    trace_spans_free(&trace->found); /* of the file of all traces */
    trace->found = (struct trace_spans){.spans = 0};
    trace->until_mono_ns = number_in(json, "mono");
    trace->from_mono_ns = number_in(json, "from");
    trace->is_open = trace->is_ours = is_open;
    trace->was_judged = json_is_true(json_object_get(json, "judged"));
    trace->is_unsent = json_is_true(json_object_get(json, "unsent")) && !trace->is_open;
    trace->asked_begin_ns = number_in(json, "asked");
    trace->deaths = (unsigned)number_in(json, "deaths");
    trace->held_from_ns = number_in(json, "held");
    (void)snprintf(trace->why, sizeof(trace->why), "%s", text_in(json, "why"));
    collected_change(trace);
    collected_add(collected, json_object_get(json, "found"));
}

void collected_load(struct collected *collected, const char *path)
{
    json_t *json = json_read(path);
    const json_t *trace, *window;
    char now[BOOT_ID_MAX];
    bool is_same;
    size_t i;

    boot_id_read(now);
    is_same = strcmp(text_in(json, "boot"), now) == 0;
    if (is_same)
        collected->forgotten_mono_ns = number_in(json, "forgotten");
    json_array_foreach(json_object_get(json, "traces"), i, trace)
        collected_load_trace(collected, trace, is_same);
    json_array_foreach(is_same ? json_object_get(json, "windows") : NULL, i, window)
        collected_note_window(
            collected, (struct collected_window){json_integer_value(json_array_get(window, 0)),
                                                 json_integer_value(json_array_get(window, 1)), 0});
    json_decref(json);
}

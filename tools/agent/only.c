/*
 * The lines that name traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "only.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/hex.h"
#include "babeltrace-plugin/base/table.h"
#include "only_found.h"

#include <inttypes.h>
#include <stdlib.h>
#include <urcu/compiler.h>

/* A line. */
struct only_filter {
    struct table_link in_table; /* by the lower half of the id; a line with * is in no table */
    struct only_filter *next;   /* the next line of the list `any` */
    uint64_t number;            /* of the line */
    uint64_t high;              /* 0: not known */
    uint64_t low;
    int64_t from_ns;
    int64_t until_ns;
    bool is_sent; /* a line with "-", which has no reason */
    size_t why_length;
    char why[];
};

struct only {
    struct table wanted;
    struct only_filter *any; /* the lines with * and -*, in their order */
    int64_t clock_ns;        /* 0: no line has it */
    struct found_traces *found;
    int64_t oldest_ns; /* of all events */
    int64_t newest_ns;
};

static void only_free_linked(struct table_link *link)
{
    free(caa_container_of(link, struct only_filter, in_table));
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct line {
    const char *name; /* of the text */
    uint64_t number;
    struct text rest;
    struct error *error;
};

/* The length of the part of a wrong text that a message shows. */
static int shown(struct text text)
{
    return text.length > 40 ? 40 : (int)text.length;
}

static bool refuse(const struct line *line, const char *expected, struct text got)
{
    return error_set(line->error, "%s, line %" PRIu64 ": expected %s, got \"%.*s\"", line->name,
                     line->number, expected, shown(got), got.length ? got.data : "");
}

/* Takes the next word and the blanks after it. */
static struct text only_take_word(struct line *line)
{
    const struct text word = text_take(&line->rest, ' ');

    while (line->rest.length && line->rest.data[0] == ' ')
        line->rest = text_after(line->rest, 1);
    return word;
}

static bool read_id(struct line *line, struct only_filter *wanted, bool *is_any)
{
    const struct text word = only_take_word(line);
    const bool has_length = word.length == 16 || word.length == 32;

    *is_any = text_is(word, "*");
    return *is_any || (has_length && hex_read_trace(word, &wanted->high, &wanted->low)) ||
           refuse(line, "a trace id of 16 or 32 hexadecimal digits, not all 0, or *", word);
}

static bool only_read_time(struct line *line, const char *expected, int64_t *time_ns)
{
    const struct text word = only_take_word(line);
    uint64_t number;

    if (!text_read_number(word, &number) || number > INT64_MAX)
        return refuse(line, expected, word);
    *time_ns = (int64_t)number;
    return true;
}

static bool read_window(struct line *line, struct only_filter *wanted)
{
    const struct text times = line->rest;

    return only_read_time(line, "FROM, in ns since 1970, or 0", &wanted->from_ns) &&
           only_read_time(line, "UNTIL, in ns since 1970, or 0", &wanted->until_ns) &&
           (!wanted->until_ns || wanted->from_ns < wanted->until_ns ||
            refuse(line, "an UNTIL that is after FROM", times));
}

/* A reason is shorter than its line, so it fits into as much memory. */
static bool read_line(struct line *line, struct only_filter *wanted, bool *is_any)
{
    wanted->is_sent = line->rest.length && line->rest.data[0] == '-';
    line->rest = text_after(line->rest, wanted->is_sent);
    if (!read_id(line, wanted, is_any) || !read_window(line, wanted))
        return false;
    if (wanted->is_sent)
        return !line->rest.length || refuse(line, "no reason after what was sent", line->rest);
    if (!line->rest.length || line->rest.length > ONLY_WHY_MAX ||
        memchr(line->rest.data, '\0', line->rest.length))
        return refuse(line, "a reason of 1 to 200 bytes", line->rest);
    wanted->number = line->number;
    wanted->why_length = line->rest.length;
    (void)text_copy(wanted->why, line->rest);
    return true;
}

static bool add_line(struct only *only, struct line *line, struct only_filter ***last_any)
{
    struct only_filter *wanted = calloc(1, sizeof(*wanted) + line->rest.length);
    bool is_any;

    if (!wanted)
        return error_set(line->error, "%s: out of memory", line->name);
    if (!read_line(line, wanted, &is_any)) {
        free(wanted);
        return false;
    }
    if (is_any) {
        **last_any = wanted;
        *last_any = &wanted->next;
    } else {
        table_add(&only->wanted, &wanted->in_table, hash_number(only->wanted.seed, wanted->low));
    }
    return true;
}

static bool read_clock(struct only *only, struct line *line)
{
    const char *expected = "clock NS, which is CLOCK_REALTIME - CLOCK_MONOTONIC";
    const struct text whole = line->rest;

    (void)only_take_word(line);
    if (!only_read_time(line, expected, &only->clock_ns))
        return false;
    return (only->clock_ns && !line->rest.length) || refuse(line, expected, whole);
}

/* True for a first line "clock NS". */
static bool is_clock(const struct line *line)
{
    return line->number == 1 && line->rest.length > 6 && text_begins(line->rest, "clock ");
}

static bool add_lines(struct only *only, struct text text, const char *name, struct error *error)
{
    struct line line = {.name = name, .error = error};
    struct only_filter **last_any = &only->any;

    while (text.length) {
        line.number++;
        line.rest = text_take(&text, '\n');
        if (!(is_clock(&line) ? read_clock(only, &line) : add_line(only, &line, &last_any)))
            return false;
    }
    if (line.number > (only->clock_ns ? 1 : 0))
        return true;
    return error_set(error, "%s: expected a line for each trace, got none", name);
}

struct only *only_of_text(struct text text, const char *name, struct error *error)
{
    struct only *only = calloc(1, sizeof(*only));

    if (!only || !table_init(&only->wanted) || !(only->found = found_new()))
        error_set(error, "%s: out of memory", name);
    else if (add_lines(only, text, name, error))
        return only;
    only_free(only);
    return NULL;
}

void only_free(struct only *only)
{
    if (!only)
        return;
    for (struct only_filter *next; only->any; only->any = next) {
        next = only->any->next;
        free(only->any);
    }
    table_destroy(&only->wanted, only_free_linked);
    found_free(only->found);
    free(only);
}

/* ---- queries --------------------------------------------------------------------------------- */

/* The original's events, and the events of a trace that they began, have only the lower half. */
static bool only_fits(const struct only_filter *wanted, uint64_t high, uint64_t low)
{
    return wanted->low == low && (!wanted->high || !high || wanted->high == high);
}

static bool is_in_time(const struct only_filter *wanted, int64_t time_ns)
{
    return (!wanted->from_ns || time_ns >= wanted->from_ns) &&
           (!wanted->until_ns || time_ns < wanted->until_ns);
}

/* True if the trace has a line of this kind, or the lines for all traces do. */
static bool has_line(const struct only *only, bool is_sent, uint64_t high, uint64_t low,
                     int64_t time_ns)
{
    const struct only_filter *wanted;

    table_find(wanted, &only->wanted, hash_number(only->wanted.seed, low), in_table,
               wanted->is_sent == is_sent && only_fits(wanted, high, low) &&
                   is_in_time(wanted, time_ns));
    if (wanted)
        return true;
    for (wanted = only->any; wanted; wanted = wanted->next) {
        if (wanted->is_sent == is_sent && is_in_time(wanted, time_ns))
            return true;
    }
    return false;
}

bool only_wants(const struct only *only, uint64_t trace_id_high, uint64_t trace_id, int64_t time_ns)
{
    return has_line(only, false, trace_id_high, trace_id, time_ns);
}

bool only_was_sent(const struct only *only, const struct span *span)
{
    return span->recorded_ns &&
           has_line(only, true, span->trace_id_high, span->trace_id, span->recorded_ns);
}

void only_note_time(struct only *only, int64_t time_ns)
{
    if (!only->oldest_ns || time_ns < only->oldest_ns)
        only->oldest_ns = time_ns;
    if (time_ns > only->newest_ns)
        only->newest_ns = time_ns;
}

struct text only_why(const struct only *only, uint64_t trace_id_high, uint64_t trace_id)
{
    const struct only_filter *wanted, *first = only->any;

    while (first && first->is_sent)
        first = first->next;
    table_for_each_of(wanted, &only->wanted, hash_number(only->wanted.seed, trace_id), in_table)
    {
        if (!wanted->is_sent && only_fits(wanted, trace_id_high, trace_id) &&
            (!first || wanted->number < first->number))
            first = wanted;
    }
    return first ? (struct text){first->why, first->why_length} : (struct text){NULL, 0};
}

int64_t only_clock(const struct only *only)
{
    return only->clock_ns;
}

void only_tell_of(struct only *only, uint64_t traces)
{
    found_tell_of(only->found, traces);
}

void only_note(struct only *only, const struct span *span)
{
    found_note(only->found, span);
}

char *only_found(struct only *only)
{
    return found_text(only->found, only->oldest_ns, only->newest_ns);
}

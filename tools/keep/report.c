/*
 * Prints the traces that `blkin keep` found, as a table or as JSON.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include "babeltrace-plugin/base/date.h"
#include "tools/base/json.h"
#include "tools/base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_WIDTH        32
#define KEEP_NAME_WIDTH 64 /* columns of a host's name */
#define KEEP_TRACES_MAX 40 /* lines of the table; --json has all */
#define LINE_WIDTH      2000
#define KEEP_SECOND_NS  1e9

/* Returns the id without the leading zeros of a 64-bit id. */
static const char *short_id(const char *id)
{
    return strlen(id) == 32 && strspn(id, "0") >= 16 ? id + 16 : id;
}

/* ---- missing parts --------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void problem(json_t *problems, const char *format, ...)
{
    char *text = NULL;
    va_list values;

    va_start(values, format);
    if (vasprintf(&text, format, values) >= 0)
        (void)json_array_append_new(problems, json_string(text));
    va_end(values);
    free(text);
}

/* An id of 16 digits is the lower half of the trace id. */
static bool is_same_id(const char *one, const char *other)
{
    one = short_id(one);
    other = short_id(other);
    if (strlen(one) != strlen(other)) {
        one += strlen(one) == 32 ? 16 : 0;
        other += strlen(other) == 32 ? 16 : 0;
    }
    return strcmp(one, other) == 0;
}

static bool is_found(const json_t *answer, const char *id)
{
    const json_t *trace;
    size_t i;

    json_array_foreach(json_object_get(answer, "traces"), i, trace)
    {
        if (is_same_id(text_in(trace, "id"), id) && number_in(trace, "spans") > 0)
            return true;
    }
    return false;
}

static void look_at_traces(const struct keep_question *question, const json_t *answer,
                           json_t *problems)
{
    const json_t *traces = json_object_get(answer, "traces");
    const json_t *trace;
    size_t i;

    for (i = 0; i < question->count; i++) {
        if (!is_found(answer, question->ids[i]))
            problem(problems, "trace %s: no span was found", question->ids[i]);
    }
    if (question->count == 0 && json_array_size(traces) == 0)
        problem(problems, "nothing was found%s%s", question->service ? " of service " : "",
                question->service ? question->service : "");
    json_array_foreach(traces, i, trace)
    {
        if (number_in(trace, "missing") > 0)
            problem(problems, "trace %s: %" PRId64 " parent spans were not found",
                    text_in(trace, "id"), number_in(trace, "missing"));
    }
}

/* Returns for how long before the question the host's rings are complete. Below 0: unknown, or
 * nothing is held. */
static double reach_s(const struct keep_question *question, const json_t *host)
{
    const int64_t held_ns = date_read(text_in(host, "held_from"));

    if (!held_ns)
        return -1;
    return question->asked_ns > held_ns ? (double)(question->asked_ns - held_ns) / KEEP_SECOND_NS
                                        : 0;
}

static void look_at_host(const struct keep_question *question, const json_t *host, json_t *problems)
{
    const char *name = text_in(host, "host"), *state = text_in(host, "state");
    const double reach = reach_s(question, host);

    if (*text_in(host, "error"))
        problem(problems, "host %s: %s", name, text_in(host, "error"));
    else if (strcmp(state, "away") == 0)
        problem(problems, "host %s: its recorder does not run, or does not reach the broker", name);
    else if (strcmp(state, "answered") != 0)
        problem(problems, "host %s: has not answered", name);
    else if (question->count == 0 && reach >= 0 && reach * 1e3 < (double)question->last_ms)
        problem(problems, "host %s: its ring goes back only %.1f s", name, reach);
}

/* Returns a new array, empty if all was found. NULL: out of memory. */
static json_t *problems_of(const struct keep_question *question, const json_t *answer)
{
    json_t *problems = json_array();
    const json_t *host;
    size_t i;

    look_at_traces(question, answer, problems);
    json_array_foreach(json_object_get(answer, "hosts"), i, host)
    {
        look_at_host(question, host, problems);
    }
    return problems;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void put_left(const char *text, size_t width)
{
    const size_t taken = put(text, width);

    put_spaces(width - taken + 2);
}

static void put_trace(const json_t *trace)
{
    const json_t *hosts = json_object_get(trace, "hosts");
    const json_t *host;
    size_t i;

    put_left(short_id(text_in(trace, "id")), ID_WIDTH);
    printf("%7" PRId64 "  %7" PRId64 "  ", number_in(trace, "spans"), number_in(trace, "missing"));
    json_array_foreach(hosts, i, host)
    {
        const char *name = json_string_value(host);

        if (i)
            fputs(", ", stdout);
        put(name ? name : "?", KEEP_NAME_WIDTH);
    }
    putchar('\n');
}

/* sent: the number of traces that were sent but are in no list */
static void put_traces(const json_t *traces, int64_t sent)
{
    const size_t count = json_array_size(traces);
    size_t shown = 0;

    if (count == 0)
        return;
    printf("%-*s  %7s  %7s  hosts\n", ID_WIDTH, "trace", "spans", "missing");
    /* incomplete traces first, as people look for them in a long list */
    for (int whole = 0; whole < 2; whole++) {
        for (size_t i = 0; i < count && shown < KEEP_TRACES_MAX; i++) {
            const json_t *trace = json_array_get(traces, i);

            if ((number_in(trace, "missing") == 0) != whole)
                continue;
            put_trace(trace);
            shown++;
        }
    }
    if (count > shown)
        printf("... and %zu more: --json lists them\n", count - shown);
    if (sent)
        printf("... and %" PRId64 " more: they are sent too, but are too many to be listed and "
               "checked for missing spans\n",
               sent);
    putchar('\n');
}

static size_t width_of_names(const json_t *hosts)
{
    const json_t *host;
    size_t i, width = strlen("host");

    json_array_foreach(hosts, i, host)
    {
        const size_t taken = columns(text_in(host, "host"));

        width = taken > width ? taken : width;
    }
    return width < KEEP_NAME_WIDTH ? width : KEEP_NAME_WIDTH;
}

static void put_hosts(const struct keep_question *question, const json_t *hosts)
{
    const size_t width = width_of_names(hosts);
    const json_t *host;
    size_t i;

    if (json_array_size(hosts) == 0)
        return;
    put_left("host", width);
    puts("answer      spans  its ring goes back");
    json_array_foreach(hosts, i, host)
    {
        const double reach = reach_s(question, host);

        put_left(text_in(host, "host"), width);
        put_left(text_in(host, "state"), strlen("answered"));
        printf("%7" PRId64 "  ", number_in(host, "spans"));
        if (reach < 0)
            puts("-");
        else
            printf("%.1f s\n", reach);
    }
    putchar('\n');
}

bool report_table(const struct keep_question *question, json_t *answer)
{
    const json_t *traces = json_object_get(answer, "traces");
    json_t *problems = problems_of(question, answer);
    const bool is_whole = problems && json_array_size(problems) == 0;
    const json_t *text;
    size_t i;

    put_traces(traces, number_in(answer, "more"));
    put_hosts(question, json_object_get(answer, "hosts"));
    if (is_whole && number_in(answer, "more"))
        printf("The listed traces are complete. All traces are on their way to the collector.\n");
    else if (is_whole)
        printf("All was found, and is on its way to the collector.\n");
    json_array_foreach(problems, i, text)
    {
        fputs("missing: ", stdout);
        put(json_string_value(text), LINE_WIDTH);
        putchar('\n');
    }
    json_decref(problems);
    return is_whole;
}

bool report_json(const struct keep_question *question, json_t *answer)
{
    json_t *problems = problems_of(question, answer);
    const bool is_whole = problems && json_array_size(problems) == 0;

    (void)json_object_set_new(answer, "complete", json_boolean(is_whole));
    (void)json_object_set_new(answer, "missing", problems);
    if (json_dumpf(answer, stdout, JSON_INDENT(2)) == 0)
        putchar('\n');
    return is_whole;
}

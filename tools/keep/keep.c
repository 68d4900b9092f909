/*
 * Command "blkin keep": asks this host's agent to send traces. The agent asks the other agents.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/duration.h"
#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/utf8.h"
#include "tools/base/commands.h"
#include "tools/base/control.h"
#include "tools/base/json.h"
#include "tools/base/output.h"
#include "tools/base/text.h"
#include "tools/config/config.h"
#include "tools/trace/traces.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
#include "tools/keep/usage.txt.inc"
    ;

#define POLL_MS            5 /* the first pause; later ones double, up to POLL_MAX_MS */
#define POLL_MAX_MS        100
#define SLACK_MS           20000 /* the time to read the rings and to reach the other hosts */
#define KEEP_REQUEST_BYTES 4000  /* a control socket takes 4096 */
#define KEEP_NAME_MAX      200   /* of a service's name */
#define KEEP_ID_MAX        300   /* of the agent's id of a request */

#define KEEP_IDS_MAX 100

struct keep_question {
    char ids[KEEP_IDS_MAX][33]; /* 16 or 32 digits */
    size_t count;               /* 0: the question is about the traces of the last last_ms */
    int64_t last_ms;
    const char *service; /* NULL: all services */
    int64_t asked_ns;    /* since 1970 */
};

#define ID_WIDTH        32
#define KEEP_NAME_WIDTH 64 /* columns of a host's name */
#define KEEP_TRACES_MAX 40 /* lines of the table; --json has all */
#define LINE_WIDTH      2000
#define KEEP_SECOND_NS  1e9

/* Returns an id of 32 digits without its first 16 digits if they are zeros. */
static const char *short_id(const char *id)
{
    return strlen(id) == 32 && strspn(id, "0") >= 16 ? id + 16 : id;
}

/* ---- missing parts --------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void add_problem(json_t *problems, const char *format,
                                                              ...)
{
    char *text = NULL;
    va_list values;

    va_start(values, format);
    if (vasprintf(&text, format, values) >= 0)
        (void)json_array_append_new(problems, json_string(text));
    va_end(values);
    free(text);
}

/* Compares trace ids. An id of 16 digits may be the lower half of an id of 32 digits. */
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
            add_problem(problems, "trace %s: no span was found", question->ids[i]);
    }
    if (question->count == 0 && json_array_size(traces) == 0)
        add_problem(problems, "nothing was found%s%s", question->service ? " of service " : "",
                    question->service ? question->service : "");
    json_array_foreach(traces, i, trace)
    {
        if (number_in(trace, "missing") > 0)
            add_problem(problems, "trace %s: %" PRId64 " parent spans were not found",
                        text_in(trace, "id"), number_in(trace, "missing"));
    }
}

/* Returns how many seconds before the question the host's rings reach back. Below 0: unknown, or
 * the rings are empty. */
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
        add_problem(problems, "host %s: %s", name, text_in(host, "error"));
    else if (strcmp(state, "away") == 0)
        add_problem(problems, "host %s: its agent does not run, or does not reach the broker",
                    name);
    else if (strcmp(state, "answered") != 0)
        add_problem(problems, "host %s: has not answered", name);
    else if (question->count == 0 && reach >= 0 && reach * 1e3 < (double)question->last_ms)
        add_problem(problems, "host %s: its ring goes back only %.1f s", name, reach);
}

/* Returns a new array of texts about missing parts. NULL: out of memory. */
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
    const size_t taken = put_text(text, width);

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
        put_text(name ? name : "?", KEEP_NAME_WIDTH);
    }
    putchar('\n');
}

/* unlisted: the number of traces that are sent, but are not in the answer */
static void put_traces(const json_t *traces, int64_t unlisted)
{
    const size_t count = json_array_size(traces);
    size_t shown = 0;

    if (count == 0)
        return;
    printf("%-*s  %7s  %7s  hosts\n", ID_WIDTH, "trace", "spans", "missing");
    /* incomplete traces come first, as users look for them in a long list */
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
    if (unlisted)
        printf("... and %" PRId64 " more: they are sent too, but are too many to be listed and "
               "checked for missing spans\n",
               unlisted);
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

/*
 * report_table() and report_json() print the agent's answer to the request "kept ID":
 *
 *   {"id", "more": n, "done": bool,
 *    "traces": [{"id", "spans", "missing": n, "cut": bool, "hosts": [...]}],
 *    "hosts": [{"host", "state": "answered|waiting|away", "spans", "held_from", "error"}]}
 *
 * held_from: "2026-11-21T11:33:27.981Z", or null if the rings are empty. error is optional. Names
 * come from other hosts, and may be any text. is_whole: all wanted traces were found, and are
 * complete.
 */
static void report_table(const struct keep_question *question, const json_t *answer,
                         const json_t *problems, bool is_whole)
{
    const json_t *text;
    size_t i;

    put_traces(json_object_get(answer, "traces"), number_in(answer, "more"));
    put_hosts(question, json_object_get(answer, "hosts"));
    if (is_whole && number_in(answer, "more"))
        printf("The listed traces are complete. All traces are on their way to the collector.\n");
    else if (is_whole)
        printf("All was found, and is on its way to the collector.\n");
    json_array_foreach(problems, i, text)
    {
        fputs("missing: ", stdout);
        put_text(json_string_value(text), LINE_WIDTH);
        putchar('\n');
    }
}

static void report_json(json_t *answer, json_t *problems, bool is_whole)
{
    (void)json_object_set_new(answer, "complete", json_boolean(is_whole));
    (void)json_object_set(answer, "missing", problems);
    if (json_dumpf(answer, stdout, JSON_INDENT(2)) == 0)
        putchar('\n');
}

static bool is_json;
static const char *last, *service;

/* ---- pasted trace ids ------------------------------------------------------------------------ */

/* Reads "00-TRACE-SPAN-01" of W3C, or "TRACE-SPAN[-1[-PARENT]]" of B3. */
static bool header_id(const char *text, char id[33])
{
    char first[34], second[34]; /* longer than any id */

    if (sscanf(text, "%33[^-]-%33[^-]", first, second) != 2)
        return false;
    if (strlen(first) == 2)
        return strlen(second) == 32 && id_parse(second, id);
    return (strlen(first) == 16 || strlen(first) == 32) && strlen(second) == 16 &&
           id_parse(first, id);
}

/* Returns the last part of a URL's path, or the text if it is no URL. */
static const char *last_part(const char *text, size_t *length)
{
    const char *slash;

    *length = strlen(text);
    if (!strstr(text, "://"))
        return text;
    *length = strcspn(text, "?#");
    while (*length && text[*length - 1] == '/')
        --*length;
    slash = memrchr(text, '/', *length);
    *length -= slash ? (size_t)(slash + 1 - text) : 0;
    return slash ? slash + 1 : text;
}

/* Converts a pasted id to 16 or 32 digits in lower case. Accepts up to 32 hexadecimal digits, the
 * address of a trace's page in Zipkin, a W3C traceparent, and B3 in one line. Returns false for
 * other texts, and for an id of zeros. */
static bool pasted_id(const char *text, char id[33])
{
    char part[128];
    size_t length;

    text = last_part(text, &length);
    if (length >= sizeof(part))
        return false;
    memcpy(part, text, length);
    part[length] = '\0';
    return (strchr(part, '-') ? header_id(part, id) : id_parse(part, id)) &&
           strspn(id, "0") != strlen(id);
}

/* ---- the question ---------------------------------------------------------------------------- */

static bool read_last(const char *program, struct keep_question *question)
{
    question->last_ms = duration_read_ms(last);
    question->service = service;
    if (question->last_ms <= 0) {
        fprintf(stderr, "%s: --last=%s: expected a duration such as 500ms, 10s or 2m\n", program,
                last);
        return false;
    }
    /* the name is the end of a request, which is one line, and a text in JSON */
    if (service && (!*service || strlen(service) >= KEEP_NAME_MAX || strchr(service, '\n') ||
                    !utf8_is_valid(text_of(service)))) {
        fprintf(stderr, "%s: --service: expected a service's name\n", program);
        return false;
    }
    return true;
}

static bool read_ids(const char *program, const struct config *config,
                     struct keep_question *question)
{
    const int count = config_operands(config);

    if (count == 0 || count > KEEP_IDS_MAX) {
        fprintf(stderr, "%s: expected one to %d trace ids, or --last=10s\n", program, KEEP_IDS_MAX);
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (!pasted_id(config_operand(config, i), question->ids[question->count++])) {
            fprintf(stderr,
                    "%s: \"%s\": expected a trace id: 16 or 32 hexadecimal digits, the address of "
                    "its page in Zipkin, or a traceparent\n",
                    program, config_operand(config, i));
            return false;
        }
    }
    return true;
}

/* Returns false after printing the reason. */
static bool read_question(const char *program, const struct config *config,
                          struct keep_question *question)
{
    question->asked_ns = wall_clock_ns();
    if ((last && config_operands(config) > 0) || (service && !last)) {
        fprintf(stderr, "%s: expected trace ids alone, or --last=10s with or without --service\n",
                program);
        return false;
    }
    return last ? read_last(program, question) : read_ids(program, config, question);
}

static void write_request(const struct keep_question *question, char request[KEEP_REQUEST_BYTES])
{
    size_t length;

    if (question->count == 0) {
        (void)snprintf(request, KEEP_REQUEST_BYTES, "keep-last %lld%s%s",
                       (long long)question->last_ms, question->service ? " " : "",
                       question->service ? question->service : "");
        return;
    }
    length = (size_t)snprintf(request, KEEP_REQUEST_BYTES, "keep");
    for (size_t i = 0; i < question->count; i++)
        length += (size_t)snprintf(request + length, KEEP_REQUEST_BYTES - length, " %s",
                                   question->ids[i]);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Polls until all hosts have answered, the agent's time-out is over, or limit_ms has passed.
 * Returns NULL with error set. */
static json_t *wait_for_answer(const char *folder, const char *id, int64_t limit_ms,
                               struct error *error)
{
    const int64_t deadline_ms = clock_ms() + limit_ms;
    int64_t pause_ms = POLL_MS;
    char request[KEEP_ID_MAX + sizeof("kept ")];

    (void)snprintf(request, sizeof(request), "kept %s", id);
    for (;;) {
        json_t *answer = control_ask(folder, "agent", request, error);

        if (!answer || json_is_true(json_object_get(answer, "done")) || clock_ms() >= deadline_ms)
            return answer;
        json_decref(answer);
        (void)nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000}, NULL);
        pause_ms = pause_ms * 2 < POLL_MAX_MS ? pause_ms * 2 : POLL_MAX_MS;
    }
}

static json_t *ask(const struct config *config, const struct keep_question *question,
                   struct error *error)
{
    const char *folder = config_text(config, "runtime-dir");
    const int64_t limit_ms = config_integer(config, "linger-ms") +
                             config_integer(config, "fetch-interval-ms") +
                             config_integer(config, "answer-timeout-ms") + SLACK_MS;
    char request[KEEP_REQUEST_BYTES];
    json_t *accepted, *answer = NULL;
    const char *id;

    write_request(question, request);
    accepted = control_ask(folder, "agent", request, error);
    if (!accepted)
        return NULL;
    id = json_string_value(json_object_get(accepted, "id"));
    if (id && strlen(id) < KEEP_ID_MAX && isatty(STDERR_FILENO))
        fputs("blkin keep: asked; the answers take some seconds\n", stderr);
    if (id && strlen(id) < KEEP_ID_MAX)
        answer = wait_for_answer(folder, id, limit_ms, error);
    else
        error_set(error, "`blkin agent` gives an unexpected answer");
    json_decref(accepted);
    return answer;
}

int keep_command(int argc, char *argv[])
{
    static struct keep_question question;
    static const struct config_flag flags[] = {{"json", &is_json, NULL},
                                               {"last", NULL, &last},
                                               {"service", NULL, &service},
                                               {NULL, NULL, NULL}};
    const struct config_request request = {
        .section = "agent", .usage = usage, .flags = flags, .is_view = true};
    struct error error = {""};
    json_t *answer, *problems;
    bool is_whole;
    int status;
    struct config *config = config_read(&request, argc, argv, &status);

    if (!config)
        return status;
    if (!read_question(argv[0], config, &question)) {
        config_free(config);
        return 2;
    }
    answer = ask(config, &question, &error);
    config_free(config);
    if (!answer) {
        fprintf(stderr, "%s: %s\n", argv[0], error.text);
        if (strncmp(error.text, "no `blkin", strlen("no `blkin")) == 0)
            fprintf(stderr,
                    "%s: start it with \"systemctl start blkin-agent\": it keeps spans from then "
                    "on\n",
                    argv[0]);
        return 1;
    }
    problems = problems_of(&question, answer);
    is_whole = problems && json_array_size(problems) == 0;
    if (is_json)
        report_json(answer, problems, is_whole);
    else
        report_table(&question, answer, problems, is_whole);
    json_decref(problems);
    json_decref(answer);
    return output_flush(argv[0], is_whole ? 0 : 1);
}

/*
 * blkin keep: asks this host's recorder to send traces. The recorder asks the recorders of the
 * other hosts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "keep.h"

#include "babeltrace-plugin/base/duration.h"
#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "report.h"
#include "tools/base/control.h"
#include "tools/base/output.h"
#include "tools/config/config.h"
#include "tools/trace/load.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
#include "tools/keep/usage.txt.inc"
    ;

#define POLL_NS            100000000
#define SLACK_MS           20000 /* to copy and read the rings, and to reach the other hosts */
#define KEEP_REQUEST_BYTES 4000
#define KEEP_NAME_MAX      200
#define KEEP_ID_MAX        300

static bool is_json;
static const char *last, *service;

/* ---- a trace id as people paste it ----------------------------------------------------------- */

#define PART_MAX 40 /* longer than any id */

/* Reads the text up to a '-' or the end. Returns false if no id has such a part. */
static bool next_part(const char **text, char part[PART_MAX])
{
    const size_t length = strcspn(*text, "-");

    if (length == 0 || length >= PART_MAX)
        return false;
    memcpy(part, *text, length);
    part[length] = '\0';
    *text += length + ((*text)[length] == '-');
    return true;
}

/* Reads "00-TRACE-SPAN-01" of W3C, or "TRACE-SPAN[-1[-PARENT]]" of B3. */
static bool header_id(const char *text, char id[33])
{
    char first[PART_MAX], second[PART_MAX];

    if (!next_part(&text, first) || !next_part(&text, second))
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

/* Converts a pasted id to 16 or 32 digits in lower case. Accepts up to 32 hexadecimal digits,
 * the address of a trace's page in Zipkin, a W3C traceparent, and B3 in one line. Returns false
 * for other texts, and for an id of zeros. */
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

/* The name ends a request of one line, and is a JSON text. */
static bool is_name(const char *text)
{
    json_t *json = json_string(text);
    const bool is_utf8 = json != NULL;

    json_decref(json);
    return is_utf8 && *text && strlen(text) < KEEP_NAME_MAX && !strchr(text, '\n');
}

static bool read_last(const char *program, struct keep_question *question)
{
    question->last_ms = duration_read_ms(last);
    question->service = service;
    if (question->last_ms <= 0) {
        fprintf(stderr, "%s: --last=%s: expected a duration such as 500ms, 10s or 2m\n", program,
                last);
        return false;
    }
    if (service && !is_name(service)) {
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

/* Polls until all hosts have answered, or the recorder has given up waiting. Returns NULL with
 * error set. */
static json_t *wait_for_answer(const char *folder, const char *id, int64_t limit_ms,
                               struct error *error)
{
    const struct timespec pause = {0, POLL_NS};
    const int64_t deadline_ms = clock_ms() + limit_ms;
    char request[KEEP_ID_MAX + sizeof("kept ")];

    (void)snprintf(request, sizeof(request), "kept %s", id);
    for (;;) {
        json_t *answer = control_ask(folder, "agent", request, error);

        if (!answer || json_is_true(json_object_get(answer, "done")) || clock_ms() >= deadline_ms)
            return answer;
        json_decref(answer);
        (void)nanosleep(&pause, NULL);
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

static void say_what_to_do(const char *program, const struct error *error)
{
    fprintf(stderr, "%s: %s\n", program, error->text);
    if (strncmp(error->text, "no `blkin", strlen("no `blkin")) == 0)
        fprintf(stderr,
                "%s: start it with \"systemctl start blkin-agent\": it keeps spans from then on\n",
                program);
}

int keep_command(int argc, char *argv[])
{
    static struct keep_question question;
    static const struct config_flag flags[] = {{"json", &is_json, NULL},
                                               {"last", NULL, &last},
                                               {"service", NULL, &service},
                                               {NULL, NULL, NULL}};
    const struct config_request request = {"agent", usage, flags};
    struct error error = {""};
    json_t *answer;
    int status;
    struct config *config = config_read_view(&request, argc, argv, &status);

    if (!config)
        return status;
    if (!read_question(argv[0], config, &question)) {
        config_free(config);
        return 2;
    }
    answer = ask(config, &question, &error);
    config_free(config);
    if (!answer) {
        say_what_to_do(argv[0], &error);
        return 1;
    }
    status = (is_json ? report_json : report_table)(&question, answer) ? 0 : 1;
    json_decref(answer);
    return output_flush(argv[0], status);
}

/*
 * Commands "blkin status" and "blkin reload": ask the services of this host.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/base/commands.h"

#include "tools/base/control.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/config/config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char status_usage[] =
#include "tools/ask/status.txt.inc"
    ;

static const char reload_usage[] =
#include "tools/ask/reload.txt.inc"
    ;

static const struct {
    const char *name;
    bool has_reload;
} services[] = {{"live", true}, {"agent", true}, {"work-root", false}};
#define SERVICES (sizeof(services) / sizeof(services[0]))

#define FLUSH_MS 5000 /* the default of flush-timeout-ms */

/* A request to one named service, or to all running services. */
struct question {
    const char *program; /* the prefix of messages */
    const char *folder;  /* of the sockets */
    const char *name;    /* of the service; NULL: all services that know the request */
    const char *names;   /* the services that know the request */
    const char *request;
    bool is_reload;
    /* Prints the answer, and returns the exit status. NULL: show_json(). */
    int (*use)(const char *name, json_t *answer);
    const bool *is_json; /* print the answer as JSON; NULL: never */
};

/* Before a service answers a reload, it may deliver for flush-timeout-ms to its old collector. */
static int64_t reload_ms(const char *folder, const char *name)
{
    struct error ignored;
    json_t *status = control_ask(folder, name, "status", &ignored);
    const char *set = text_in(json_object_get(status, "keys_in_force"), "flush-timeout-ms");
    const int64_t ms = *set ? strtoll(set, NULL, 10) : FLUSH_MS;

    json_decref(status);
    return ms;
}

/* Without a name, a service that does not run is no error as long as another service answers.
 * Returns -1 for an unknown name. */
static int ask(const struct question *question)
{
    unsigned asked = 0, answered = 0, failed = 0;
    int status = 0, used;

    for (size_t i = 0; i < SERVICES; i++) {
        struct error error;
        json_t *answer;

        if (question->name ? strcmp(question->name, services[i].name) != 0
                           : question->is_reload && !services[i].has_reload)
            continue;
        asked++;
        answer = control_ask_for(
            question->folder, services[i].name, question->request,
            question->is_reload ? reload_ms(question->folder, services[i].name) : 0, &error);
        answered += answer != NULL;
        if (answer && question->is_json && *question->is_json) {
            (void)json_dumpf(answer, stdout, JSON_INDENT(2));
            putchar('\n');
        } else if (answer && !question->use) {
            show_json(answer);
        } else if (answer && (used = question->use(services[i].name, answer)) != 0) {
            status = used;
        } else if (!answer && (question->name || strncmp(error.text, "no `blkin", 9) != 0)) {
            fprintf(stderr, "%s: %s\n", question->program, error.text);
            failed++;
        }
        json_decref(answer);
    }
    if (asked == 0)
        return -1;
    if (answered == 0 && failed == 0)
        fprintf(
            stderr,
            "%s: no service of blkin that this user may ask (%s) runs with runtime-dir \"%s\"\n",
            question->program, question->names, question->folder);
    return answered && !failed ? status : 1;
}

static int ask_by_arguments(const struct config_request *request, int argc, char *argv[],
                            struct question *question)
{
    int status;
    struct config *config = config_read(request, argc, argv, &status);

    if (!config)
        return status;
    question->program = argv[0];
    question->folder = config_text(config, "runtime-dir");
    question->name = config_operands(config) > 0 ? config_operand(config, 0) : NULL;
    status = config_operands(config) > 1 ? -1 : ask(question);
    if (status < 0) {
        fprintf(stderr, "%s: expected %s, or nothing\n%s", argv[0], question->names,
                request->usage);
        status = 2;
    }
    config_free(config);
    return status;
}

/* ---- status ---------------------------------------------------------------------------------- */

int status_command(int argc, char *argv[])
{
    bool is_json = false;
    const struct config_flag flags[] = {{"json", &is_json, NULL}, {NULL, NULL, NULL}};
    const struct config_request request = {.usage = status_usage, .flags = flags, .is_view = true};
    struct question question = {
        .request = "status", .names = "live, agent or work-root", .is_json = &is_json};

    return ask_by_arguments(&request, argc, argv, &question);
}

/* ---- reload ---------------------------------------------------------------------------------- */

static int print_result(const char *name, json_t *answer)
{
    const char *result = json_string_value(json_object_get(answer, "result"));

    printf("%s: %s\n", name, result ? result : "done");
    return json_array_size(json_object_get(answer, "needs_restart")) ||
                   json_array_size(json_object_get(answer, "needs_session"))
               ? 3
               : 0;
}

int reload_command(int argc, char *argv[])
{
    const struct config_request request = {.usage = reload_usage, .is_view = true};
    struct question question = {
        .request = "reload", .names = "live or agent", .is_reload = true, .use = print_result};

    return ask_by_arguments(&request, argc, argv, &question);
}

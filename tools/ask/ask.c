/*
 * Commands "blkin status" and "blkin reload": ask the services of this host.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/base/commands.h"

#include "tools/base/control.h"
#include "tools/base/text.h"
#include "tools/config/config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char status_usage[] =
#include "tools/ask/status.txt.inc"
    ;

static const char reload_usage[] =
#include "tools/ask/reload.txt.inc"
    ;

static const char *const services[] = {"live", "agent", "work-root"};
#define SERVICES (sizeof(services) / sizeof(services[0]))

/* A request to one named service, or to all running services. */
struct question {
    const char *program; /* the prefix of messages */
    const char *folder;  /* of the sockets */
    const char *name;    /* of the service; NULL: all services */
    const char *request;
    int (*use)(const char *name, json_t *answer); /* prints the answer; returns the exit status */
    const bool *is_json;                          /* print the answer as JSON; NULL: never */
};

static bool is_service(const char *name)
{
    for (size_t i = 0; i < SERVICES; i++) {
        if (strcmp(name, services[i]) == 0)
            return true;
    }
    return false;
}

/* Returns "live, agent, ... or work-root". */
static const char *service_names(void)
{
    static char text[128];
    size_t length = 0;

    for (size_t i = 0; i < SERVICES; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
                                   i == 0              ? ""
                                   : i == SERVICES - 1 ? " or "
                                                       : ", ",
                                   services[i]);
    return text;
}

static bool is_asked(const struct question *question, const char *name)
{
    return !question->name || strcmp(question->name, name) == 0;
}

/* Without a name, a service that does not run is no error as long as another service answers. */
static int ask(const struct question *question)
{
    struct error errors[SERVICES];
    unsigned answered = 0, failed = 0;
    int status = 0, used;

    for (size_t i = 0; i < SERVICES; i++) {
        json_t *answer =
            is_asked(question, services[i])
                ? control_ask(question->folder, services[i], question->request, &errors[i])
                : NULL;

        if (answer && question->is_json && *question->is_json) {
            (void)json_dumpf(answer, stdout, JSON_INDENT(2));
            putchar('\n');
        } else if (answer && (used = question->use(services[i], answer)) != 0) {
            status = used;
        }
        answered += answer != NULL;
        if (!answer && is_asked(question, services[i]) &&
            (question->name || strncmp(errors[i].text, "no `blkin", 9) != 0)) {
            fprintf(stderr, "%s: %s\n", question->program, errors[i].text);
            failed++;
        }
        json_decref(answer);
    }
    if (answered == 0 && failed == 0)
        fprintf(
            stderr,
            "%s: no service of blkin that this user may ask (%s) runs with runtime-dir \"%s\"\n",
            question->program, service_names(), question->folder);
    return answered && !failed ? status : 1;
}

static int ask_by_arguments(const struct config_request *request, int argc, char *argv[],
                            struct question *question)
{
    int status;
    struct config *config = config_read_view(request, argc, argv, &status);

    if (!config)
        return status;
    question->program = argv[0];
    question->folder = config_text(config, "runtime-dir");
    question->name = config_operands(config) > 0 ? config_operand(config, 0) : NULL;
    if (config_operands(config) > 1 || (question->name && !is_service(question->name))) {
        fprintf(stderr, "%s: expected %s, or nothing\n%s", argv[0], service_names(),
                request->usage);
        status = 2;
    } else {
        status = ask(question);
    }
    config_free(config);
    return status;
}

/* ---- status ---------------------------------------------------------------------------------- */

static int print_readable(const char *name, json_t *answer)
{
    (void)name;
    show_json(answer);
    return 0;
}

int status_command(int argc, char *argv[])
{
    bool is_json = false;
    const struct config_flag flags[] = {{"json", &is_json, NULL}, {NULL, NULL, NULL}};
    const struct config_request request = {NULL, status_usage, flags};
    struct question question = {.request = "status", .use = print_readable, .is_json = &is_json};

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
    const struct config_request request = {NULL, reload_usage, NULL};
    struct question question = {.request = "reload", .use = print_result};

    return ask_by_arguments(&request, argc, argv, &question);
}

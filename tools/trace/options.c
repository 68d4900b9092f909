/*
 * The options of the commands that show traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "options.h"

#include "read.h"
#include "babeltrace-plugin/base/duration.h"
#include "tools/base/text.h"

#include <assert.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 17 /* with --rules, an option of all commands */
#define RULES       1
#define FIRST       256 /* getopt_long(3)'s value for the first option; 'h' is help */

#define MIN_INTERVAL_S 0.1
#define MAX_INTERVAL_S 86400.0

static bool take_choice(const struct view_option *option, const char *text, const char *command)
{
    const char *const *const choices = option->choices;
    unsigned i;

    for (i = 0; choices[i]; i++) {
        if (strcmp(text, choices[i]) == 0) {
            *(unsigned *)option->value = i;
            return true;
        }
    }
    fprintf(stderr, "%s: --%s: expected %s", command, option->name, choices[0]);
    for (i = 1; choices[i]; i++)
        fprintf(stderr, "%s%s", choices[i + 1] ? ", " : " or ", choices[i]);
    fprintf(stderr, ", got \"%s\"\n", text);
    return false;
}

static bool take_number(const struct view_option *option, const char *text, const char *command)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);

    if (*end || end == text || value < option->min || value > option->max) {
        fprintf(stderr, "%s: --%s: expected a number of %zu to %zu, got \"%s\"\n", command,
                option->name, option->min, option->max, text);
        return false;
    }
    *(size_t *)option->value = value;
    return true;
}

static bool take_seconds(const struct view_option *option, const char *text, const char *command)
{
    char *end;
    const double seconds = real_read(text, &end);

    if (*end || end == text || !(seconds >= MIN_INTERVAL_S && seconds <= MAX_INTERVAL_S)) {
        fprintf(stderr, "%s: --%s: expected %.1f to %.0f seconds, got \"%s\"\n", command,
                option->name, MIN_INTERVAL_S, MAX_INTERVAL_S, text);
        return false;
    }
    *(int64_t *)option->value = (int64_t)(seconds * 1000);
    return true;
}

static bool take(const struct view_option *option, const char *text, const char *command)
{
    switch (option->type) {
    case VIEW_FLAG:
        *(bool *)option->value = true;
        return true;
    case VIEW_TEXT:
        *(const char **)option->value = text;
        return true;
    case VIEW_CHOICE:
        return take_choice(option, text, command);
    case VIEW_NUMBER:
        return take_number(option, text, command);
    case VIEW_SECONDS:
        return take_seconds(option, text, command);
    default:
        utf8_off();
        return true;
    }
}

/* Makes the names and the letters for getopt_long(3). */
static void list(const struct view_command *command, struct option *names, char *letters)
{
    for (size_t i = 0; i < command->count; i++) {
        const struct view_option *option = &command->options[i];
        const bool has_value = option->type != VIEW_FLAG && option->type != VIEW_ASCII;

        *names++ = (struct option){option->name, has_value, NULL, FIRST + (int)i};
        if (option->letter)
            *letters++ = option->letter;
        if (option->letter && has_value)
            *letters++ = ':';
    }
    *names++ = (struct option){"rules", required_argument, NULL, RULES};
    *names++ = (struct option){"help", no_argument, NULL, 'h'};
    *names = (struct option){NULL, 0, NULL, 0};
    strcpy(letters, "h");
}

static const struct view_option *find(const struct view_command *command, int found)
{
    for (size_t i = 0; i < command->count; i++) {
        if (found == FIRST + (int)i || found == command->options[i].letter)
            return &command->options[i];
    }
    return NULL;
}

int view_options(int argc, char *argv[], const struct view_command *command)
{
    struct option names[OPTIONS_MAX + 2];
    char letters[2 * OPTIONS_MAX + 2];
    int found;

    assert(command->count <= OPTIONS_MAX);
    list(command, names, letters);
    while ((found = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        const struct view_option *option = find(command, found);

        if (found == RULES && source_rules_path) {
            fprintf(stderr,
                    "%s: --rules: given twice, expected once: a folder with files NAME.rules has "
                    "several\n",
                    argv[0]);
            return 2;
        }
        if (found == RULES) {
            source_rules_path = optarg;
            continue;
        }
        if (found == 'h') {
            fputs(command->usage, stdout);
            return 0;
        }
        if (!option) {
            fprintf(stderr, "%s --help prints the usage\n", argv[0]);
            return 2;
        }
        if (!take(option, optarg, argv[0]))
            return 2;
    }
    if (argc - optind >= command->operands_min && argc - optind <= command->operands_max)
        return -1;
    fprintf(stderr, "%s: expected %s; --help prints the usage\n", argv[0], command->expected);
    return 2;
}

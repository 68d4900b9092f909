/* SPDX-License-Identifier: BSD-2-Clause */
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

#define OPTIONS_MAX 17  /* with --rules, which all commands have */
#define RULES       1   /* getopt_long(3)'s value for --rules */
#define FIRST       256 /* getopt_long(3)'s value for the first option; 'h' is help */

#define MIN_INTERVAL_S 0.1
#define MAX_INTERVAL_S 86400.0

/* Sets the option's value. Returns false after printing an error. */
static bool option_set(const struct view_option *option, const char *text, const char *command)
{
    char expected[128] = "", *end;
    unsigned long number;
    double seconds;

    switch (option->type) {
    case VIEW_FLAG:
        return *(bool *)option->value = true;
    case VIEW_TEXT:
        *(const char **)option->value = text;
        return true;
    case VIEW_CHOICE:
        for (unsigned i = 0; option->choices[i]; i++) {
            const size_t length = strlen(expected);

            *(unsigned *)option->value = i;
            if (strcmp(text, option->choices[i]) == 0)
                return true;
            (void)snprintf(expected + length, sizeof(expected) - length, "%s%s",
                           i == 0                   ? ""
                           : option->choices[i + 1] ? ", "
                                                    : " or ",
                           option->choices[i]);
        }
        break;
    case VIEW_NUMBER:
        number = strtoul(text, &end, 10);
        *(size_t *)option->value = number;
        if (*end == '\0' && end > text && number >= option->min && number <= option->max)
            return true;
        (void)snprintf(expected, sizeof(expected), "a number of %zu to %zu", option->min,
                       option->max);
        break;
    case VIEW_SECONDS:
        seconds = real_read(text, &end);
        if (*end == '\0' && end > text && seconds >= MIN_INTERVAL_S && seconds <= MAX_INTERVAL_S) {
            *(int64_t *)option->value = (int64_t)(seconds * 1000);
            return true;
        }
        (void)snprintf(expected, sizeof(expected), "%.1f to %.0f seconds", MIN_INTERVAL_S,
                       MAX_INTERVAL_S);
        break;
    default:
        utf8_off();
        return true;
    }
    fprintf(stderr, "%s: --%s: expected %s, got \"%s\"\n", command, option->name, expected, text);
    return false;
}

/* Writes the names and the letters of the options for getopt_long(3). */
static void option_list(const struct view_command *command, struct option *names, char *letters)
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

static const struct view_option *option_find(const struct view_command *command, int found)
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

    assert(command->count < OPTIONS_MAX);
    option_list(command, names, letters);
    while ((found = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        const struct view_option *option = option_find(command, found);

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
        if (!option_set(option, optarg, argv[0]))
            return 2;
    }
    if (argc - optind >= command->operands_min && argc - optind <= command->operands_max)
        return -1;
    fprintf(stderr, "%s: expected %s; --help prints the usage\n", argv[0], command->expected);
    return 2;
}

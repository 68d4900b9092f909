/*
 * The options of the commands that show traces: show, stat, graph and report.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TRACE_OPTIONS_H
#define BLKIN_TOOLS_TRACE_OPTIONS_H

#include <stddef.h>

/* The type of an option, and the C type of its value. */
enum view_type {
    VIEW_FLAG,    /* without an argument: bool, set to true */
    VIEW_TEXT,    /* const char * */
    VIEW_CHOICE,  /* unsigned: the index in choices */
    VIEW_NUMBER,  /* size_t, min to max */
    VIEW_SECONDS, /* int64_t, in ms: 0.1 s to a day */
    VIEW_ASCII,   /* without an argument and a value: switches off UTF-8 on the terminal */
};

struct view_option {
    const char *name;
    enum view_type type;
    char letter; /* 0: none */
    void *value;
    const char *const *choices; /* ends with NULL */
    size_t min, max;
};

/* Two options of show, stat and graph. */
#define VIEW_WIDTH(columns)                                                      \
    {                                                                            \
        .name = "width", .letter = 'w', .type = VIEW_NUMBER, .value = (columns), \
        .min = SCREEN_WIDTH_MIN, .max = SCREEN_WIDTH_MAX                         \
    }
#define VIEW_ONLY_ASCII                     \
    {                                       \
        .name = "ascii", .type = VIEW_ASCII \
    }

struct view_command {
    const char *usage; /* the text of --help and -h */
    const struct view_option *options;
    size_t count;
    int operands_min, operands_max;
    const char *expected; /* the operands, for messages */
};

/* Reads the options and leaves the operands at argv[optind]. Returns the exit status if the command
 * ends here, or -1. */
int view_options(int argc, char *argv[], const struct view_command *command);

#endif

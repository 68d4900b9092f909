/*
 * What the files of the configuration share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONFIG_PARTS_H
#define BLKIN_TOOLS_CONFIG_PARTS_H

#include "config.h"
#include "keys.h"

struct setting {
    bool has_value;  /* else it is not given, and there is no default */
    int64_t integer; /* of an integer or a boolean, which is 0 or 1 */
    char *text;      /* of any other */
    char *origin;    /* NULL: the default */
    uint64_t stamp;  /* of the file that a key named *-file names: which content it has */
    char *waiting;   /* what the configuration says now, which needs a restart; NULL: the same */
};

struct config {
    const struct config_request *request;
    int argc;
    char **argv;
    int first_operand;
    int section;
    bool is_for_other; /* of the command line, what belongs to another section is left out */
    const char *path;
    const char *path_flag; /* of the command line; NULL: none */
    bool is_view;          /* it works also without a default file that this user may not read */
    bool has_file, is_left_out, has_old_section;
    const struct config *started; /* while it is read: what a running service has */
    const char *flags[KEYS_MAX];  /* of the command line, which come last */
    unsigned errors;
    struct setting settings[KEYS_MAX];
    unsigned lines[KEY_SECTIONS][KEYS_MAX]; /* of the file, that set it */
};

/* What is not given gets its default: config_values.c. Returns false when out of memory. */
bool config_fill_in(struct config *config);

#endif

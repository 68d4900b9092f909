/* Shared by the files of the configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONFIG_PARTS_H
#define BLKIN_TOOLS_CONFIG_PARTS_H

#include "config.h"
#include "keys.h"

struct setting {
    bool has_value;  /* false: not given, and without a default */
    int64_t integer; /* the value of an integer, or of a boolean (0 or 1) */
    char *text;      /* the value of other types */
    char *origin;    /* NULL: the default */
    uint64_t stamp;  /* for a key *-file: marks the content of the named file */
    char *waiting;   /* a new value that needs a restart; NULL: none */
};

struct config {
    const struct config_request *request;
    int argc;
    char **argv;
    int first_operand;
    int section;
    bool is_for_other; /* leaves out flags of other sections */
    const char *path;
    bool is_view;  /* tolerates an unreadable default file */
    bool is_quiet; /* prints no errors */
    bool has_file, is_left_out, has_old_section;
    const struct config *started; /* during a reload: the service's configuration */
    const char *flags[KEYS_MAX];  /* values of the command line, applied last */
    unsigned errors;
    struct error first_error;
    struct setting settings[KEYS_MAX];
    unsigned lines[KEY_SECTIONS][KEYS_MAX]; /* the line of the file for each key */
};

/* Sets the defaults (config_values.c). Returns false when out of memory. */
bool config_fill_in(struct config *config);

#endif

/* Declarations that the sources config*.c and file.c share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONFIG_PARTS_H
#define BLKIN_TOOLS_CONFIG_PARTS_H

#include "config.h"
#include "keys.h"

struct setting {
    bool has_value;       /* false: not given, and without a default */
    int64_t integer;      /* the value of an integer, or of a boolean (0 or 1) */
    char *text;           /* the value of other types */
    char *origin;         /* NULL: the default */
    uint64_t fingerprint; /* for a key *-file: the fingerprint of the file that the key names */
    char *waiting;        /* a new value that needs a restart; NULL: none */
};

struct config {
    const struct config_request *request;
    int argc;
    char **argv;
    int first_operand;
    int section;
    const char *path;
    bool has_file, is_unreadable, has_old_section;
    const struct config *started; /* during a reload: the service's configuration */
    const char *flags[KEYS_MAX];  /* values of the command line, applied last */
    unsigned errors;
    struct error first_error;
    struct setting settings[KEYS_MAX];
    unsigned lines[KEY_SECTIONS][KEYS_MAX]; /* the line of the file for each key */
};

/* ---- the lines of a file: file.c */

struct config_lines {
    /* A line `name = value`; section is "" before the first section. */
    void (*entry)(void *context, unsigned line, const char *section, const char *name,
                  const char *value);
    /* A malformed line. why: the fault. */
    void (*bad)(void *context, unsigned line, const char *why);
    void *context;
};

/* Calls entry() for each setting and bad() for each malformed line, in order. */
void config_file_parse(const char *bytes, size_t size, const struct config_lines *lines);

/* Returns the bytes of a file, which the caller frees; NULL with error and errno set. */
char *config_file_read(const char *path, size_t *size, struct error *error);

/* Sets the defaults (config_values.c). Returns false when out of memory. */
bool config_set_defaults(struct config *config);

#endif

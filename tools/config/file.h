/*
 * The lines of a configuration file, parsed by inih.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONFIG_FILE_H
#define BLKIN_TOOLS_CONFIG_FILE_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct config_lines {
    /* A line `name = value`; section is "" before the first section. */
    void (*entry)(void *context, unsigned line, const char *section, const char *name,
                  const char *value);
    /* A malformed line. */
    void (*bad)(void *context, unsigned line, const char *why);
    void *context;
};

/* Calls the functions for each line in order. */
void config_file_parse(const char *bytes, size_t size, const struct config_lines *lines);

/* Returns the bytes of a file, which the caller frees; NULL with error and errno set. */
char *config_file_read(const char *path, size_t *size, struct error *error);

#endif

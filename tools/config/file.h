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
    /* A line `name = value`; section is "" before the first one. */
    void (*entry)(void *context, unsigned line, const char *section, const char *name,
                  const char *value);
    /* A line that is none of what there may be. */
    void (*bad)(void *context, unsigned line, const char *why);
    void *context;
};

/* Calls for each line in turn. */
void config_file_parse(const char *bytes, size_t size, const struct config_lines *lines);

/* The bytes of a file, free() them. Returns NULL with error set and errno as it was. */
char *config_file_read(const char *path, size_t *size, struct error *error);

#endif

/*
 * The options of blkin stat.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_STAT_OPTIONS_H
#define BLKIN_TOOLS_STAT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sort { SORT_RATE, SORT_P99, SORT_SELF, SORT_ERRORS };

struct options {
    int64_t interval_ms;
    unsigned sort; /* enum sort */
    bool once;
    bool json;
    const char *service; /* a glob; NULL: all */
    size_t width;        /* 0: the terminal's */
    const char *source;  /* NULL: the services that run here */
    const char *config;  /* the flags "--runtime-dir=..." and "--config=..."; NULL: not given */
    const char *runtime_dir;
};

/* Returns the exit status if there is nothing to do after this, or -1. */
int read_options(int argc, char *argv[], struct options *options);

#endif

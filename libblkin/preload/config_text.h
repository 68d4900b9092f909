/*
 * The run-time configuration as a text: that of BLKIN_RUN, which "blkin run" has made of its
 * options, and that of the file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_CONFIG_TEXT_H
#define BLKIN_PRELOAD_CONFIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRELOAD_CONFIG_MAX  1024 /* of a text, with its NUL */
#define PRELOAD_RANGES_MAX  64
#define PRELOAD_SERVICE_MAX 64
#define PRELOAD_PAYLOAD_MAX 64
#define PRELOAD_USAGE_UNSET (-1)

/* Which calls on files are spans of their own. */
enum preload_file_calls {
    PRELOAD_FILES_AUTO, /* each, but totals where several interactions share a thread's call */
    PRELOAD_FILES_EACH,
    PRELOAD_FILES_TOTALS,
    PRELOAD_FILES_OFF
};

/* What is done in a process with a seccomp filter. */
enum preload_filters {
    PRELOAD_FILTERS_RINGS, /* it is traced into the recorder's rings, without LTTng */
    PRELOAD_FILTERS_LEAVE, /* nothing */
    PRELOAD_FILTERS_TRACE, /* one that was inherited allows what LTTng does */
};

struct preload_range {
    uint16_t first, last;
};

struct preload_config {
    unsigned generation; /* another one: what was decided by it is to be decided again */
    bool is_traced;      /* this program is one of `programs` */
    bool guesses_are_linked;
    uint8_t filters;     /* enum preload_filters */
    int8_t usage;        /* 0 to 3, or PRELOAD_USAGE_UNSET */
    uint8_t file_calls;  /* enum preload_file_calls */
    uint8_t payload;     /* bytes of a request that are recorded */
    uint8_t range_count; /* 0: all */
    uint64_t least_ns;   /* a span that took less is not recorded */
    struct preload_range ranges[PRELOAD_RANGES_MAX];
    char service[PRELOAD_SERVICE_MAX]; /* "": the program's name */
    /* globs, each with its NUL, and an empty one as the last; none: all */
    char programs[PRELOAD_CONFIG_MAX + 1];
    char files[PRELOAD_CONFIG_MAX + 1];
};

void preload_config_clear(struct preload_config *config); /* to the defaults */

/*
 * Changes what the text names: key=value, in lines or with commas between them; a line that begins
 * with "#" is none. Returns NULL, or what of it is wrong, in `wrong`, with *expected set to what it
 * should have been; the config is of no use then.
 */
const char *preload_config_read(struct preload_config *config, const char *text,
                                char wrong[PRELOAD_CONFIG_MAX], const char **expected);

bool preload_config_has_port(const struct preload_config *config, unsigned port);
bool preload_config_has_program(const struct preload_config *config, const char *name);
bool preload_config_has_file(const struct preload_config *config, const char *path);

#endif

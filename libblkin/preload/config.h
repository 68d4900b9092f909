/*
 * What is traced of a program that runs with libblkin-preload.so: the text of BLKIN_RUN, which
 * "blkin run" has made of its options, then a file that may be changed while the program runs.
 *
 * What is in force never changes in place: a new one is written to another slot and made the
 * current one with a single store. A slot is used again after seven changes, a second each.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_CONFIG_H
#define BLKIN_PRELOAD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRELOAD_CONFIG_MAX   1024 /* of a text, with its NUL */
#define PRELOAD_RANGES_MAX   64
#define PRELOAD_SERVICE_MAX  64
#define PRELOAD_PAYLOAD_MAX  64
#define PRELOAD_USAGE_UNSET  (-1)
#define PRELOAD_CONFIG_FILE  "/run/blkin/run"
#define PRELOAD_CONFIG_EVERY UINT64_C(1000000000) /* ns */

/* Which calls on files are spans of their own. */
enum preload_file_calls {
    PRELOAD_FILES_AUTO, /* each, but totals where several interactions share a thread's call */
    PRELOAD_FILES_EACH,
    PRELOAD_FILES_TOTALS,
    PRELOAD_FILES_OFF
};

struct preload_range {
    uint16_t first, last;
};

struct preload_config {
    unsigned generation; /* another one: what was decided by it is to be decided again */
    bool is_traced;      /* this program is one of `programs` */
    bool guesses_are_linked;
    bool
        trusts_filters; /* that the process was started under: its calls are allowed, and LTTng's */
    int8_t usage;       /* 0 to 3, or PRELOAD_USAGE_UNSET */
    uint8_t file_calls; /* enum preload_file_calls */
    uint8_t payload;    /* bytes of a request that are recorded */
    uint8_t range_count; /* 0: all */
    uint64_t least_ns;   /* a span that took less is not recorded */
    struct preload_range ranges[PRELOAD_RANGES_MAX];
    char service[PRELOAD_SERVICE_MAX]; /* "": the program's name */
    /* globs, each with its NUL, and an empty one as the last; none: all */
    char programs[PRELOAD_CONFIG_MAX + 1];
    char files[PRELOAD_CONFIG_MAX + 1];
};

/* ---- a text: config_text.c */

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

/* ---- what is in force: config.c */

extern __attribute__((visibility("hidden"))) const struct preload_config *preload_config_in_force;
extern __attribute__((visibility("hidden"))) uint64_t preload_config_due_ns;

/* Until preload_config_init() nothing is wanted. Good until the next call that may wait. */
static inline const struct preload_config *preload_config(void)
{
    return __atomic_load_n(&preload_config_in_force, __ATOMIC_ACQUIRE);
}

/* Reads the environment and the file. Once, before main(). */
void preload_config_init(void);

/* The configured one, or the program's name as it was at the start. */
const char *preload_service_name(void);

/* Takes the file over if it has changed; one thread at a time does it. */
void preload_config_look(uint64_t now_ns);

/* The same if that was not done for a second: else a load and a comparison. */
static inline void preload_config_refresh(uint64_t now_ns)
{
    if (__builtin_expect(now_ns >= __atomic_load_n(&preload_config_due_ns, __ATOMIC_RELAXED), 0))
        preload_config_look(now_ns);
}

#endif

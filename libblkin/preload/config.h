/*
 * The run-time configuration of a program under libblkin-preload.so. The configuration is the text
 * of BLKIN_RUN, which `blkin run` makes from its options. Then a file changes the configuration,
 * even while the program runs.
 *
 * The current configuration is never overwritten. The library writes a new configuration to another
 * slot, which becomes current by a single store. The library reuses a slot after seven changes, at
 * most one change a second.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_CONFIG_H
#define BLKIN_PRELOAD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the text: config_text.c, also linked by the command ---- */

#define PRELOAD_CONFIG_MAX  1024 /* of a text, including its NUL */
#define PRELOAD_RANGES_MAX  64
#define PRELOAD_SERVICE_MAX 64
#define PRELOAD_PAYLOAD_MAX 64
#define PRELOAD_USAGE_UNSET (-1)

/* Which file calls are spans of their own. */
enum preload_file_calls {
    PRELOAD_FILES_AUTO, /* each; but only totals if several requests share a call */
    PRELOAD_FILES_EACH,
    PRELOAD_FILES_TOTALS,
    PRELOAD_FILES_OFF
};

/* How a process with a seccomp filter is traced. */
enum preload_seccomp {
    PRELOAD_SECCOMP_RINGS, /* into the agent's rings, without LTTng */
    PRELOAD_SECCOMP_LEAVE, /* not at all */
    PRELOAD_SECCOMP_TRACE, /* as usual: the user says that an inherited filter allows LTTng */
};

struct preload_range {
    uint16_t first, last;
};

struct preload_config {
    /* number of the configuration; decisions made under an older one are made again */
    unsigned generation;
    bool is_traced;          /* this program matches `programs` */
    bool guesses_are_linked; /* guesses=link: a guessed cause is the parent, not only a mark */
    uint8_t seccomp;         /* enum preload_seccomp */
    int8_t usage;            /* 0 to 3, or PRELOAD_USAGE_UNSET */
    uint8_t file_calls;      /* enum preload_file_calls */
    uint8_t payload;         /* how many first bytes of a request are recorded */
    uint8_t range_count;     /* 0: all ports */
    uint64_t least_ns;       /* shorter spans are not recorded */
    struct preload_range ranges[PRELOAD_RANGES_MAX];
    char service[PRELOAD_SERVICE_MAX]; /* "": the program's name */
    /* globs, each with a NUL; an empty glob ends the list; no glob: all programs, or all files */
    char programs[PRELOAD_CONFIG_MAX + 1];
    char files[PRELOAD_CONFIG_MAX + 1];
};

/* Sets the defaults. */
void preload_config_clear(struct preload_config *config);

/*
 * Applies a text of key=value pairs, separated by commas or line breaks. A line that begins with
 * "#" is a comment. Returns NULL, or the wrong part, which is in `wrong`, with the expected form in
 * *expected. The configuration is then not usable.
 */
const char *preload_config_read(struct preload_config *config, const char *text,
                                char wrong[PRELOAD_CONFIG_MAX], const char **expected);

bool preload_config_has_port(const struct preload_config *config, unsigned port);
bool preload_config_has_program(const struct preload_config *config, const char *name);
bool preload_config_has_file(const struct preload_config *config, const char *path);

/* ---- the current configuration: config.c ---- */

#define PRELOAD_CONFIG_FILE  "/run/blkin/run"
#define PRELOAD_CONFIG_EVERY UINT64_C(1000000000) /* ns */

extern __attribute__((visibility("hidden"))) const struct preload_config *preload_config_in_force;
extern __attribute__((visibility("hidden"))) uint64_t preload_config_due_ns;

/* Nothing is traced before preload_config_init(). Do not keep the pointer across a call that may
 * block: the library reuses its slot after seven changes. */
static inline const struct preload_config *preload_config(void)
{
    return __atomic_load_n(&preload_config_in_force, __ATOMIC_ACQUIRE);
}

/* Reads the environment and the file. Called once, before main(). */
void preload_config_init(void);

/* From now on, the file is not read any more. */
void preload_config_freeze(void);

/* Returns the configured name, or the name that the program had at its start. */
const char *preload_service_name(void);

/* At most once a second, reads the file if it has changed. One thread at a time does the work; the
 * others do not wait. */
void preload_config_look(uint64_t now_ns);

/* Does the same, without a call if the second is not over. */
static inline void preload_config_refresh(uint64_t now_ns)
{
    if (__builtin_expect(now_ns >= __atomic_load_n(&preload_config_due_ns, __ATOMIC_RELAXED), 0))
        preload_config_look(now_ns);
}

#endif

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

#define RUN_CONFIG_MAX   1024 /* of a text, with its NUL */
#define RUN_PORTS_MAX    64
#define RUN_SERVICE_MAX  64
#define RUN_PAYLOAD_MAX  64
#define RUN_USAGE_UNSET  (-1)
#define RUN_CONFIG_FILE  "/run/blkin/run"
#define RUN_CONFIG_EVERY UINT64_C(1000000000) /* ns */

/* Which calls on files are spans of their own. */
enum run_file_calls {
    RUN_FILES_AUTO, /* each, but totals where several interactions share a thread's call */
    RUN_FILES_EACH,
    RUN_FILES_TOTALS,
    RUN_FILES_OFF
};

struct run_config {
    unsigned generation; /* another one: what was decided by it is to be decided again */
    bool is_wanted;      /* this program is one of `programs` */
    bool links_guesses;
    int8_t usage;       /* 0 to 3, or RUN_USAGE_UNSET */
    uint8_t file_calls; /* enum run_file_calls */
    uint8_t payload;    /* bytes of a request that are recorded */
    uint8_t port_count; /* 0: all */
    uint64_t min_ns;    /* a span that took less is not recorded */
    struct {
        uint16_t first, last;
    } ports[RUN_PORTS_MAX];
    char service[RUN_SERVICE_MAX]; /* "": the program's name */
    /* globs, each with its NUL, and an empty one as the last; none: all */
    char programs[RUN_CONFIG_MAX + 1];
    char files[RUN_CONFIG_MAX + 1];
};

/* ---- a text: config_text.c */

void run_config_clear(struct run_config *config); /* to the defaults */

/*
 * Changes what the text names: key=value, in lines or with commas between them; a line that begins
 * with "#" is none. Returns NULL, or what of it is wrong, in `wrong`, with *expected set to what it
 * should have been; the config is of no use then.
 */
const char *run_config_read(struct run_config *config, const char *text, char wrong[RUN_CONFIG_MAX],
                            const char **expected);

bool run_config_has_port(const struct run_config *config, unsigned port);
bool run_config_has_program(const struct run_config *config, const char *name);
bool run_config_has_file(const struct run_config *config, const char *path);

/* The keys, for options and help; NULL after the last. */
const char *run_config_key(unsigned i);

/* ---- what is in force: config.c */

extern __attribute__((visibility("hidden"))) const struct run_config *run_config_current;
extern __attribute__((visibility("hidden"))) uint64_t run_config_due_ns;

/* Until run_config_init() nothing is wanted. Good until the next call that may wait. */
static inline const struct run_config *run_config(void)
{
    return __atomic_load_n(&run_config_current, __ATOMIC_ACQUIRE);
}

/* Reads the environment and the file. Once, at the start of the program, whose basename it is. */
void run_config_init(const char *program);

/* Takes the file over if it has changed. */
void run_config_refresh(uint64_t now_ns);

/* A load and a comparison, but once a second. now_ns: of CLOCK_MONOTONIC, coarse or not. */
static inline void run_config_refresh_if_due(uint64_t now_ns)
{
    if (__builtin_expect(now_ns >= __atomic_load_n(&run_config_due_ns, __ATOMIC_RELAXED), 0))
        run_config_refresh(now_ns);
}

#endif

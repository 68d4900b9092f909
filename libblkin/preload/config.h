/*
 * What is traced of this program: a snapshot of the run file and the environment.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_CONFIG_H
#define BLKIN_PRELOAD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define PRELOAD_PAYLOAD_MAX 64
#define PRELOAD_RANGES_MAX  32

struct preload_range {
    uint16_t first, last;
};

/* Never changed once it is in force; a slot is not used again for seconds. */
struct preload_config {
    bool is_traced; /* "programs" has this one */
    bool guesses_are_linked;
    uint8_t payload;      /* bytes of a request that become a tag; 0: none */
    uint64_t least_ns;    /* of a span */
    unsigned range_count; /* 0: every port */
    struct preload_range ranges[PRELOAD_RANGES_MAX];
};

/* The one in force, never NULL. */
extern const struct preload_config *preload_config_in_force;

static inline const struct preload_config *preload_config(void)
{
    return __atomic_load_n(&preload_config_in_force, __ATOMIC_ACQUIRE);
}

/* Reads the environment. Once, before main(). */
void preload_config_init(void);

/* Looks at the run file if that was not done for a second. One thread at a time does it. */
void preload_config_refresh(uint64_t now_ns);

#endif
